"""Lint 26: patterns that cover other topics than when they were added; only a history of rules and topics can tell."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import evolve, field, frozen

from aclog.analysis.lint.catalogue import BY_ID
from aclog.analysis.lint.context import SEPARATORS
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import who
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    AclOperation,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.rule_change import RuleChange

GROWN_REACH = "26"
MANY_TIMES, MANY_MORE = 10, 20
"""A pattern has grown notably if it covers this many times as many topics as at first, and this many more."""
_NAMED = 3

Spans = Mapping[str, Sequence[tuple[int, int | None]]]
"""For each name of a topic the intervals of end offsets in which it existed; without an end if it does now."""


def judged_rules(policy: Policy) -> Iterator[StandardAclWithId]:
    """Yield the rules that the lint is about: each ALLOW on a prefix of topics. `*` never meant less than all."""
    table = RuleTable.of(policy)
    rows = table.allows & (table.type_of == ResourceType.TOPIC) & ~table.literal_resource[table.resource_of]
    return (table.base.rule(row) for row in np.flatnonzero(rows).tolist())


@frozen
class TopicTimes:
    """The topics of a log, sorted by name, and when they existed."""

    _spans: Spans
    _names: list[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_names", sorted(self._spans))

    def below(self, prefix: str) -> list[str]:
        """Return the names that begin so, also those that are gone."""
        first = bisect_left(self._names, prefix)
        last = next(
            (at for at in range(first, len(self._names)) if not self._names[at].startswith(prefix)), len(self._names)
        )
        return self._names[first:last]

    def among(self, names: Iterable[str], end_offset: int | None) -> set[str]:
        """Return those that existed in the state at an end offset; None: those that exist now."""
        return {name for name in names if any(_holds(span, end_offset) for span in self._spans[name])}

    def first_after(self, names: Iterable[str], end_offset: int) -> int | None:
        """Return when the first of some names came into being after a state; None if none did."""
        return min((begin for name in names for begin, _ in self._spans[name] if begin > end_offset), default=None)


def grown_reach(
    rules: Iterable[tuple[StandardAcl, int]], topics: TopicTimes, *, separators: str = SEPARATORS
) -> Iterator[Finding]:
    """Yield a finding for each rule that covers topics of other owners than at first, or notably more topics.

    A rule (of judged_rules) comes with the end offset of the state that it was first part of. At first is then, or, if
    the pattern covered no topic then, when it covered the first one. The owner of a topic is its name up to the first
    separator.
    """
    for acl, added in rules:
        found = _judge(acl, added, topics, separators)
        if found is not None:
            yield found


def _judge(acl: StandardAcl, added: int, topics: TopicTimes, separators: str) -> Finding | None:
    names = topics.below(acl.resource_name)
    first, now = topics.among(names, added), topics.among(names, None)
    if not first:
        begun = topics.first_after(names, added)
        first = set() if begun is None else topics.among(names, begun)
    owners = {_owner(name, separators) for name in first}
    others = sorted(name for name in now - first if _owner(name, separators) not in owners)
    grown = len(now) >= MANY_TIMES * len(first) and len(now) - len(first) >= MANY_MORE
    if not first or not (others or grown):
        return None
    lint = BY_ID[GROWN_REACH]
    return Finding(
        lint=lint.id,
        severity=lint.severity,
        rules=(acl,),
        lost=_lost(acl, len(first), len(now), others),
        fix=_narrowed(acl, sorted(first), separators) if others else (),
        advice=lint.mend,
    )


def _lost(acl: StandardAcl, first: int, now: int, others: Sequence[str]) -> str:
    reach = f"{who(acl)} has {code_name(AclOperation, acl.operation)} on {_topics(now)} by it, on {first:,} at first"
    if not others:
        return reach
    more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
    return f"{reach}; of other owners: {', '.join(others[:_NAMED])}{more}"


def _topics(count: int) -> str:
    return f"{count:,} topic{'' if count == 1 else 's'}"


def _narrowed(acl: StandardAcl, first: Sequence[str], separators: str) -> tuple[RuleChange, ...]:
    """Return the changes that leave the owners of the first topics only: their prefixes with the separator."""
    kept: dict[StandardAcl, None] = {}
    for name in first:
        owner = _owner(name, separators)
        if owner == name:
            kept[evolve(acl, resource_name=name, pattern_type=int(PatternType.LITERAL))] = None
        else:
            kept[evolve(acl, resource_name=name[: len(owner) + 1])] = None
    return (*(RuleChange(added=True, acl=each) for each in kept), RuleChange(added=False, acl=acl))


def _owner(name: str, separators: str) -> str:
    return re.split(f"[{re.escape(separators)}]", name, maxsplit=1)[0] if separators else name


def _holds(span: tuple[int, int | None], end_offset: int | None) -> bool:
    begin, end = span
    return end is None if end_offset is None else begin <= end_offset and (end is None or end_offset < end)
