"""Folding: many used names of one principal, host and operation become one prefix, if that is safe."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType, StandardAcl, acl_text, code_name
from aclog.usage.suggestion.grant import Grant, covers
from aclog.usage.suggestion.name_groups import NameGroup, groups_below
from aclog.usage.suggestion.rule_index import RuleIndex, overrules

_OWNED_BY: Mapping[int, str] = {
    ResourceType.TOPIC: "written",
    ResourceType.GROUP: "read with",
    ResourceType.TRANSACTIONAL_ID: "written with",
}

_UNUSED: Final = 1 / 10
"""A prefix covers at most so many unused names for each used one: else it gives much that nobody needs."""


@frozen(kw_only=True)
class Folded:
    """Grants with prefixes where they are safe, and why they are not where names could have become one."""

    grants: tuple[Grant, ...]
    refused: tuple[str, ...]


@define(eq=False, kw_only=True)
class Folding:
    """What may become a prefix."""

    least: int | None
    """So many names become their prefix; None for never."""
    allowing: RuleIndex
    """The present ALLOWs."""
    denying: RuleIndex
    """All other present rules."""
    names: Mapping[int, Mapping[str, Collection[str]]]
    """By resource type: the names that exist, and who made them their own."""
    _sorted: dict[int, list[str]] = field(factory=dict, init=False)

    def fold(self, grants: Iterable[Grant]) -> Folded:
        """Fold grants by name."""
        groups: dict[tuple[str, str, int, int], dict[str, Grant]] = {}
        left: list[Grant] = []
        for grant in grants:
            acl = grant.acl
            if self.least is None or acl.pattern_type != PatternType.LITERAL or grant.names != {acl.resource_name}:
                left.append(grant)
                continue
            key = (acl.principal, acl.host, acl.operation, acl.resource_type)
            groups.setdefault(key, {})[acl.resource_name] = grant
        refused: list[str] = []
        for by_name in groups.values():
            left.extend(self._folded(by_name, refused))
        return Folded(grants=tuple(left), refused=tuple(refused))

    def _folded(self, by_name: dict[str, Grant], refused: list[str]) -> Iterator[Grant]:
        assert self.least is not None  # noqa: S101 - else nothing is to be folded
        waiting = list(groups_below(by_name, "", self.least))
        while waiting:
            group = waiting.pop()
            some = by_name[group.names[0]].acl
            prefixed = evolve(some, resource_name=group.prefix, pattern_type=PatternType.PREFIXED)
            reason = self._against(prefixed, group)
            if reason is None:
                first, *others = (by_name.pop(name) for name in group.names)
                yield evolve(first.with_all_of(others), acl=prefixed, why=self._why(prefixed, group))
            else:
                refused.append(f"{len(group.names):,} names are not folded into {acl_text(prefixed)}: {reason}")
                waiting.extend(groups_below(group.names, group.prefix, self.least))
        yield from by_name.values()

    def _against(self, prefixed: StandardAcl, group: NameGroup) -> str | None:
        """Return why a prefix is not safe; None if it is."""
        if next(covers(self.allowing, prefixed), None) is None:
            return "the present rules do not allow all of it"
        kind = prefixed.resource_type
        for deny in self.denying.on_some(kind, group.prefix, prefixed.principal):
            if overrules(deny, prefixed, self.denying.settings):
                return f"the present rules deny some of it: {acl_text(deny)}"
        others = [name for name in self._under(kind, group.prefix) if name not in set(group.names)]
        for name in others:
            owners = self.names[kind][name]
            if owners and prefixed.principal not in owners:
                return f"{name!r} under it is {_OWNED_BY[kind]} only by others"
        if len(others) > len(group.names) * _UNUSED:
            return f"{len(others):,} more names that exist under it were not used"
        return None

    def _why(self, prefixed: StandardAcl, group: NameGroup) -> str:
        kind = prefixed.resource_type
        rule = next(covers(self.allowing, prefixed))
        others = len(set(self._under(kind, group.prefix)) - set(group.names))
        what = f"{code_name(AclOperation, prefixed.operation)} was used on {len(group.names):,} names under it"
        owned = f", none of them {_OWNED_BY[kind]} only by others" if others and kind in _OWNED_BY else ""
        more = f"{others:,} more exist there{owned}" if others else "no others exist there"
        return f"{what} ({self.least} or more become a prefix); {more}; all of it is allowed now by {acl_text(rule)}"

    def _under(self, kind: int, prefix: str) -> Iterator[str]:
        names = self._sorted.get(kind)
        if names is None:
            names = self._sorted[kind] = sorted(self.names.get(kind, ()))
        for at in range(bisect_left(names, prefix), len(names)):
            if not names[at].startswith(prefix):
                return
            yield names[at]
