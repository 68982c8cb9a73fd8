"""Findings as a table in markdown, for a merge request."""

from collections.abc import Iterable, Iterator

from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.rows.row_report import markdown_text
from aclog.authorizer.acl import acl_text

_TITLES = ("severity", "lint", "rules", "where", "lost or opened", "mend")
_RULES = 3


def markdown_lines(report: LintReport) -> Iterator[str]:
    """Yield a table of the findings that count, and a summary."""
    if report.findings:
        yield from finding_table(report.findings)
        yield ""
    yield f"{markdown_text(report.summary())}."


def finding_table(findings: Iterable[LocatedFinding]) -> Iterator[str]:
    """Yield a table of findings."""
    yield _row(_TITLES)
    yield _row("---" for _ in _TITLES)
    yield from (_row(map(markdown_text, _cells(found))) for found in findings)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(found: LocatedFinding) -> tuple[str, ...]:
    finding, left = found.finding, len(found.rules) - _RULES
    more = (f"and {left:,} more",) if left > 0 else ()
    return (
        finding.severity.value,
        f"{finding.lint} {found.lint.name}",
        "; ".join((*(acl_text(rule.acl) for rule in found.rules[:_RULES]), *more)),
        "; ".join(place for rule in found.rules[:_RULES] if (place := rule.places_text())),
        finding.lost,
        finding.advice,
    )
