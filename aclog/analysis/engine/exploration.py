"""The exploration of a scope: the gained and lost requests below each root."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from attrs import field

from aclog.analysis import regions
from aclog.analysis.engine.evaluation import Change, Coverage, Ground, Scene, Side, evaluate
from aclog.analysis.engine.host_classes import HostClasses, OneHost, partition
from aclog.analysis.policy import Cell, Estate, Policy, range_rules
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, PatternType, ResourceType
from aclog.authorizer.index.acl_index import AclIndex, TouchedResource, key_of
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.layout import KeyTable, resource_name, split_pair
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.values import define, frozen

# The engine's view of one policy below a root: the cells by principal, and the names that they cover.


class Cells(NamedTuple):
    """The cells of one principal that cover names of a root, sorted; those on LITERAL `*` separately."""

    named: tuple[Cell, ...] = ()
    wildcard: tuple[Cell, ...] = ()

    def hosts(self) -> Iterator[str]:
        """Yield the hosts of all cells."""
        return (cell.host for cell in chain(self.named, self.wildcard))


NO_CELLS = Cells()

_FEW = 16
_CELLS_PER_PRINCIPAL = 4
"""How many cells can be scanned in the time of one lookup by principal."""


@define(eq=False)
class View:
    """Reads one policy, with caches for one exploration."""

    settings: Settings
    _estate: Estate
    _everyone: dict[regions.Root, Cells] = field(factory=dict, init=False)
    _coverage: dict[regions.Root, Coverage] = field(factory=dict, init=False)

    @classmethod
    def of(cls, policy: Policy) -> "View":
        """Return the view of a policy."""
        return cls(policy.settings, policy.estate)

    def of_everyone(self, root: regions.Root) -> Cells:
        """Return the cells of `User:*`."""
        cells = self._everyone.get(root)
        if cells is None:
            estate = self._estate
            has_colonless = estate.index.has_colonless
            under = estate.under(root) if has_colonless else estate.under_of(root, WILDCARD_PRINCIPAL)
            cells = self._everyone[root] = Cells(
                _sorted(
                    cell for each in chain(estate.covering(root), under) for cell in estate.cells_of_everyone(each)
                ),
                _sorted(estate.cells_of_everyone(estate.wildcard(root.kind))),
            )
        return cells

    def of_principal(self, root: regions.Root, principal: str) -> Cells:
        """Return the cells of one other principal."""
        estate = self._estate
        resources = chain(estate.covering(root), estate.under_of(root, principal))
        return Cells(
            _sorted(cell for each in resources for cell in estate.cells_of(each, principal)),
            _sorted(estate.cells_of(estate.wildcard(root.kind), principal)),
        )

    def by_principal(self, root: regions.Root) -> dict[str, Cells]:
        """Return the cells of every principal that has any and can make a request."""
        named: dict[str, list[Cell]] = {}
        wildcard: dict[str, list[Cell]] = {}
        estate = self._estate
        for resource in chain(estate.covering(root), estate.under(root)):
            for principal, cell in estate.cells(resource):
                named.setdefault(principal, []).append(cell)
        for principal, cell in estate.cells(estate.wildcard(root.kind)):
            wildcard.setdefault(principal, []).append(cell)
        return {
            principal: Cells(_sorted(named.get(principal, ())), _sorted(wildcard.get(principal, ())))
            for principal in named.keys() | wildcard.keys()
            if principal != WILDCARD_PRINCIPAL and ":" in principal
        }

    def is_narrow(self, root: regions.Root, principals: int) -> bool:
        """Return whether lookups of so many principals take longer than a scan of all cells of a root."""
        return principals > _FEW and self._estate.has_at_most(root, _CELLS_PER_PRINCIPAL * principals)

    def side(self, root: regions.Root, own: Cells, *, is_super: bool = False) -> Side:
        """Return the side for a principal with these cells."""
        everyone, settings = self.of_everyone(root), self.settings
        return Side(
            cells=(*everyone.named, *own.named),
            wildcard=(*everyone.wildcard, *own.wildcard),
            coverage=self._covered(root) if settings.allow_everyone else None,
            is_super=is_super,
            documented=settings.documented,
            cidr=settings.cidr,
        )

    def _covered(self, root: regions.Root) -> Coverage:
        coverage = self._coverage.get(root)
        if coverage is None:
            estate = self._estate
            whole = any(map(estate.exists, estate.covering(root)))
            coverage = self._coverage[root] = Coverage(
                whole=whole,
                wildcard=estate.exists(estate.wildcard(root.kind)),
                under=() if whole else tuple((r.name, r.literal) for r in estate.under(root) if estate.exists(r)),
            )
        return coverage


def _sorted(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return tuple(sorted(cells))


# The cells in which two indexes differ: the only places where decisions can differ.


class CellKey(NamedTuple):
    """The key of a cell: a resource pattern, a principal and a host."""

    kind: int
    name: str
    literal: bool
    principal: str
    host: str


def cell_of(acl: StandardAcl) -> CellKey:
    """Return the cell of an ACL."""
    return CellKey(*key_of(acl), acl.principal, acl.host)


def changed_cells(old: AclIndex, new: AclIndex) -> Iterator[CellKey]:
    """Yield, once each, at least every cell whose ACLs differ between two indexes."""
    if old.base is new.base:
        yield from _changed_in_overlays(old, new)
        return
    keys = dict.fromkeys(chain(_changed_in_bases(old.base, new.base), _touched(old), _touched(new)))
    yield from (key for key in keys if cell_mask(old, key) != cell_mask(new, key))


def cell_mask(index: AclIndex, key: CellKey) -> int:
    """Return the mask of a cell; 0 if it has no ACLs."""
    literal, prefixed = index.named(key.kind, key.name)
    resource = literal if key.literal else prefixed
    if resource.touched is not None:
        cell = resource.touched.cells.get((key.principal, key.host))
        if cell is not None:
            return cell.mask
    subject = index.base.subject(((key.principal, key.host),))
    return index.base.cells_mask(*index.base.cells(resource.number), subject.pairs)


def _changed_in_overlays(old: AclIndex, new: AclIndex) -> Iterator[CellKey]:
    """Compare two indexes on one base: only entries of either overlay can differ."""
    before, after = dict(old.overlay.resources()), dict(new.overlay.resources())
    for resource in dict.fromkeys(chain(after, before)):
        was, now = before.get(resource), after.get(resource)
        if was is now:
            continue  # persistent maps share unchanged parts
        for principal, host in dict.fromkeys((*_pairs(was), *_pairs(now))):
            key = CellKey(*resource, principal, host)
            if cell_mask(old, key) != cell_mask(new, key):
                yield key


def _pairs(touched: TouchedResource | None) -> Iterator[tuple[str, str]]:
    return iter(touched.cells if touched is not None else ())


def _touched(index: AclIndex) -> Iterator[CellKey]:
    for resource, touched in index.overlay.resources():
        for pair in touched.cells:
            yield CellKey(*resource, *pair)


def _changed_in_bases(old: Base, new: Base) -> Iterator[CellKey]:
    """Compare two bases as columns, without an object per equal cell."""
    resources, pairs = _renumbered(new.resources, old.resources), _renumbered(new.pairs, old.pairs)
    before, after = _codes(old, None, None), _codes(new, resources, pairs)
    masks_before, masks_after = np.asarray(old.cell_masks), np.asarray(new.cell_masks)
    order = np.argsort(before)
    at = np.searchsorted(before, after, sorter=order)
    at = order[np.minimum(at, max(len(order) - 1, 0))] if len(order) else at
    same = np.zeros(len(after), np.bool_)
    if len(order):
        same = (before[at] == after) & (masks_before[at] == masks_after)
    untouched = np.zeros(len(before), np.bool_)
    untouched[at[same]] = True
    yield from _keys(new, np.flatnonzero(~same))
    yield from _keys(old, np.flatnonzero(~untouched))


def _renumbered(keys: KeyTable, reference: KeyTable) -> Int64s:
    """Return the number of each key in another table; a number beyond its end for keys that it does not have."""
    number_of = {key: number for number, key in enumerate(_all(reference))}
    return np.array([number_of.setdefault(key, len(number_of)) for key in _all(keys)], np.int64)


def _all(table: KeyTable) -> Iterator[bytes]:
    data, offsets = table.data.tobytes(), table.offsets.tolist()
    return (data[start:end] for start, end in pairwise(offsets))


def _codes(base: Base, resources: Int64s | None, pairs: Int64s | None) -> Int64s:
    """Return resource and pair of each cell as one number."""
    counts = np.diff(np.asarray(base.cell_starts))
    resource_of: Int64s = np.repeat(np.arange(len(base.resources), dtype=np.int64), counts)
    pair_of = np.asarray(base.cell_pairs).astype(np.int64)
    if resources is not None and pairs is not None:
        resource_of, pair_of = resources[resource_of], pairs[pair_of]
    return resource_of << 32 | pair_of


def _keys(base: Base, cells: Int64s) -> Iterator[CellKey]:
    literal = int(PatternType.LITERAL)
    for cell in cells.tolist():
        key = base.resources.key(base.resource_of(cell))
        yield CellKey(
            key[0], resource_name(key), key[-1] == literal, *split_pair(base.pairs.key(base.cell_pairs[cell]))
        )


# The scope of a difference: the roots below which two policies may differ, for everyone and for single principals.


_EVERYTHING = tuple(
    root for kind in regions.RESOURCE_TYPES if (root := regions.root_of_names(kind, "", literal=False)) is not None
)
"""The root of each resource type."""


@define(eq=False)
class Scope:
    """The roots to explore; outside of them there is no difference."""

    everyone: set[regions.Root] = field(factory=set)
    """Roots for every principal."""
    principals: dict[str, set[regions.Root]] = field(factory=dict)
    """Additional roots for single principals."""
    changed: set[str] | None = field(factory=set)
    """The principals with an ACL that only one of the policies has; None if it may be any principal."""

    def add(self, principal: str, root: regions.Root) -> None:
        """Add a root for one principal; `User:*` and principals without a colon count as everyone (see Estate)."""
        if principal == WILDCARD_PRINCIPAL or ":" not in principal:
            self.everyone.add(root)
        else:
            self.principals.setdefault(principal, set()).add(root)

    def within(self, query: regions.Query) -> "Scope":
        """Return the part of the scope that overlaps the resources of a query."""
        limits = query.roots
        return Scope(
            everyone={part for root in self.everyone for part in regions.within(root, limits)},
            principals={
                principal: {part for root in roots for part in regions.within(root, limits)}
                for principal, roots in self.principals.items()
            },
            changed=self.changed,
        )

    def reduced(self) -> "Scope":
        """Return the same scope without roots inside other roots."""
        everyone = set(regions.topmost(self.everyone))
        principals = {
            principal: {root for root in regions.topmost(chain(everyone, roots)) if root not in everyone}
            for principal, roots in self.principals.items()
        }
        return Scope(everyone, {principal: roots for principal, roots in principals.items() if roots}, self.changed)


def whole_scope() -> Scope:
    """Return the scope of all requests."""
    return Scope(everyone=set(_EVERYTHING), changed=None)


def scope_of(old: Policy, new: Policy, changed: Iterable[CellKey]) -> Scope:
    """Return the scope in which two policies may differ, given the cells in which their ACLs differ."""
    differing: set[str] = set()
    scope = Scope(changed=differing)
    before, after = old.settings, new.settings
    open_to_all = before.allow_everyone or after.allow_everyone
    if before.cidr is not after.cidr:
        states = (old.acls,) if old.acls.index is new.acls.index else (old.acls, new.acls)
        changed = chain(changed, map(cell_of, chain.from_iterable(map(range_rules, states))))
    for key in changed:
        differing.add(key.principal)
        root = regions.root_of_pattern(key.kind, key.name, literal=key.literal)
        if root is not None:
            # Where resources without ACLs are open, an ACL for one principal closes its resource to everyone else.
            scope.add(WILDCARD_PRINCIPAL if open_to_all else key.principal, root)
    for principal in before.super_users ^ after.super_users:
        for root in _EVERYTHING:
            if principal != WILDCARD_PRINCIPAL:
                scope.add(principal, root)
    if before.allow_everyone is not after.allow_everyone:
        scope.everyone.update(_EVERYTHING)
    elif before.documented is not after.documented:
        scope.everyone.update(
            regions.Root(root.kind, WILDCARD, literal=False) for root in _EVERYTHING if not root.literal
        )
    return scope.reduced()


# The exploration of a scope: changes by root and principal, with equal ones folded into regions.


Changes: TypeAlias = dict[Change, int]
"""The operations of each change, as a mask."""


class Finding(NamedTuple):
    """A change for some principals below one root."""

    kind: int
    change: Change
    operations: int
    principals: regions.Principals


@frozen(eq=False, kw_only=True)
class Exploration:
    """Two policies, and a query."""

    old: View
    new: View
    query: regions.Query
    _grounds: dict[regions.Root, Ground] = field(factory=dict, init=False)
    """By root: the evaluation of a principal without ACLs, where many principals are evaluated."""
    _hosts: dict[regions.Root, set[str]] = field(factory=dict, init=False)
    """By root: the hosts of the ACLs of everyone."""

    @classmethod
    def of(cls, old: Policy, new: Policy, query: regions.Query) -> "Exploration":
        """Return the exploration of two policies."""
        return cls(old=View.of(old), new=View.of(new), query=query)

    def explore(self, scope: Scope, *, unnamed: bool = False) -> Iterator[regions.Difference]:
        """Yield the differences in a scope, folded, in a stable order; `unnamed`: those of all principals but some."""
        shared = Counter(root for roots in scope.principals.values() for root in roots)
        if unnamed:
            return _folded(
                finding for root in sorted(scope.everyone) for finding in self._of_unnamed(root, scope.changed)
            )
        findings = chain(
            chain.from_iterable(self._at_root(root, scope.changed) for root in sorted(scope.everyone)),
            chain.from_iterable(
                self._of_principal(principal, roots, shared)
                for principal, roots in sorted(scope.principals.items())
                if principal in self.query.principals
            ),
        )
        return _folded(findings)

    def _of_principal(
        self, principal: str, roots: Iterable[regions.Root], shared: Counter[regions.Root]
    ) -> Iterator[Finding]:
        for root in sorted(roots):
            if shared[root] > 1:
                self._ground(root)
            old, new = self.old.of_principal(root, principal), self.new.of_principal(root, principal)
            for change, operations in self._changes(root, principal, old, new).items():
                yield Finding(root.kind, change, operations, regions.only(principal))

    def _at_root(self, root: regions.Root, changed: set[str] | None) -> Iterator[Finding]:
        subjects = self.query.principals
        everyone: Changes = {}
        if subjects.complement:
            everyone = self._ground(root).changes
        elif len(subjects.named) > 1:
            self._ground(root)
        others = self._of_others(root, changed)
        if subjects.complement:
            others.update((principal, {}) for principal in subjects.named)
        for change, operations, excepted in _shared(everyone, others):
            yield Finding(root.kind, change, operations, regions.everyone_but(*excepted))
        for principal, changes in others.items():
            if changes is not everyone:
                for change, operations in changes.items():
                    rest = operations & ~everyone.get(change, 0)
                    if rest:
                        yield Finding(root.kind, change, rest, regions.only(principal))

    def _of_unnamed(self, root: regions.Root, changed: set[str] | None) -> Iterator[Finding]:
        """Yield those of `_at_root` that are of all principals but some."""
        everyone = self._ground(root).changes if self.query.principals.complement else {}
        if everyone:
            others = self._of_others(root, changed, unnamed=True)
            others.update((principal, {}) for principal in self.query.principals.named)
            for change, operations, excepted in _shared(everyone, others):
                yield Finding(root.kind, change, operations, regions.everyone_but(*excepted))

    def _of_others(self, root: regions.Root, changed: set[str] | None, *, unnamed: bool = False) -> dict[str, Changes]:
        """Return the changes below a root for each principal of the query whose changes may differ from everyone's.

        `changed` are the principals whose ACLs changed; None: it may be any principal. `unnamed`: only changes that
        principals share with everyone are needed.
        """
        supers = self.old.settings.super_users | self.new.settings.super_users
        by_principal: dict[str, Changes] = {}
        cache: dict[tuple[Cells, Cells], Changes] = {}
        shares = self.query.principals.complement
        for principal, before, after in self._cells_of_others(root, changed, supers):
            if principal in supers:
                by_principal[principal] = self._changes(root, principal, before, after, shares=shares)
            elif not self.query.principals.complement or before != after or not self._alike(root):
                changes = cache.get((before, after))
                if changes is None:
                    changes = cache[before, after] = self._changes(
                        root, principal, before, after, shares=shares, unnamed=unnamed
                    )
                by_principal[principal] = changes
        return by_principal

    def _cells_of_others(
        self, root: regions.Root, changed: set[str] | None, supers: frozenset[str]
    ) -> Iterator[tuple[str, Cells, Cells]]:
        """Yield the principals whose changes may differ from everyone's, with their cells in both policies, by name."""
        subjects = self.query.principals
        few = subjects.named if not subjects.complement else None
        among: Collection[str] | None = None
        if few is None and changed is not None and self._alike(root):
            among = changed | supers
            if not self.old.is_narrow(root, len(among)) or not self.new.is_narrow(root, len(among)):
                few = tuple(among)
        if few is not None:
            for principal in sorted(few):
                if principal in subjects and principal != WILDCARD_PRINCIPAL and ":" in principal:
                    yield principal, self.old.of_principal(root, principal), self.new.of_principal(root, principal)
            return
        old, new = self.old.by_principal(root), self.new.by_principal(root)
        for principal in sorted((old.keys() | new.keys() | supers) - {WILDCARD_PRINCIPAL}):
            if principal in subjects and (among is None or principal in among):
                yield principal, old.get(principal, NO_CELLS), new.get(principal, NO_CELLS)

    def _alike(self, root: regions.Root) -> bool:
        """Return whether a principal whose own ACLs did not change has the same changes as everyone.

        Its ACLs decide the same as before. allow.everyone opens or closes only names without ACLs, where the principal
        is treated as everyone.
        """
        old, new = self.old.settings, self.new.settings
        same_settings = old.documented is new.documented and old.cidr is new.cidr
        return same_settings and self.old.of_everyone(root) == self.new.of_everyone(root)

    def _ground(self, root: regions.Root) -> Ground:
        """Return the evaluation of a principal without ACLs."""
        ground = self._grounds.get(root)
        if ground is None:
            scene = self._scene(root, self._hosts_of_everyone(root))
            sides = (view.side(root, NO_CELLS) for view in (self.old, self.new))
            ground = self._grounds[root] = Ground.of(scene, *sides)
        return ground

    def _changes(
        self,
        root: regions.Root,
        principal: str,
        old: Cells,
        new: Cells,
        *,
        shares: bool = False,
        unnamed: bool = False,
    ) -> Changes:
        """Return the changes below a root for a principal with these cells.

        `shares`: those that it shares with everyone are everyone's. `unnamed`: at least those of everyone.
        """
        is_super = [principal in view.settings.super_users for view in (self.old, self.new)]
        if all(is_super):
            return {}
        hosts = {*old.hosts(), *new.hosts()}
        same_kafka = self.old.settings.cidr is self.new.settings.cidr
        is_apart = any(is_super) or bool(old.wildcard) or bool(new.wildcard) or not same_kafka
        ground = self._grounds.get(root)
        if ground is not None and not is_apart and ground.is_useful((*old.named, *new.named)):
            everyone = self._hosts_of_everyone(root)
            classes = ground.scene.hosts if hosts <= everyone else self._host_classes(hosts | everyone)
            shared = ground.shared_with(classes, old.named, new.named) if unnamed else None
            return ground.with_own(classes, old.named, new.named, shares=shares) if shared is None else shared
        scene = self._scene(root, chain(hosts, self._hosts_of_everyone(root)))
        sides = (
            view.side(root, cells, is_super=is_in)
            for view, cells, is_in in zip((self.old, self.new), (old, new), is_super, strict=True)
        )
        return evaluate(scene, *sides, beside=ground if shares else None)

    def _hosts_of_everyone(self, root: regions.Root) -> set[str]:
        hosts = self._hosts.get(root)
        if hosts is None:
            views = (self.old, self.new)
            hosts = self._hosts[root] = {WILDCARD}.union(*(view.of_everyone(root).hosts() for view in views))
        return hosts

    def _scene(self, root: regions.Root, hosts: Iterable[str]) -> Scene:
        return Scene(root=root, hosts=self._host_classes(hosts), operations=self.query.operations)

    def _host_classes(self, hosts: Iterable[str]) -> HostClasses:
        if self.query.host is not None:
            return OneHost(self.query.host)
        named = {host for host in hosts if host != WILDCARD}
        return partition(named, cidr=self.old.settings.cidr or self.new.settings.cidr) if named else _ANYWHERE


