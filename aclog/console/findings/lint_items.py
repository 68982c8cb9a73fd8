"""What lint finds, as findings."""

from collections.abc import Iterable, Iterator

from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.lint_report.sarif_report import fingerprint
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.console.findings.item import Archived, Item, Kind
from aclog.console.findings.looked import Looked


def lint_looked(report: LintReport, notes: tuple[str, ...], pause: Pause = no_pause) -> Looked:
    """Return a report of lint: what it suppresses is archived. `pause` is called again and again."""
    return Looked(
        items=tuple(_items(report.findings, pause)),
        archived=tuple(_items(report.suppressed, pause)),
        summary=report.summary(),
        notes=(*report.notes(), *notes),
    )


def lint_keys(report: LintReport) -> frozenset[str]:
    """Return the keys of all that was found, archived or not."""
    return frozenset(map(_key, (*report.findings, *report.suppressed)))


def _key(found: LocatedFinding) -> str:
    return f"lint {found.finding.lint} {fingerprint(found)}"


def _items(found: Iterable[LocatedFinding], pause: Pause) -> Iterator[Item]:
    for each in found:
        pause()
        yield _item(each)


def _item(found: LocatedFinding) -> Item:
    finding, by = found.finding, found.suppressed_by
    return Item(
        kind=Kind.LINT,
        key=_key(found),
        severity=finding.severity,
        name=f"{found.lint.id} {found.lint.name}",
        text=f"{found.lint.title}: {finding.lost}",
        rules=found.rules,
        changes=finding.fix,
        advice=finding.advice,
        archived=None if by is None else Archived(reason=by.reason, expires=by.expires, where=by.where),
    )
