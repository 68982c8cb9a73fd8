"""The least rules that keep every allowed access of a log, and give nothing beyond the present set.

An access gives its cell a rule: its principal, operation and name, and the host pattern of a rule of the present set
that allows it, `*` if there is one. So the ALLOW rules of the suggestion allow a part of what those of the present set
allow; a prefix stands for names only where a rule of the present set has that prefix or a shorter one. Of the DENY
rules those stay that meet an ALLOW rule. What the suggestion allows is then a part of what the present set allows, and
no access is lost: whatever a DENY that stays denies, the present set denies as well.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Self

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.usage.suggestion.allowing_rules import AllowingRules
from aclog.usage.suggestion.cells import Cell, Cells, Group
from aclog.usage.suggestion.name_folding import fold
from aclog.usage.suggestion.present_rules import IMPLYING, Names, PresentRules
from aclog.usage.suggestion.suggested_rule import SuggestedRule, Times, Why

FOLD: Final = 5
"""The default of how many used names become their prefix."""

_MOST_NAMES: Final = 0.95
_FEWEST_NAMES: Final = 20
"""The share of existing names that were used, and the least number of them, for a rule for every name to stay one."""


@frozen(kw_only=True)
class ExistingTopics:
    """Topics that are known to exist, and who was seen to write to them."""

    names: tuple[str, ...]
    """In order."""
    writers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, names: Collection[str], writers: Mapping[str, Collection[str]]) -> Self:
        """Take topics, and the principals that write to them."""
        return cls(names=tuple(sorted({*names, *writers})), writers={n: frozenset(w) for n, w in writers.items()})

    def below(self, prefix: str) -> Iterator[str]:
        """Yield those with a prefix."""
        for at in range(bisect_left(self.names, prefix), len(self.names)):
            if not self.names[at].startswith(prefix):
                return
            yield self.names[at]


@define(eq=False, kw_only=True)
class Suggesting:
    """A suggestion in the making."""

    rules: PresentRules
    topics: ExistingTopics
    least: int | None = FOLD
    """How many used names become their prefix; None for never."""
    _found: dict[StandardAcl, SuggestedRule] = field(factory=dict, init=False)
    _used: dict[tuple[str, ResourceType], set[str]] = field(factory=dict, init=False)
    """The names that each principal used, for any operation."""

    def suggest(self, cells: Cells) -> list[SuggestedRule]:
        """Return the suggested rules, ALLOW rules first."""
        for group, names in cells.items():
            self._used.setdefault((group.principal, group.resource_type), set()).update(names)
        # what other operations imply comes last: it is left out where they are allowed
        for group in sorted(cells, key=lambda each: (each.operation in IMPLYING, each)):
            left = {name: cell for name, cell in cells[group].items() if not self._is_allowed(group, name, cell)}
            for rule in self._of_group(group, left):
                self._found[rule.rule] = rule
        return [*self._found.values(), *self._denies()]

    def _is_allowed(self, group: Group, name: str, cell: Cell) -> bool:
        """Return whether a rule allows this as well; if so, it is for it, too."""
        one = Names(PatternType.LITERAL, name)
        for allowing in self._wider(group):
            for names in (one, *_patterns(name)):
                known = self._found.get(_rule(allowing, names))
                if known is not None and known.times is not None:
                    self._found[known.rule] = evolve(
                        known, times=known.times.plus(cell.times), replaces=self._replaced(cell, known.replaces)
                    )
                    return True
        return False

    def _wider(self, group: Group) -> Iterator[Group]:
        """Yield the groups whose rules allow what one of this group does."""
        for principal in dict.fromkeys((group.principal, WILDCARD_PRINCIPAL)):
            for operation in (group.operation, *sorted(IMPLYING.get(group.operation, ()))):
                for host in dict.fromkeys((group.host, WILDCARD)):
                    yield Group(principal, group.resource_type, operation, host)

    def _of_group(self, group: Group, cells: Mapping[str, Cell]) -> Iterator[SuggestedRule]:
        if not cells:
            return
        why = Why.EVERYBODY if group.principal == WILDCARD_PRINCIPAL else Why.USED
        if self._is_every_name(group, cells):
            yield self._suggested(group, Names(PatternType.LITERAL, WILDCARD), cells, Why.EVERY_NAME)
            return
        folded = fold(cells, self.least, lambda prefix: self._may_fold(group, cells, prefix))
        for name in folded.literals:
            # a literal `*` would be every name: what the present set has for it stays as it is
            one = Names(PatternType.LITERAL, name) if name != WILDCARD else max(cells[name].wider, key=_narrowness)
            yield self._suggested(group, one, {name: cells[name]}, why)
        for prefix, names in folded.prefixes.items():
            some = {name: cells[name] for name in names}
            yield self._suggested(group, Names(PatternType.PREFIXED, prefix), some, Why.FOLDED)

    def _is_every_name(self, group: Group, cells: Mapping[str, Cell]) -> bool:
        everything = Names(PatternType.LITERAL, WILDCARD)
        if self.least is None or not any(everything in cell.wider for cell in cells.values()):
            return False
        existing = self.topics.names if group.resource_type is ResourceType.TOPIC else ()
        return len(existing) >= _FEWEST_NAMES and len(cells) >= _MOST_NAMES * len(existing)

    def _may_fold(self, group: Group, cells: Mapping[str, Cell], prefix: str) -> bool:
        wanted = Names(PatternType.PREFIXED, prefix)
        below = [cell for name, cell in cells.items() if name.startswith(prefix)]
        if not any(wider.has(wanted) for cell in below for wider in cell.wider):
            return False
        if group.resource_type is not ResourceType.TOPIC:
            return True
        used = self._used[group.principal, group.resource_type]
        return all(
            topic in used or group.principal in self.topics.writers.get(topic, ()) or topic not in self.topics.writers
            for topic in self.topics.below(prefix)
        )

    def _suggested(self, group: Group, names: Names, cells: Mapping[str, Cell], why: Why) -> SuggestedRule:
        times = list(cells.values())
        total: Times = times[0].times
        for cell in times[1:]:
            total = total.plus(cell.times)
        replaces: tuple[StandardAcl, ...] = ()
        for cell in times:
            replaces = self._replaced(cell, replaces)
        return SuggestedRule(
            rule=_rule(group, names), why=why, times=total, names=tuple(sorted(cells)), replaces=replaces
        )

    def _replaced(self, cell: Cell, known: tuple[StandardAcl, ...]) -> tuple[StandardAcl, ...]:
        return tuple(dict.fromkeys((*known, *(self.rules[at] for at in sorted(cell.replaces)))))

    def _denies(self) -> Iterator[SuggestedRule]:
        """Yield the DENY rules of the present set that meet a rule of the suggestion."""
        allowing = AllowingRules.of(rule.rule for rule in self._found.values())
        for ordinal in self.rules.denies():
            rule = self.rules[ordinal]
            if allowing.meet(rule):
                yield SuggestedRule(rule=rule, why=Why.DENY, replaces=(rule,))


def _narrowness(names: Names) -> tuple[int, str]:
    return len(names.prefix or ""), names.name


def _patterns(name: str) -> Iterator[Names]:
    """Yield the patterns that may have a name, but for itself."""
    yield Names(PatternType.LITERAL, WILDCARD)
    yield from (Names(PatternType.PREFIXED, name[:end]) for end in range(1, len(name) + 1))


def _rule(group: Group, names: Names) -> StandardAcl:
    return StandardAcl(
        resource_type=group.resource_type,
        resource_name=names.name,
        pattern_type=names.pattern_type,
        principal=group.principal,
        host=group.host,
        operation=group.operation,
        permission_type=AclPermissionType.ALLOW,
    )
