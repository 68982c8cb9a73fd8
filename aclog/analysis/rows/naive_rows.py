"""Folds changed rules as such: rules that differ in their principal only are one group."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from attrs import frozen

from aclog.authorizer.acl import StandardAcl


class _Kind(NamedTuple):
    is_added: bool
    host: str
    resource_type: int
    operation: int
    permission_type: int


@frozen(kw_only=True)
class NaiveRow:
    """Rules that were added, or removed, with one host, resource type, operation, permission and set of patterns."""

    is_added: bool
    principals: tuple[str, ...]
    """Sorted. Each has a rule on each pattern."""
    rules: tuple[StandardAcl, ...]


def naive_rows(changed: Iterable[tuple[bool, StandardAcl]]) -> list[NaiveRow]:
    """Return the groups of changed rules; `changed` says of each rule whether it was added."""
    of_kind: dict[_Kind, dict[str, dict[tuple[str, int], StandardAcl]]] = defaultdict(lambda: defaultdict(dict))
    for is_added, rule in changed:
        kind = _Kind(is_added, rule.host, rule.resource_type, rule.operation, rule.permission_type)
        of_kind[kind][rule.principal][rule.resource_name, rule.pattern_type] = rule
    found = []
    for kind, of_principal in of_kind.items():
        same: dict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
        for principal, patterns in of_principal.items():
            same[frozenset(patterns)].append(principal)
        for principals in same.values():
            rules = tuple(rule for principal in principals for rule in of_principal[principal].values())
            found.append(NaiveRow(is_added=kind.is_added, principals=tuple(sorted(principals)), rules=rules))
    return found
