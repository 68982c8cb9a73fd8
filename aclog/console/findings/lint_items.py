"""What lint finds, as findings."""

from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.lint_report.sarif_report import fingerprint
from aclog.console.findings.item import Archived, Item, Kind
from aclog.console.findings.looked import Looked


def lint_looked(report: LintReport, notes: tuple[str, ...]) -> Looked:
    """Return a report of lint: what it suppresses is archived."""
    return Looked(
        items=tuple(map(_item, report.findings)),
        archived=tuple(map(_item, report.suppressed)),
        summary=report.summary(),
        notes=(*report.notes(), *notes),
    )


def lint_keys(report: LintReport) -> frozenset[str]:
    """Return the keys of all that was found, archived or not."""
    return frozenset(map(_key, (*report.findings, *report.suppressed)))


def _key(found: LocatedFinding) -> str:
    return f"lint {found.finding.lint} {fingerprint(found)}"


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
