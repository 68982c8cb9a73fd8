"""A plain engine of differences: each principal is evaluated with all cells of `User:*`, on every class of hosts.

The reference of aclog.analysis.engine, for few rules: it takes (principals) x (cells of `User:*`) x (hosts).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, summarize_address_range
from itertools import chain, pairwise
from operator import or_
from typing import NamedTuple, Protocol, TypeAlias

from attrs import define, evolve, field, frozen

from aclog.analysis.engine.evaluation import Change, Node, Side
from aclog.analysis.engine.exploration import (
    NO_CELLS,
    Cells,
    Finding,
    Scope,
    View,
    _folded,
    _shared,
    changed_cells,
    scope_of,
    whole_scope,
)
from aclog.analysis.engine.host_classes import is_address
from aclog.analysis.policy import Policy
from aclog.analysis.regions import (
    EVERYWHERE,
    REQUESTED,
    Difference,
    Direction,
    Hosts,
    Literal,
    NamePart,
    Names,
    Query,
    Region,
    Root,
    Subtree,
    everyone_but,
    only,
)
from aclog.authorizer.acl import address_number, cidr_range, in_cidr
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL


def naive_differences(old: Policy, new: Policy, query: Query | None = None) -> list[Difference]:
    """Return what aclog.analysis.comparison.differences yields."""
    restriction = query or Query()
    scope = scope_of(old, new, changed_cells(old.acls.index, new.acls.index)).within(restriction)
    return list(Exploration.of(old, new, restriction).explore(scope))


def naive_allowed(policy: Policy, query: Query) -> list[Region]:
    """Return what aclog.analysis.comparison.allowed yields."""
    nothing = Policy(AclsImage.empty())
    found = Exploration.of(nothing, policy, query).explore(whole_scope().within(query))
    return [each.region for each in found]


def naive_denied(policy: Policy, query: Query) -> list[Region]:
    """Return what aclog.analysis.comparison.denied yields."""
    everything = Policy(AclsImage.empty(), evolve(policy.settings, allow_everyone=True))
    found = Exploration.of(everything, policy, query).explore(whole_scope().within(query))
    return [each.region for each in found]


# Classes of client addresses: two addresses are in one class if they match the same ACLs.


ELSEWHERE = 1
"""The bit of the class of all addresses that no ACL names; a partition always has this class."""


class HostClasses(Protocol):
    """Classes by number; sets of them are masks with bit n for class n."""

    @property
    def count(self) -> int:
        """The number of classes."""
        ...

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return the classes that the host of an ACL matches; `cidr`: it may be a range."""
        ...

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the addresses of some classes, in as few disjoint sets as possible."""
        ...


@frozen(eq=False)
class OneHost:
    """The single class of one address, for questions about one client."""

    host: str
    count: int = 1

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return 1 if the host of an ACL matches the address."""
        return int(host in (WILDCARD, self.host) or (cidr and "/" in host and in_cidr(host, self.host)))

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the address."""
        return [Hosts(entries=(self.host,))] if classes else []


_ZERO = "0.0.0.0"  # an address in a set, not to listen on


class Interval(NamedTuple):
    """The addresses from `first` to `last`, both included, with any scope."""

    version: int
    first: int
    last: int

    def holds(self, number: int) -> bool:
        """Return whether an address of the same version lies in the interval."""
        return self.first <= number <= self.last


@frozen(eq=False, kw_only=True)
class Partition:
    """All addresses, partitioned by the hosts of some ACLs: single addresses, and ranges if they are enabled."""

    count: int
    _matched: Mapping[str, int]
    """By address or range."""
    _intervals: tuple[tuple[Interval, ...], ...]
    """By class; none for class 0 and for a single IPv6 address."""
    _texts: Mapping[str, tuple[int, int]]
    """By IPv6 address: its class, and the class of all others of the same number, as bits.

    An ACL on an address matches its text, while a range matches any scope (`%1`) of its numbers, so such an address
    cannot be cut out of an interval.
    """

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return the classes that the host of an ACL matches."""
        if host == WILDCARD:
            return (1 << self.count) - 1
        return self._matched.get(host, 0) if cidr or "/" not in host else 0

    def classes_of(self, hosts: Hosts) -> int:
        """Return the classes of a set of addresses, whose texts must all be in the partition."""
        classes = reduce(or_, (self._matched.get(entry, 0) for entry in hosts.entries), 0)
        if hosts.complement:
            classes = ((1 << self.count) - 1) & ~classes
        return classes & ~reduce(or_, (self._matched.get(address, 0) for address in hosts.except_addresses), 0)

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the addresses of some classes, in as few disjoint sets as possible."""
        if classes == (1 << self.count) - 1:
            return [EVERYWHERE]
        if not classes:
            return []
        return self._all_but(classes) if classes & ELSEWHERE else self._exactly(classes)

    def _all_but(self, classes: int) -> list[Hosts]:
        out, included = self._texts_against(~classes)
        entries = {*_entries(self._intervals_of(~classes)), *out}
        parts = [Hosts(entries=tuple(sorted(entries)), complement=True)]
        # An omitted range would take along addresses that belong to the result.
        return [*parts, Hosts(entries=included)] if included else parts

    def _exactly(self, classes: int) -> list[Hosts]:
        intervals = list(self._intervals_of(classes))
        texts, out = self._texts_against(classes)
        if not out:
            return [Hosts(entries=tuple(sorted({*_entries(intervals), *texts})))]
        if any((each.version, each.first) == (4, 0) for each in intervals):
            texts = (_ZERO, *texts)
        ranges = Hosts(entries=tuple(sorted(_entries(intervals, as_ranges=True))), except_addresses=out)
        return [ranges, Hosts(entries=texts)] if texts else [ranges]

    def _texts_against(self, classes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the IPv6 addresses of some classes outside their ranges, and those of other classes inside."""
        texts = self._texts.items()
        alone = sorted(text for text, (own, others) in texts if own & classes and not others & classes)
        inside = sorted(text for text, (own, others) in texts if others & classes and not own & classes)
        return tuple(alone), tuple(inside)

    def _intervals_of(self, classes: int) -> Iterator[Interval]:
        for number, intervals in enumerate(self._intervals):
            if classes >> number & 1:
                yield from intervals