_ANYWHERE = partition((), cidr=False)
"""The single class of all hosts, where no rule names any."""


def _shared(everyone: Changes, others: dict[str, Changes]) -> Iterator[tuple[Change, int, tuple[str, ...]]]:
    """Yield everyone's changes with the principals that do not share them; operations with equal ones are combined."""
    for change, operations in everyone.items():
        lacking: dict[int, list[str]] = {}
        for principal, changes in others.items():
            missing = 0 if changes is everyone else operations & ~changes.get(change, 0)
            if missing:
                lacking.setdefault(missing, []).append(principal)
        groups = [operations]
        for missing in lacking:
            groups = [part for group in groups for part in (group & missing, group & ~missing) if part]
        for group in groups:
            excepted = chain.from_iterable(names for missing, names in lacking.items() if missing & group)
            yield change, group, tuple(excepted)


def _folded(findings: Iterable[Finding]) -> Iterator[regions.Difference]:
    """Yield differences in which equal changes are folded: first by names, then by principals."""
    names_of: dict[
        tuple[int, regions.Direction, bool, regions.Hosts, int, regions.Principals], list[regions.Names]
    ] = {}
    for kind, change, operations, principals in findings:
        key = (kind, change.direction, change.by_kafka, change.hosts, operations, principals)
        names_of.setdefault(key, []).append(change.names)
    principals_of: dict[
        tuple[int, regions.Direction, bool, regions.Hosts, int, regions.Names], list[regions.Principals]
    ] = {}
    for (kind, direction, by_kafka, hosts, operations, principals), parts in names_of.items():
        names = tuple(dict.fromkeys(chain.from_iterable(parts)))
        principals_of.setdefault((kind, direction, by_kafka, hosts, operations, names), []).append(principals)
    for (kind, direction, by_kafka, hosts, operations, names), holders in principals_of.items():
        for principals in _united(holders):
            region = regions.Region(
                resource_type=ResourceType(kind), operations=operations, principals=principals, hosts=hosts, names=names
            )
            yield regions.Difference(direction=direction, region=region, by_kafka=by_kafka)


def _united(holders: list[regions.Principals]) -> Iterator[regions.Principals]:
    yield from (each for each in holders if each.complement)
    named = [principal for each in holders if not each.complement for principal in each.named]
    if named:
        yield regions.only(*named)
