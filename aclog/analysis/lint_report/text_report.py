"""Findings as lines for people: by lint, the worst first, as much as fits a screen."""

from collections.abc import Iterator, Sequence

from aclog.analysis.lint_report.lint_report import LintReport, grouped
from aclog.analysis.lint_report.located_finding import LocatedFinding, LocatedRule
from aclog.analysis.lint_report.mend import mend_commands
from aclog.authorizer.acl import acl_text
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.rule_change import RuleChange

_SHOWN, _RULES = 5, 3
"""Findings of a lint, and rules of a finding, that are shown; the JSON lines have all."""


def text_lines(report: LintReport, place: ChangePlace, *, shown: int = _SHOWN) -> Iterator[str]:
    """Yield the findings, a group for each lint, and a summary."""
    for group in grouped(report.findings):
        lint = group[0].lint
        yield f"{group[0].finding.severity.value} {lint.id} {lint.name}: {lint.title}"
        yield from _group_lines(group[:shown], place)
        if len(group) > shown:
            yield f"  and {len(group) - shown:,} more: --select {lint.id} --format jsonl has all"
        yield ""
    yield report.summary()


def _group_lines(group: Sequence[LocatedFinding], place: ChangePlace) -> Iterator[str]:
    shared = len(group) > 1 and len({each.finding.advice for each in group}) == 1
    for found in group:
        yield from finding_lines(found, place, advised=not shared)
    if shared:
        yield f"  mend: {group[0].finding.advice}"


def finding_lines(found: LocatedFinding, place: ChangePlace, *, advised: bool = True) -> Iterator[str]:
    """Yield the lines of a finding: its rules with their places, what is lost, and the mend."""
    for rule in found.rules[:_RULES]:
        where = rule.places_text()
        yield f"  {where}: {acl_text(rule.acl)}" if where else f"  {acl_text(rule.acl)}"
    if len(found.rules) > _RULES:
        yield f"  and {len(found.rules) - _RULES:,} more rules"
    yield f"    {found.finding.lost}"
    if advised:
        yield f"    mend: {found.finding.advice}"
    yield from (f"    {line}" for line in _fix_lines(found, place))


def _fix_lines(found: LocatedFinding, place: ChangePlace) -> Iterator[str]:
    """Yield what to do: commands, or lines of files to change if the rules are kept in files."""
    fix = found.finding.fix
    by_acl = {rule.acl: rule for rule in found.rules}
    if not any(True for rule in found.rules for _ in rule.files()):
        lines = list(mend_commands(found.finding, place))
    else:
        lines = [_edit(change, by_acl.get(change.acl)) for change in fix]
    yield from lines[:_RULES]
    if len(lines) > _RULES:
        yield f"and {len(lines) - _RULES:,} more changes"


def _edit(change: RuleChange, rule: LocatedRule | None) -> str:
    if change.added:
        return f"+ {acl_text(change.acl)}"
    places = "" if rule is None else rule.places_text()
    return f"- {places or acl_text(change.acl)}"