def _entries(intervals: Iterable[Interval], *, as_ranges: bool = False) -> Iterator[str]:
    """Yield the addresses and ranges that cover these intervals; for IPv6 only ranges, which include any scope.

    0.0.0.0 is yielded separately, as no range contains it (aclog.authorizer.acl); with `as_ranges` it is omitted.
    """
    joined: list[Interval] = []
    for each in sorted(intervals):
        if joined and joined[-1].version == each.version and joined[-1].last + 1 == each.first:
            joined[-1] = joined[-1]._replace(last=each.last)
        else:
            joined.append(each)
    for version, first, last in joined:
        if (version, first) == (4, 0) and not as_ranges:
            yield _ZERO
        if (version, last) == (4, 0):
            continue
        for network in _networks(version, first, last):
            single = version == 4 and network.num_addresses == 1 and not as_ranges
            yield str(network.network_address) if single else str(network)


def _networks(version: int, first: int, last: int) -> Iterator[IPv4Network | IPv6Network]:
    if version == 4:
        networks = list(summarize_address_range(IPv4Address(first), IPv4Address(last)))
        if first == 1:
            # A range that begins at 0.0.0.0 does not contain it. 0.0.0.0/0 is all other addresses: 32 ranges otherwise.
            from_zero = list(summarize_address_range(IPv4Address(0), IPv4Address(last)))
            networks = min(networks, from_zero, key=len)
        yield from networks
        return
    for network in summarize_address_range(IPv6Address(first), IPv6Address(last)):
        if network.network_address.ipv4_mapped is None:  # such clients appear as IPv4
            yield network


# The partition of all client addresses by the hosts of some ACLs.


_Around: TypeAlias = tuple[int, ...]
"""The ranges that contain an address, by number, the innermost last: ranges in CIDR notation never overlap in part."""


