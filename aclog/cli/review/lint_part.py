"""What lint says of both sides of a review: findings that the change brings, leaves and mends."""

from collections.abc import Iterable, Sequence

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.lint_report.parting import parted
from aclog.analysis.review.document import Item
from aclog.analysis.review.outcomes import LintOutcome
from aclog.authorizer.acl import acl_text

_RULES = 3


def lint_outcome(before: LintReport | None, after: LintReport | None) -> LintOutcome:
    """Compare the reports of both sides; None is that of a side without rules."""
    was = () if before is None else before.findings
    now = () if after is None else after.findings
    new, old = parted(now, was)
    gone, _ = parted(was, now)
    suppressed, _ = parted(() if after is None else after.suppressed, () if before is None else before.suppressed)
    return LintOutcome(
        new_errors=_items(each for each in new if each.finding.severity is Severity.ERROR),
        new_warnings=_items(each for each in new if each.finding.severity is not Severity.ERROR),
        old=_items(old),
        gone=_items(gone),
        suppressed=_items(suppressed),
    )


def new_findings(before: LintReport | None, after: LintReport) -> tuple[LocatedFinding, ...]:
    """Return the findings that only the second report has."""
    return tuple(parted(after.findings, () if before is None else before.findings)[0])


def _items(findings: Iterable[LocatedFinding]) -> tuple[Item, ...]:
    """Return findings as items; last are those whose mend changes nothing, such as a rule that another implies."""
    return tuple(map(_item, sorted(findings, key=lambda each: each.finding.neutral)))


def _item(found: LocatedFinding) -> Item:
    first, *others = found.rules
    more = f" and {len(others):,} more" if others else ""
    lint, by = found.lint, found.suppressed_by
    return Item(
        text=f"{lint.id} {lint.name}: {acl_text(first.acl)}{more}: {found.finding.lost}",
        details=(*_places(found), f"mend: {found.finding.advice}" if by is None else f"{by.where}: {by.reason}"),
    )


def _places(found: LocatedFinding) -> Sequence[str]:
    shown = [f"{rule.places_text()}: {acl_text(rule.acl)}" for rule in found.rules[:_RULES] if rule.origins]
    left = len(found.rules) - len(shown)
    return [*shown, f"and {left:,} more rules"] if shown and left > 0 else shown
