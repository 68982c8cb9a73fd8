"""Findings of two states beside one another."""

from collections.abc import Iterable

from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.authorizer.acl import StandardAcl


def parted(
    findings: Iterable[LocatedFinding], others: Iterable[LocatedFinding]
) -> tuple[list[LocatedFinding], list[LocatedFinding]]:
    """Return those that are not among the others, and those that are: the same lint was said of all their rules."""
    known: dict[tuple[str, StandardAcl], list[frozenset[StandardAcl]]] = {}
    for each in others:
        rules = frozenset(each.finding.rules)
        for rule in rules:
            known.setdefault((each.finding.lint, rule), []).append(rules)
    found: tuple[list[LocatedFinding], list[LocatedFinding]] = ([], [])
    for each in findings:
        rules = frozenset(each.finding.rules)
        is_known = any(rules <= other for other in known.get((each.finding.lint, each.finding.rules[0]), ()))
        found[is_known].append(each)
    return found