def partition(hosts: Iterable[str], *, cidr: bool) -> Partition:
    """Return the partition by the hosts of ACLs; texts that match no client are ignored.

    `cidr`: the host of an ACL may be a range.
    """
    named = sorted(host for host in hosts if host != WILDCARD)
    addresses = list(filter(is_address, named))
    return _partition(addresses, _ranges(named) if cidr else {})


def _ranges(hosts: Iterable[str]) -> dict[str, Interval]:
    ranges = {}
    for host in hosts:
        parsed = cidr_range(host)
        if parsed is not None:
            ranges[host] = Interval(parsed.version, parsed.first, parsed.last)
    return ranges


@define
class _Classes:
    """Classes under construction: each has the addresses inside the same ranges, or a single address."""

    matched: dict[str, int] = field(factory=dict)
    """By address and by range: classes, as bits."""
    intervals: list[list[Interval]] = field(factory=lambda: [[]])
    _numbers: dict[tuple[_Around, str], int] = field(factory=lambda: {((), ""): 0})

    def add(self, interval: Interval | None, around: _Around, *, address: str) -> int:
        """Add an interval to the class of its surrounding ranges, or of a single address; return the class as a bit."""
        number = self._numbers.setdefault((around, address), len(self._numbers))
        if number == len(self.intervals):
            self.intervals.append([])
        if number and interval is not None:
            self.intervals[number].append(interval)
        if address:
            self.matched[address] = 1 << number
        return 1 << number


def _partition(addresses: Iterable[str], ranges: Mapping[str, Interval]) -> Partition:
    spans = sorted(set(ranges.values()), key=lambda span: (span.version, span.first, -span.last))
    points = {int(IPv4Address(each)): each for each in addresses if ":" not in each}
    inside = [0] * len(spans)
    classes = _Classes()
    for interval, around in _stretches(spans, points):
        single = interval.version == 4 and interval.first == interval.last
        bit = classes.add(interval, around, address=points.get(interval.first, "") if single else "")
        for span in around:
            inside[span] |= bit
    texts = {}
    for text in (each for each in addresses if ":" in each):
        number = address_number(text)
        numbers = (n for n, span in enumerate(spans) if number and span.version == 6 and span.holds(number.number))
        around = tuple(numbers)
        others = classes.add(None, around, address="")
        own = classes.add(None, around, address=text)
        for span in around:
            inside[span] |= own
        texts[text] = own, others
    at = {span: number for number, span in enumerate(spans)}
    return Partition(
        count=len(classes.intervals),
        matched=classes.matched | {text: inside[at[span]] for text, span in ranges.items()},
        intervals=tuple(map(tuple, classes.intervals)),
        texts=texts,
    )


def _stretches(spans: list[Interval], points: Iterable[int]) -> Iterator[tuple[Interval, _Around]]:
    """Yield the intervals between the ends of ranges and IPv4 addresses, with the ranges around each."""
    cuts = {(span.version, at) for span in spans for at in (span.first, span.last + 1)}
    cuts.update((4, point + step) for point in points for step in (0, 1))
    if any(span.version == 4 for span in spans):
        cuts.update(((4, 0), (4, 1)))  # no range contains 0.0.0.0 (aclog.authorizer.acl)
    opened: list[int] = []
    following = 0
    for (version, first), (next_version, after) in pairwise(sorted(cuts)):
        opened = [each for each in opened if spans[each].version == version and spans[each].last >= first]
        while following < len(spans) and spans[following][:2] == (version, first):
            opened.append(following)
            following += 1
        if next_version == version:
            yield Interval(version, first, after - 1), () if (version, first) == (4, 0) else tuple(opened)


# The names below a root, as a tree of classes: a single name, or a prefix without the names of its descendants.


