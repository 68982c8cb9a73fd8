"""Lints that compare names of rules with names that exist."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, findings, one_of, texts_among, texts_matching
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import is_allow, noun, verb, who
from aclog.analysis.regions.existing_names import ExistingNames
from aclog.analysis.regions.topic_names import LONGEST
from aclog.authorizer.acl import WILDCARD, AclOperation, PatternType, ResourceType, StandardAcl
from aclog.metalog.vectors import Bools

_SHOWN = 5
"""Owners that a finding names."""
_LEGAL = rf"^[a-zA-Z0-9._-]{{0,{LONGEST}}}\Z"


def no_such_name(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that cover none of the topics, or of the groups, that exist (18)."""
    for kind, known in (ResourceType.TOPIC, context.topics), (ResourceType.GROUP, context.groups):
        if known is None:
            continue
        asked = (table.type_of_resource == kind) & ~texts_among(table.names, (WILDCARD,))
        if kind == ResourceType.TOPIC:
            asked &= _legal(table)  # lint 24 says enough about the others
        rows = (asked & ~_covers_one(table, known, asked))[table.resource_of]
        # Whoever may create a topic needs the rule before there is one.
        rows &= ~(table.allows & (table.operation_of == AclOperation.CREATE))
        yield from findings("18", table, rows, _tell_absent)


def prefix_without_separator(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose prefix ends inside of a word, and covers several owners' topics or only others' (21)."""
    topics, separators = context.topics, context.separators
    if topics is None or not separators:
        return
    asked = (table.type_of_resource == ResourceType.TOPIC) & ~table.literal_resource
    asked &= texts_matching(table.names, f"[^{one_of(separators)}]\\Z")
    owners, covered = _Owners.of(topics, separators), dict[str, list[str]]()
    for number in np.flatnonzero(asked).tolist():
        prefix: str = table.names[number]
        found = covered[prefix] = owners.below(prefix)
        asked[number] = _is_cut(prefix, found)

    def _tell(rule: StandardAcl) -> Told:
        found = covered[rule.resource_name]
        names = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        verdict = "may" if is_allow(rule) else "may not"
        return Told(f"{who(rule)} {verdict} {verb(rule)} topics of {names} by {rule.resource_name!r}")

    yield from findings("21", table, asked[table.resource_of], _tell)


def _is_cut(prefix: str, owners: Sequence[str]) -> bool:
    """Return whether a prefix covers topics of several owners, or only of such as go on inside of a word."""
    if len(owners) != 1:
        return len(owners) > 1
    return owners[0] != prefix and not prefix.startswith(owners[0])


@frozen(eq=False, kw_only=True)
class _Owners:
    """The owners of topics: by convention the first parts of their names."""

    _names: list[str]
    """Of topics, sorted."""
    _owners: list[str]
    """By topic."""
    _next: list[int]
    """By topic: the next one of another owner."""

    @classmethod
    def of(cls, topics: ExistingNames, separators: str) -> "_Owners":
        """Return the owners of topics."""
        names = list(topics)
        owners = [_first_part(name, separators) for name in names]
        following = list(range(1, len(names) + 1))
        for at in range(len(names) - 2, -1, -1):
            if owners[at] == owners[at + 1]:
                following[at] = following[at + 1]
        return cls(names=names, owners=owners, next=following)

    def below(self, prefix: str) -> list[str]:
        """Return some owners of the topics that begin with a prefix: all, or enough to show."""
        at, found = bisect_left(self._names, prefix), dict[str, None]()
        while at < len(self._names) and len(found) <= _SHOWN and self._names[at].startswith(prefix):
            found[self._owners[at]] = None
            at = self._next[at]
        return sorted(found)


def _first_part(name: str, separators: str) -> str:
    ends = [at for at in map(name.find, separators) if at >= 0]
    return name[: min(ends)] if ends else name


def _tell_absent(rule: StandardAcl) -> Told:
    kind = noun(rule.resource_type)
    how = "is named" if rule.pattern_type == PatternType.LITERAL else "has a name that begins with"
    effect = "may do nothing" if is_allow(rule) else "is kept from nothing"
    return Told(f"no {kind} {how} {rule.resource_name!r}: {who(rule)} {effect} by it today")


def _legal(table: RuleTable) -> Bools:
    found = texts_matching(table.names, _LEGAL)
    return found & ~(table.literal_resource & texts_among(table.names, (".", "..", "")))


def _covers_one(table: RuleTable, known: ExistingNames, asked: Bools) -> Bools:
    """Return which of the patterns that are asked about cover a name that exists."""
    names = list(known)
    found = texts_among(table.names, names)
    for number in np.flatnonzero(asked & ~found & ~table.literal_resource).tolist():
        prefix: str = table.names[number]
        at = bisect_left(names, prefix)
        found[number] = at < len(names) and names[at].startswith(prefix)
    return found
