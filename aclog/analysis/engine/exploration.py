"""The exploration of a scope: who gains and loses what below each root, with equal findings folded into regions."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

from attrs import frozen

from aclog.analysis.engine.evaluation import Change, Scene, evaluate
from aclog.analysis.engine.host_classes import HostClasses, OneHost
from aclog.analysis.engine.host_partition import partition
from aclog.analysis.engine.scope import Scope
from aclog.analysis.engine.view import NO_CELLS, Cells, View
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Names
from aclog.analysis.regions.principals import Principals, everyone_but, only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Difference, Direction, Region
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, ResourceType

Changes: TypeAlias = dict[Change, int]
"""The operations of each change, as a mask."""


class Finding(NamedTuple):
    """A change for some principals below one root."""

    kind: int
    change: Change
    operations: int
    principals: Principals


@frozen(eq=False, kw_only=True)
class Exploration:
    """Two policies, and the requests asked about."""

    old: View
    new: View
    query: Query

    @classmethod
    def of(cls, old: Policy, new: Policy, query: Query) -> "Exploration":
        """Return the exploration of two policies."""
        return cls(old=View.of(old), new=View.of(new), query=query)

    def explore(self, scope: Scope) -> Iterator[Difference]:
        """Yield the differences in a scope, folded, in a stable order."""
        findings = chain(
            chain.from_iterable(self._at_root(root, scope.changed) for root in sorted(scope.everyone)),
            chain.from_iterable(
                self._of_principal(principal, roots)
                for principal, roots in sorted(scope.principals.items())
                if principal in self.query.principals
            ),
        )
        return _folded(findings)

    def _of_principal(self, principal: str, roots: Iterable[Root]) -> Iterator[Finding]:
        for root in sorted(roots):
            old, new = self.old.of_principal(root, principal), self.new.of_principal(root, principal)
            for change, operations in self._changes(root, principal, old, new).items():
                yield Finding(root.kind, change, operations, only(principal))

    def _at_root(self, root: Root, changed: set[str] | None) -> Iterator[Finding]:
        others = self._of_others(root, changed)
        asked = self.query.principals
        everyone: Changes = {}
        if asked.complement:
            everyone = self._changes(root, None, NO_CELLS, NO_CELLS)
            others.update((principal, {}) for principal in asked.named)
        for change, operations, excepted in _shared(everyone, others):
            yield Finding(root.kind, change, operations, everyone_but(*excepted))
        for principal, changes in others.items():
            for change, operations in changes.items():
                rest = operations & ~everyone.get(change, 0)
                if rest:
                    yield Finding(root.kind, change, rest, only(principal))

    def _of_others(self, root: Root, changed: set[str] | None) -> dict[str, Changes]:
        """Return what changes below a root for each principal asked about that may not fare as everyone does.

        `changed` are those with a rule that changed, None if any may be.
        """
        supers = self.old.settings.super_users | self.new.settings.super_users
        found: dict[str, Changes] = {}
        known: dict[tuple[Cells, Cells], Changes] = {}
        for principal, before, after in self._cells_of_others(root, changed, supers):
            if principal in supers:
                found[principal] = self._changes(root, principal, before, after)
            elif not self.query.principals.complement or before != after or not self._alike(root):
                if (before, after) not in known:
                    known[before, after] = self._changes(root, principal, before, after)
                found[principal] = known[before, after]
        return found

    def _cells_of_others(
        self, root: Root, changed: set[str] | None, supers: frozenset[str]
    ) -> Iterator[tuple[str, Cells, Cells]]:
        """Yield the principals that may not fare as everyone does, with their cells in both policies, by name."""
        asked = self.query.principals
        few = asked.named if not asked.complement else None
        among: Collection[str] | None = None
        if few is None and changed is not None and self._alike(root):
            among = changed | supers
            if not self.old.is_narrow(root, len(among)) or not self.new.is_narrow(root, len(among)):
                few = tuple(among)
        if few is not None:
            for principal in sorted(few):
                if principal in asked and principal != WILDCARD_PRINCIPAL and ":" in principal:
                    yield principal, self.old.of_principal(root, principal), self.new.of_principal(root, principal)
            return
        old, new = self.old.by_principal(root), self.new.by_principal(root)
        for principal in sorted((old.keys() | new.keys() | supers) - {WILDCARD_PRINCIPAL}):
            if principal in asked and (among is None or principal in among):
                yield principal, old.get(principal, NO_CELLS), new.get(principal, NO_CELLS)

    def _alike(self, root: Root) -> bool:
        """Return whether a principal whose own rules did not change fares as everyone does.

        The rules say the same to it then as before. What allow.everyone opens or closes are names that no rule covers,
        and there it is as everyone.
        """
        old, new = self.old.settings, self.new.settings
        same_settings = old.documented is new.documented and old.cidr is new.cidr
        return same_settings and self.old.of_everyone(root) == self.new.of_everyone(root)

    def _changes(self, root: Root, principal: str | None, old: Cells, new: Cells) -> Changes:
        """Return what changes below a root for a principal with these cells; None: for one without any."""
        sides = [
            view.side(root, cells, is_super=principal in view.settings.super_users)
            for view, cells in ((self.old, old), (self.new, new))
        ]
        if sides[0].is_super and sides[1].is_super:
            return {}
        hosts = chain(old.hosts(), new.hosts(), self.old.of_everyone(root).hosts(), self.new.of_everyone(root).hosts())
        scene = Scene(root=root, hosts=self._host_classes(hosts), operations=self.query.operations)
        return evaluate(scene, *sides)

    def _host_classes(self, hosts: Iterable[str]) -> HostClasses:
        if self.query.host is not None:
            return OneHost(self.query.host)
        return partition(hosts, cidr=self.old.settings.cidr or self.new.settings.cidr)


def _shared(everyone: Changes, others: dict[str, Changes]) -> Iterator[tuple[Change, int, tuple[str, ...]]]:
    """Yield the changes for everyone, with the principals for whom each is not so; operations with the same in one."""
    for change, operations in everyone.items():
        lacking: dict[int, list[str]] = {}
        for principal, changes in others.items():
            missing = operations & ~changes.get(change, 0)
            if missing:
                lacking.setdefault(missing, []).append(principal)
        groups = [operations]
        for missing in lacking:
            groups = [part for group in groups for part in (group & missing, group & ~missing) if part]
        for group in groups:
            excepted = chain.from_iterable(names for missing, names in lacking.items() if missing & group)
            yield change, group, tuple(excepted)


def _folded(findings: Iterable[Finding]) -> Iterator[Difference]:
    """Yield the findings, with the names of one change in one region, and the principals with equal regions, too."""
    names_of: dict[tuple[int, Direction, Hosts, int, Principals], list[Names]] = {}
    for kind, change, operations, principals in findings:
        key = (kind, change.direction, change.hosts, operations, principals)
        names_of.setdefault(key, []).append(change.names)
    principals_of: dict[tuple[int, Direction, Hosts, int, Names], list[Principals]] = {}
    for (kind, direction, hosts, operations, principals), found in names_of.items():
        names = tuple(dict.fromkeys(chain.from_iterable(found)))
        principals_of.setdefault((kind, direction, hosts, operations, names), []).append(principals)
    for (kind, direction, hosts, operations, names), holders in principals_of.items():
        for principals in _united(holders):
            region = Region(
                resource_type=ResourceType(kind), operations=operations, principals=principals, hosts=hosts, names=names
            )
            yield Difference(direction=direction, region=region)


def _united(holders: list[Principals]) -> Iterator[Principals]:
    yield from (each for each in holders if each.complement)
    named = [principal for each in holders if not each.complement for principal in each.named]
    if named:
        yield only(*named)