@frozen(eq=False)
class NameTree:
    """Nodes in the order of their names: each one after its parent."""

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, root: Root, names: Iterable[tuple[str, bool]]) -> "NameTree":
        """Return the tree of the patterns (name, is LITERAL) that lie below the root; others are ignored."""
        if root.literal:
            return cls((Node(root.name, literal=True, parent=-1),))
        below = {(name, literal) for name, literal in names if name and name.startswith(root.name)}
        below.discard((root.name, False))
        nodes = [Node(root.name, literal=False, parent=-1)]
        chain = [0]
        for name, literal in sorted(below):
            while not name.startswith(nodes[chain[-1]].name):
                chain.pop()
            nodes.append(Node(name, literal, chain[-1]))
            if not literal:
                chain.append(len(nodes) - 1)
        return cls(tuple(nodes))

    def names(self, selection: Sequence[bool]) -> Names:
        """Return the names of the selected nodes, in as few parts as the tree allows."""
        parts: list[_Part] = []
        part_of: list[_Part | None] = []
        for node, is_chosen in zip(self.nodes, selection, strict=True):
            part = part_of[node.parent] if node.parent >= 0 else None
            if is_chosen and part is None:
                part = _Part(node.name, node.literal, [], [])
                parts.append(part)
            elif not is_chosen and part is not None:
                (part.except_literals if node.literal else part.except_prefixes).append(node.name)
                part = None
            part_of.append(part)
        return tuple(part.frozen() for part in parts)


class _Part(NamedTuple):
    name: str
    literal: bool
    except_prefixes: list[str]
    except_literals: list[str]

    def frozen(self) -> NamePart:
        """Return the part once all exceptions are known."""
        if self.literal:
            return Literal(name=self.name)
        return Subtree(
            prefix=self.name,
            except_prefixes=tuple(self.except_prefixes),
            except_literals=tuple(self.except_literals),
        )


# The differences between two sides for one subject below one root, by operations, hosts and names.


Masks: TypeAlias = tuple[int, ...]
"""By class of hosts: a mask."""


@frozen(eq=False, kw_only=True)
class Scene:
    """The frame of an evaluation: a root, classes of hosts, and operations."""

    root: Root
    hosts: HostClasses
    operations: int = REQUESTED


@frozen(eq=False)
class Everyone:
    """Everyone's sides, and the differences between them."""

    old: Side
    new: Side
    changes: dict[Change, int]


def evaluate(scene: Scene, old: Side, new: Side, everyone: Everyone | None = None) -> dict[Change, int]:
    """Return exactly the differences between two sides, each with its operations as a mask.

    Those of `everyone` are shared, by operation, if the subject has all of them; then it has own ones where it has more
    than everyone, and on all names below.
    """
    tree = NameTree.of(scene.root, _names(scene.root, old, new))
    before, after = _allowed(scene, tree, old), _allowed(scene, tree, new)
    gained, lost = _without(after, before), _without(before, after)
    columns = [(Direction.GAINED, False, gained), (Direction.LOST, False, lost)]
    changes: dict[Change, int] = {}
    if everyone is not None and everyone.changes and old.cidr is new.cidr:
        was, now = _allowed(scene, tree, everyone.old), _allowed(scene, tree, everyone.new)
        theirs = {Direction.GAINED: _without(now, was), Direction.LOST: _without(was, now)}
        lacks = {each: _any(chain.from_iterable(_without(theirs[each], column))) for each, _, column in columns}
        columns = [(each, False, _apart(tree, column, theirs[each], lacks[each])) for each, _, column in columns]
        for change, operations in everyone.changes.items():
            if operations & ~lacks[change.direction]:
                changes[change] = operations & ~lacks[change.direction]
    if old.cidr is not new.cidr:
        upgraded = _allowed(scene, tree, evolve(old, cidr=new.cidr))
        columns = [
            (Direction.GAINED, True, _both(gained, upgraded)),
            (Direction.GAINED, False, _without(gained, upgraded)),
            (Direction.LOST, True, _without(lost, upgraded)),
            (Direction.LOST, False, _both(lost, upgraded)),
        ]
    for direction, by_kafka, column in columns:
        for operations, hosts, names in _products(scene, tree, column):
            change = Change(direction, hosts, names, by_kafka)
            changes[change] = changes.get(change, 0) | operations
    return changes


def _apart(tree: NameTree, column: Sequence[Masks], everyone: Sequence[Masks], lacks: int) -> list[Masks]:
    apart = []
    for number, masks in enumerate(column):
        more, at = lacks, number
        while at >= 0:
            more |= _any(mask & ~other for mask, other in zip(column[at], everyone[at], strict=True))
            at = tree.nodes[at].parent
        apart.append(tuple(mask & more for mask in masks))
    return apart


def _any(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def _without(column: Sequence[Masks], other: Sequence[Masks]) -> list[Masks]:
    return [tuple(mask & ~less for mask, less in zip(*each, strict=True)) for each in zip(column, other, strict=True)]


def _both(column: Sequence[Masks], other: Sequence[Masks]) -> list[Masks]:
    return [tuple(mask & also for mask, also in zip(*each, strict=True)) for each in zip(column, other, strict=True)]


def _names(root: Root, old: Side, new: Side) -> Iterator[tuple[str, bool]]:
    wildcard = False
    for side in old, new:
        for cell in side.cells:
            yield cell.name, cell.literal
        if side.coverage is not None:
            yield from side.coverage.under
        wildcard |= bool(side.wildcard) or (side.coverage is not None and side.coverage.wildcard)
    if wildcard and WILDCARD.startswith(root.name):
        # LITERAL `*` ends here: it does not cover longer names that begin with `*`.
        yield WILDCARD, True
        yield WILDCARD, False


def _allowed(scene: Scene, tree: NameTree, side: Side) -> list[Masks]:
    """Return the allowed operations at each node of the tree."""
    count = scene.hosts.count
    if side.is_super:
        return [(scene.operations,) * count] * len(tree.nodes)
    root = tree.nodes[0]
    here: dict[tuple[str, bool], list[tuple[int, int]]] = defaultdict(list)
    for cell in side.cells:
        # A pattern that covers the whole root counts as if it were on the root itself.
        covers = not cell.literal and root.name.startswith(cell.name)
        key = (root.name, root.literal) if covers else (cell.name, cell.literal)
        here[key].append((scene.hosts.matched(cell.host, cidr=side.cidr), cell.mask))
    wildcard = _with((0,) * count, [(scene.hosts.matched(c.host, cidr=side.cidr), c.mask) for c in side.wildcard])
    has_wildcard = any(wildcard)
    inherited: list[Masks] = []
    column = []
    for node in tree.nodes:
        masks = inherited[node.parent] if node.parent >= 0 else (0,) * count
        own = here.get((node.name, node.literal))
        if own:
            masks = _with(masks, own)
        inherited.append(masks)
        if has_wildcard and (side.documented or not node.hidden):
            masks = tuple(mask | more for mask, more in zip(masks, wildcard, strict=True))
        column.append(tuple(mask & ~(mask >> 16) & scene.operations for mask in masks))
    if side.coverage is not None:
        _open_uncovered(scene, tree, side, column)
    return column


def _with(masks: Masks, cells: Iterable[tuple[int, int]]) -> Masks:
    """Return the masks with more cells; each cell has a mask of host classes and a mask of operations."""
    more = list(masks)
    for classes, mask in cells:
        for number in range(len(more)):
            if classes >> number & 1:
                more[number] |= mask
    return tuple(more)


def _open_uncovered(scene: Scene, tree: NameTree, side: Side, column: list[Masks]) -> None:
    """Allow every operation at the nodes without ACLs."""
    coverage = side.coverage
    if coverage is None or coverage.whole:
        return
    everything = (scene.operations,) * scene.hosts.count
    under = set(coverage.under)
    covered: list[bool] = []
    for number, node in enumerate(tree.nodes):
        above = node.parent >= 0 and covered[node.parent]
        covered.append(above or (node.name, node.literal) in under)
        if not covered[-1] and not (coverage.wildcard and (side.documented or not node.hidden)):
            column[number] = everything


def _products(scene: Scene, tree: NameTree, column: Sequence[Masks]) -> Iterator[tuple[int, Hosts, Names]]:
    """Yield products of operations, hosts and names that together equal a column of masks."""
    distinct = set(column)
    if len(distinct) == 1 and not any(column[0]):
        return
    for operations in _alike({mask for masks in distinct for mask in masks}, scene.operations):
        bit = operations & -operations
        by_names: dict[tuple[bool, ...], int] = {}
        for number in range(scene.hosts.count):
            selection = tuple(bool(masks[number] & bit) for masks in column)
            if True in selection:
                by_names[selection] = by_names.get(selection, 0) | 1 << number
        for selection, classes in by_names.items():
            names = tree.names(selection)
            for hosts in scene.hosts.hosts(classes):
                yield operations, hosts, names


def _alike(masks: Iterable[int], operations: int) -> list[int]:
    """Return groups of operations that occur in the same masks; operations that occur in none are omitted."""
    groups = [operations]
    for mask in masks:
        groups = [part for group in groups for part in (group & mask, group & ~mask) if part]
    used = 0
    for mask in masks:
        used |= mask
    return [group for group in groups if group & used]


# The exploration of a scope: changes by root and principal, with equal ones folded into regions.


Changes: TypeAlias = dict[Change, int]
"""The operations of each change, as a mask."""


@frozen(eq=False, kw_only=True)
class Exploration:
    """Two policies, and a query."""

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
        subjects = self.query.principals
        everyone = self._changes(root, None, NO_CELLS, NO_CELLS) if subjects.complement else {}
        others = self._of_others(root, changed, everyone)
        if subjects.complement:
            others.update((principal, {}) for principal in subjects.named)
        for change, operations, excepted in _shared(everyone, others):
            yield Finding(root.kind, change, operations, everyone_but(*excepted))
        for principal, changes in others.items():
            for change, operations in changes.items():
                rest = operations & ~everyone.get(change, 0)
                if rest:
                    yield Finding(root.kind, change, rest, only(principal))

    def _of_others(self, root: Root, changed: set[str] | None, everyone: Changes) -> dict[str, Changes]:
        """Return the changes below a root for each principal of the query whose changes may differ from everyone's.

        `changed` are the principals whose ACLs changed; None: it may be any principal.
        """
        supers = self.old.settings.super_users | self.new.settings.super_users
        by_principal: dict[str, Changes] = {}
        cache: dict[tuple[Cells, Cells], Changes] = {}
        for principal, before, after in self._cells_of_others(root, changed, supers):
            if principal in supers:
                by_principal[principal] = self._changes(root, principal, before, after, everyone)
            elif not self.query.principals.complement or before != after or not self._alike(root):
                if (before, after) not in cache:
                    cache[before, after] = self._changes(root, principal, before, after, everyone)
                by_principal[principal] = cache[before, after]
        return by_principal

    def _cells_of_others(
        self, root: Root, changed: set[str] | None, supers: frozenset[str]
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

    def _alike(self, root: Root) -> bool:
        """Return whether a principal whose own ACLs did not change has the same changes as everyone.

        Its ACLs decide the same as before. allow.everyone opens or closes only names without ACLs, where the principal
        is treated as everyone.
        """
        old, new = self.old.settings, self.new.settings
        same_settings = old.documented is new.documented and old.cidr is new.cidr
        return same_settings and self.old.of_everyone(root) == self.new.of_everyone(root)

    def _changes(
        self, root: Root, principal: str | None, old: Cells, new: Cells, everyone: Changes | None = None
    ) -> Changes:
        """Return the changes below a root for a principal with these cells; None: for a principal without cells.

        `everyone`: the changes of such a principal, which this one shares.
        """
        sides = [
            view.side(root, cells, is_super=principal in view.settings.super_users)
            for view, cells in ((self.old, old), (self.new, new))
        ]
        if sides[0].is_super and sides[1].is_super:
            return {}
        hosts = chain(old.hosts(), new.hosts(), self.old.of_everyone(root).hosts(), self.new.of_everyone(root).hosts())
        scene = Scene(root=root, hosts=self._host_classes(hosts), operations=self.query.operations)
        if not everyone:
            return evaluate(scene, *sides)
        of_everyone = (view.side(root, NO_CELLS) for view in (self.old, self.new))
        return evaluate(scene, *sides, Everyone(*of_everyone, everyone))

    def _host_classes(self, hosts: Iterable[str]) -> HostClasses:
        if self.query.host is not None:
            return OneHost(self.query.host)
        return partition(hosts, cidr=self.old.settings.cidr or self.new.settings.cidr)
