"""The evaluation of one subject below one root: the names, hosts and operations on which two policies differ."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, reduce
from itertools import chain, pairwise, repeat
from operator import and_, or_, xor
from typing import NamedTuple, TypeAlias

from attrs import evolve, field

from aclog.analysis.engine.host_classes import HostClasses, Partition, Runs
from aclog.analysis.policy import Cell
from aclog.analysis.regions import REQUESTED, Direction, Hosts, Literal, NamePart, Names, Root, Subtree
from aclog.authorizer.codes import WILDCARD
from aclog.metalog.values import define, frozen

# The ACLs of one policy that apply to one subject below one root.


@frozen(eq=False, kw_only=True)
class Coverage:
    """Where a policy has candidate ACLs below a root, for any principal; sufficient for allow.everyone."""

    whole: bool
    """Whether a prefixed pattern covers the root."""
    wildcard: bool
    """Whether there are ACLs on LITERAL `*`."""
    under: tuple[tuple[str, bool], ...] = ()
    """The name of each pattern below the root, and whether it is LITERAL."""


@frozen(eq=False, kw_only=True)
class Side:
    """The ACLs and the default that decide on a subject's requests below a root."""

    cells: tuple[Cell, ...] = ()
    """The cells of the subject and of `User:*`, except those on LITERAL `*`."""
    wildcard: tuple[Cell, ...] = ()
    """The cells on LITERAL `*`."""
    coverage: Coverage | None = None
    """None: a request without matching ACL is denied; otherwise it is allowed on names without ACLs."""
    is_super: bool = False
    documented: bool = False
    cidr: bool = False

    def opens(self, node: "Node") -> bool:
        """Return whether the names of a node that no pattern below the root covers are open to everyone."""
        coverage = self.coverage
        if coverage is None or coverage.whole:
            return False
        return not (coverage.wildcard and (self.documented or not node.hidden))


# The names below a root, as a tree of classes: a single name, or a prefix without the names of its descendants.


class Node(NamedTuple):
    """A class of names that match the same ACLs."""

    name: str
    literal: bool
    parent: int
    """The node of the longest prefix above it; -1 for the root."""

    @property
    def hidden(self) -> bool:
        """Whether LITERAL `*` does not cover these names in Kafka: they begin with `*` and are longer."""
        # The class of the prefix `*` has only longer names: `*` itself is a node of its own wherever it matters.
        return self.name.startswith(WILDCARD) and not (self.literal and self.name == WILDCARD)


@frozen(eq=False, slots=False)
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

    def names(self, edges: Sequence[int]) -> Names:
        """Return the names of the selected nodes, in as few parts as the tree allows.

        `edges`: the nodes that are selected while their parent is not, or the other way round, by number. They are
        the parts and their exceptions.
        """
        parts: list[_Part] = []
        ends = self.ends if len(edges) > 1 else range(1, len(self.nodes) + 1)
        above: list[tuple[int, _Part | None]] = []
        for number in edges:
            while above and above[-1][0] <= number:
                above.pop()
            node, part = self.nodes[number], above[-1][1] if above else None
            if part is None:
                part = _Part(node.name, node.literal, [], [])
                parts.append(part)
                above.append((ends[number], part))
            else:
                (part.except_literals if node.literal else part.except_prefixes).append(node.name)
                above.append((ends[number], None))
        return tuple(part.frozen() for part in parts)

    @cached_property
    def ends(self) -> list[int]:
        """By node: the number after the last node below it."""
        ends = list(range(1, len(self.nodes) + 1))
        for number in range(len(self.nodes) - 1, 0, -1):
            parent = self.nodes[number].parent
            ends[parent] = max(ends[parent], ends[number])
        return ends


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


Masks: TypeAlias = tuple[tuple[int, int], ...]
"""A mask for each class of hosts: the first class of a run, and the mask of all classes up to the next run's.

Runs next to each other differ, so equal masks are equal tuples.
"""


_NOTHING: Masks = ((0, 0),)


@frozen(cache_hash=True)
class Change:
    """The key of a change: direction, hosts and names, without operations."""

    direction: Direction
    hosts: Hosts
    names: Names
    by_kafka: bool = False
    """As Difference.by_kafka."""


@frozen(eq=False, kw_only=True)
class Scene:
    """The frame of an evaluation: a root, classes of hosts, and operations."""

    root: Root
    hosts: HostClasses
    operations: int = REQUESTED


def evaluate(scene: Scene, old: Side, new: Side, *, beside: "Ground | None" = None) -> dict[Change, int]:
    """Return exactly the differences between two sides, each with its operations as a mask.

    `beside`: the subject without own cells, whose differences this one shares as far as it has them.
    """
    tree = NameTree.of(scene.root, _names(scene.root, old, new))
    before, after = _column(scene, tree, old).allowed, _column(scene, tree, new).allowed
    if beside is None or not beside.changes or old.cidr is not new.cidr:
        return _differences(scene, tree, (old, new), before, after)
    ground = (_column(scene, tree, side).allowed for side in (beside.old, beside.new))
    pair = _Pair.of(tree, _gained_and_lost(tree, before, after), _gained_and_lost(tree, *ground))
    return pair.changes(scene, beside.changes)


def _differences(
    scene: Scene, tree: NameTree, sides: tuple[Side, Side], before: Sequence[Masks], after: Sequence[Masks]
) -> dict[Change, int]:
    """Return the changes from one column to another; those that another Kafka alone makes are apart."""
    old, new = sides
    if old.cidr is new.cidr:
        return _changes(scene, tree, before, after)
    gained, lost = _both(tree, after, before, _without), _both(tree, before, after, _without)
    upgraded = _column(scene, tree, evolve(old, cidr=new.cidr)).allowed
    return _products_of(
        scene,
        tree,
        (Direction.GAINED, True, _both(tree, gained, upgraded, and_)),
        (Direction.GAINED, False, _both(tree, gained, upgraded, _without)),
        (Direction.LOST, True, _both(tree, lost, upgraded, _without)),
        (Direction.LOST, False, _both(tree, lost, upgraded, and_)),
    )


def _changes(scene: Scene, tree: NameTree, before: Sequence[Masks], after: Sequence[Masks]) -> dict[Change, int]:
    gained, lost = _gained_and_lost(tree, before, after)
    return _products_of(scene, tree, (Direction.GAINED, False, gained), (Direction.LOST, False, lost))


def _gained_and_lost(
    tree: NameTree, before: Sequence[Masks], after: Sequence[Masks]
) -> tuple[Sequence[Masks], Sequence[Masks]]:
    return _both(tree, after, before, _without), _both(tree, before, after, _without)


def _products_of(scene: Scene, tree: NameTree, *columns: tuple[Direction, bool, Sequence[Masks]]) -> dict[Change, int]:
    changes: dict[Change, int] = {}
    for direction, by_kafka, column in columns:
        for operations, hosts, names in _products(scene, tree, column):
            change = Change(direction, hosts, names, by_kafka)
            changes[change] = changes.get(change, 0) | operations
    return changes


def _both(
    tree: NameTree, one: Sequence[Masks], other: Sequence[Masks], combine: Callable[[int, int], int]
) -> list[Masks]:
    """Return, at each node, what a function makes of the masks of two columns."""
    column: list[Masks] = []
    for number, (node, own, also) in enumerate(zip(tree.nodes, one, other, strict=True)):
        if number and own is one[node.parent] and also is other[node.parent]:
            column.append(column[node.parent])
        else:
            is_one = len(own) + len(also) == 2
            column.append(((0, combine(own[0][1], also[0][1])),) if is_one else _combined(own, also, combine))
    return column


def _without(mask: int, other: int) -> int:
    return mask & ~other


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


@frozen(eq=False, kw_only=True)
class _Column:
    """What a side decides at each node of a tree."""

    matched: Sequence[Masks] = ()
    """The denied and allowed operations of the cells on names and prefixes; empty for a super user."""
    wildcard: Masks = _NOTHING
    """Those of the cells on LITERAL `*`."""
    covered: Sequence[bool] = ()
    """Whether a pattern below the root covers the node; empty if that makes no difference."""
    allowed: Sequence[Masks]


def _column(scene: Scene, tree: NameTree, side: Side) -> _Column:
    if side.is_super:
        return _Column(allowed=[((0, scene.operations),)] * len(tree.nodes))
    wildcard = _with(_NOTHING, side.wildcard, scene.hosts, cidr=side.cidr)
    has_wildcard = wildcard != _NOTHING
    matched = _matched(scene, tree, side.cells, cidr=side.cidr)
    column: list[Masks] = []
    hidden: list[bool] = []
    for node, masks in zip(tree.nodes, matched, strict=True):
        parent = node.parent
        hidden.append(has_wildcard and node.hidden and not side.documented)
        if parent >= 0 and masks is matched[parent] and hidden[-1] is hidden[parent]:
            column.append(column[parent])
            continue
        every = _combined(masks, wildcard, or_) if has_wildcard and not hidden[-1] else masks
        column.append(_mapped(every, scene.operations))
    coverage, covered = side.coverage, list[bool]()
    if coverage is not None and not coverage.whole:
        covered = _covered(tree, coverage)
        for number, node in enumerate(tree.nodes):
            if not covered[number] and side.opens(node):
                column[number] = ((0, scene.operations),)
    return _Column(matched=matched, wildcard=wildcard, covered=covered, allowed=column)


def _matched(scene: Scene, tree: NameTree, cells: Iterable[Cell], *, cidr: bool) -> list[Masks]:
    """Return the denied and allowed operations of cells at each node; a node without own cells has its parent's."""
    root = tree.nodes[0]
    here: dict[tuple[str, bool], list[Cell]] = defaultdict(list)
    for cell in cells:
        # A pattern that covers the whole root counts as if it were on the root itself.
        covers = not cell.literal and root.name.startswith(cell.name)
        here[(root.name, root.literal) if covers else (cell.name, cell.literal)].append(cell)
    matched: list[Masks] = []
    for node in tree.nodes:
        masks = matched[node.parent] if node.parent >= 0 else _NOTHING
        own = here.get((node.name, node.literal))
        matched.append(_with(masks, own, scene.hosts, cidr=cidr) if own else masks)
    return matched


def _covered(tree: NameTree, coverage: Coverage) -> list[bool]:
    under = set(coverage.under)
    covered: list[bool] = []
    for node in tree.nodes:
        covered.append((node.parent >= 0 and covered[node.parent]) or (node.name, node.literal) in under)
    return covered


def _mapped(masks: Masks, operations: int) -> Masks:
    """Return the operations that are allowed by masks of denied and allowed ones."""
    if len(masks) == 1:  # most are of one run: every host
        mask = masks[0][1]
        return ((0, mask & ~(mask >> 16) & operations),)
    return _joined((first, mask & ~(mask >> 16) & operations) for first, mask in masks)


def _joined(runs: Iterable[tuple[int, int]]) -> Masks:
    """Return masks of runs in their order; runs next to each other may be equal."""
    masks: list[tuple[int, int]] = []
    last = -1
    for run in runs:
        if run[1] != last:
            masks.append(run)
            last = run[1]
    return tuple(masks)


def _combined(one: Masks, other: Masks, combine: Callable[[int, int], int]) -> Masks:
    """Return the masks that a function makes of two masks of each class."""
    if len(other) == 1:
        ((_, more),) = other
        return _joined((first, combine(mask, more)) for first, mask in one)
    if len(one) == 1:
        ((_, mask),) = one
        return _joined((first, combine(mask, more)) for first, more in other)
    return _joined(_side_by_side(one, other, combine))


def _side_by_side(one: Masks, other: Masks, combine: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    at = also = 0
    while True:
        (first, mask), (second, more) = one[at], other[also]
        yield max(first, second), combine(mask, more)
        following = one[at + 1][0] if at + 1 < len(one) else None
        beyond = other[also + 1][0] if also + 1 < len(other) else None
        if following is None and beyond is None:
            return
        if beyond is None or (following is not None and following <= beyond):
            at += 1
        if following is None or (beyond is not None and beyond <= following):
            also += 1


def _with(masks: Masks, cells: Iterable[Cell], hosts: HostClasses, *, cidr: bool) -> Masks:
    """Return the masks with more cells."""
    everywhere = 0
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for cell in cells:
        if cell.host == WILDCARD:
            everywhere |= cell.mask
            continue
        for first, end in hosts.matched_runs(cell.host, cidr=cidr):
            starts.setdefault(first, []).append(cell.mask)
            ends.setdefault(end, []).append(cell.mask)
    if everywhere and len(masks) == 1:
        masks = ((0, masks[0][1] | everywhere),)
    elif everywhere:
        masks = _joined((first, mask | everywhere) for first, mask in masks)
    return _combined(masks, _overlaid(starts, ends, hosts.count), or_) if starts else masks


def _overlaid(starts: dict[int, list[int]], ends: dict[int, list[int]], count: int) -> Masks:
    """Return the masks of runs of classes, given by their first class and by their end; runs may be nested."""
    runs: list[tuple[int, int]] = []
    opened: list[int] = []
    for at in sorted({0, *starts, *ends}):
        for mask in ends.get(at, ()):
            opened.remove(mask)
        opened += starts.get(at, ())
        if at < count:
            runs.append((at, reduce(or_, opened, 0)))
    return _joined(runs)


def _products(scene: Scene, tree: NameTree, column: Sequence[Masks]) -> Iterator[tuple[int, Hosts, Names]]:
    """Yield products of operations, hosts and names that together equal a column of masks."""
    edges = list(_edges(tree, column))
    if not edges:
        return
    for operations in _alike(_distinct_masks(column, scene.hosts.count), scene.operations):
        for runs, numbers in _selections(edges, operations & -operations, scene.hosts.count):
            names = tree.names(numbers)
            for hosts in scene.hosts.hosts_of(runs):
                yield operations, hosts, names


_ORDERED = 1 << 18
"""How many masks of single classes of hosts are put in order at most."""


def _distinct_masks(column: Iterable[Masks], count: int) -> set[int]:
    """Return the masks of a column.

    The order of a set decides the order of the answer's regions, unless each mask is a part of the next larger one. So
    that the order depends on the answer and not on how runs are cut, masks are added class by class.
    """
    # By identity, as nodes share the masks of their parent, which can have many runs.
    distinct = list({id(masks): masks for masks in column}.values())
    masks_of = {mask for masks in distinct for _, mask in masks}
    by_size = sorted(masks_of, key=int.bit_count)
    if all(not mask & ~larger for mask, larger in pairwise(by_size)) or len(distinct) * count > _ORDERED:
        return masks_of
    by_class = {
        tuple(
            chain.from_iterable(
                repeat(mask, end - first)
                for (first, mask), end in zip(masks, (*(first for first, _ in masks[1:]), count), strict=True)
            )
        )
        for masks in distinct
    }
    return {mask for masks in by_class for mask in masks}


_Edge: TypeAlias = tuple[int, Masks]
"""The number of a node, and in which operations it differs from its parent."""


def _edges(tree: NameTree, column: Sequence[Masks]) -> Iterator[_Edge]:
    """Yield the nodes that differ from their parent; nothing is allowed at the parent of the root."""
    for number, (node, masks) in enumerate(zip(tree.nodes, column, strict=True)):
        above = column[node.parent] if number else _NOTHING
        if masks is not above and masks != above:
            yield number, masks if above is _NOTHING else _combined(masks, above, xor)


def _selections(edges: Iterable[_Edge], bit: int, count: int) -> list[tuple[Runs, list[int]]]:
    """Return classes of hosts with the same nodes, as edges, for one operation; by their first class."""
    if count == 1:
        numbers = [number for number, masks in edges if masks[0][1] & bit]
        return [(((0, 1),), numbers)] if numbers else []
    turns: dict[int, list[int]] = {}
    for number, masks in edges:
        is_edge = False
        for first, mask in masks:
            if bool(mask & bit) is not is_edge:
                is_edge = not is_edge
                turns.setdefault(first, []).append(number)
    present: set[int] = set()
    key = 0
    runs_of: dict[int, list[tuple[int, int]]] = {}
    numbers_of: dict[int, list[int]] = {}
    for first, end in pairwise((*sorted(turns), count)):
        for number in turns[first]:
            key ^= 1 << number
            present ^= {number}
        if key:
            if key not in runs_of:
                numbers_of[key] = sorted(present)
            runs = runs_of.setdefault(key, [])
            if runs and runs[-1][1] == first:
                runs[-1] = runs[-1][0], end
            else:
                runs.append((first, end))
    return [(tuple(runs), numbers_of[key]) for key, runs in runs_of.items()]


def _alike(masks: Iterable[int], operations: int) -> list[int]:
    """Return groups of operations that occur in the same masks; operations that occur in none are omitted."""
    groups = [operations]
    for mask in masks:
        groups = [part for group in groups for part in (group & mask, group & ~mask) if part]
    used = 0
    for mask in masks:
        used |= mask
    return [group for group in groups if group & used]


# A subject that shares the differences of another one, and has more.


@frozen(eq=False, kw_only=True)
class _Pair:
    """What two subjects gain and lose at the nodes of a tree: one of them, and the one without own cells."""

    tree: NameTree
    own: tuple[Sequence[Masks], Sequence[Masks]]
    ground: tuple[Sequence[Masks], Sequence[Masks]]
    lacking: tuple[Masks, Masks]
    """The operations in which the first one lacks a part of what the second one gains, and loses."""

    @staticmethod
    def of(
        tree: NameTree,
        own: tuple[Sequence[Masks], Sequence[Masks]],
        ground: tuple[Sequence[Masks], Sequence[Masks]],
    ) -> "_Pair":
        """Return the pair of two subjects, by their gains and losses at each node."""
        gained, lost = (
            reduce(_union, {id(masks): masks for masks in _both(tree, theirs, ours, _without)}.values(), _NOTHING)
            for ours, theirs in zip(own, ground, strict=True)
        )
        return _Pair(tree=tree, own=own, ground=ground, lacking=(gained, lost))

    @property
    def is_equal(self) -> bool:
        """Return whether both have the same differences at each node."""
        return all(list(ours) == list(theirs) for ours, theirs in zip(self.own, self.ground, strict=True))

    @property
    def includes_all(self) -> bool:
        """Return whether the first one has all differences of the second one."""
        return self.lacking == (_NOTHING, _NOTHING)

    def shared(self, changes: dict[Change, int]) -> dict[Change, int]:
        """Return those of the second one's changes that the first one shares: of operations in which it lacks none."""
        gained, lost = map(_any, self.lacking)
        shared = {
            change: operations & ~(gained if change.direction is Direction.GAINED else lost)
            for change, operations in changes.items()
        }
        return {change: operations for change, operations in shared.items() if operations}

    def changes(self, scene: Scene, changes: dict[Change, int]) -> dict[Change, int]:
        """Return the changes of the first one: those of the second one that it shares, and those that are its own."""
        own = _products_of(
            scene,
            self.tree,
            *(
                (direction, False, _apart(self.tree, ours, theirs, _any(lacking)))
                for direction, ours, theirs, lacking in zip(
                    (Direction.GAINED, Direction.LOST), self.own, self.ground, self.lacking, strict=True
                )
            ),
        )
        if not own and self.includes_all:
            return changes
        shared = self.shared(changes)
        for change, operations in own.items():
            shared[change] = shared.get(change, 0) | operations
        return shared


def _apart(tree: NameTree, own: Sequence[Masks], ground: Sequence[Masks], lacking: int) -> list[Masks]:
    """Return what a subject has apart from what it shares with another one.

    It has all of an operation in which it lacks something; and of the others, all at a node where it has more, and
    below: this overlaps what is shared, and is shorter than exceptions.
    """
    apart: list[Masks] = []
    more: list[int] = []
    for number, (node, ours, theirs) in enumerate(zip(tree.nodes, own, ground, strict=True)):
        above = node.parent
        if number and ours is own[above] and theirs is ground[above]:
            more.append(more[above])
            apart.append(apart[above])
            continue
        more.append((more[above] if number else lacking) | _any(_combined(ours, theirs, _without)))
        apart.append(_combined(ours, ((0, more[number]),), and_))
    return apart


def _union(one: Masks, other: Masks) -> Masks:
    return _combined(one, other, or_)


def _any(masks: Masks) -> int:
    """Return the operations that are in the mask of any class of hosts."""
    return reduce(or_, (mask for _, mask in masks), 0)


# The evaluation of many subjects below one root: each as a difference from a subject without own cells.


_FEW_NODES = 16
"""A tree with so few more nodes than a subject has cells is walked in less time than the nodes near the cells."""


@frozen(eq=False, kw_only=True, slots=False)
class Ground:
    """The evaluation of a subject without own cells, from which those of others differ only near their own names.

    A node at which neither side changes what its parent has makes no difference to the names of a change. So a subject
    is evaluated on a small tree: the nodes that make a difference to every subject, its own names, and the nodes below
    its own prefixes.
    """

    scene: Scene
    old: Side
    new: Side
    tree: NameTree
    _columns: tuple[_Column, _Column]
    changes: dict[Change, int]
    """The differences of the subject without own cells."""

    @staticmethod
    def of(scene: Scene, old: Side, new: Side) -> "Ground":
        """Evaluate the subject without own cells. Neither side is that of a super user."""
        tree = NameTree.of(scene.root, _names(scene.root, old, new))
        before, after = _column(scene, tree, old), _column(scene, tree, new)
        return Ground(
            scene=scene,
            old=old,
            new=new,
            tree=tree,
            columns=(before, after),
            changes=_differences(scene, tree, (old, new), before.allowed, after.allowed),
        )

    def is_useful(self, cells: Sequence[Cell]) -> bool:
        """Return whether a subject with these cells can be evaluated by `with_own`, and takes less time by it."""
        root = self.scene.root
        if len(self.tree.nodes) <= _FEW_NODES + len(cells):
            return False
        return not root.literal and not any(not cell.literal and root.name.startswith(cell.name) for cell in cells)

    def with_own(
        self, hosts: HostClasses, old: Sequence[Cell], new: Sequence[Cell], *, shares: bool
    ) -> dict[Change, int]:
        """Return the differences of a subject with own cells in each policy, which cover only a part of the root.

        Both sides are decided by the same Kafka.

        `hosts`: the classes by the hosts of these cells and of those of the ground. `shares`: the changes that the
        subject shares with the one without own cells are those of that one, and only the others are its own.
        """
        own = {(cell.name, cell.literal) for cell in chain(old, new)}
        near = self._below(own)
        scene = evolve(self.scene, hosts=hosts)
        if self.changes:
            pair = self._beside(scene, own, near, old, new)
            if pair.is_equal:
                return self.changes
            if shares and pair.includes_all:
                return pair.changes(scene, self.changes)
        tree = self._tree(own, near | self._distinct)
        if self.changes and shares:
            return self._pair(scene, tree, old, new).changes(scene, self.changes)
        return _changes(scene, tree, *self._columns_with(scene, tree, old, new))

    def shared_with(self, hosts: HostClasses, old: Sequence[Cell], new: Sequence[Cell]) -> dict[Change, int] | None:
        """Return those differences of the subject without own cells that another one shares; arguments as `with_own`.

        None if the other one lacks some from a part of the hosts.
        """
        own = {(cell.name, cell.literal) for cell in chain(old, new)}
        pair = self._beside(evolve(self.scene, hosts=hosts), own, self._below(own), old, new)
        return None if any(len(masks) > 1 for masks in pair.lacking) else pair.shared(self.changes)

    def _beside(
        self,
        scene: Scene,
        own: AbstractSet[tuple[str, bool]],
        near: AbstractSet[int],
        old: Sequence[Cell],
        new: Sequence[Cell],
    ) -> _Pair:
        """Return what a subject gains and loses at its own names and at the nodes below its prefixes.

        Its differences are those of the ground at all other nodes.
        """
        above = {self._nearest(Node(*each, parent=-1)) for each in own}
        above |= {self.tree.nodes[number].parent for number in near if number}
        return self._pair(scene, self._tree(own, near | above), old, new)

    def _pair(self, scene: Scene, tree: NameTree, old: Sequence[Cell], new: Sequence[Cell]) -> _Pair:
        finer = _Finer.of(scene.hosts, self.scene.hosts)
        numbers = list(map(self._nearest, tree.nodes))
        gained, lost = ([finer.masks(column[number]) for number in numbers] for column in self._gained_and_lost)
        columns = self._columns_with(scene, tree, old, new)
        return _Pair.of(tree, _gained_and_lost(tree, *columns), (gained, lost))

    def _tree(self, own: Iterable[tuple[str, bool]], numbers: Iterable[int]) -> NameTree:
        return NameTree.of(self.scene.root, chain(own, (self._keys[number - 1] for number in numbers if number)))

    def _columns_with(
        self, scene: Scene, tree: NameTree, old: Sequence[Cell], new: Sequence[Cell]
    ) -> tuple[Sequence[Masks], Sequence[Masks]]:
        before, after = self._columns
        return (
            self._column(scene, tree, self.old, before, old),
            self._column(scene, tree, self.new, after, new),
        )

    def _column(
        self, scene: Scene, tree: NameTree, side: Side, ground: _Column, cells: Sequence[Cell]
    ) -> Sequence[Masks]:
        """Return the allowed operations at each node of a subject's tree."""
        finer = _Finer.of(scene.hosts, self.scene.hosts)
        matched = _matched(scene, tree, cells, cidr=side.cidr)
        wildcard = finer.masks(ground.wildcard)
        column: list[Masks] = []
        for node, own in zip(tree.nodes, matched, strict=True):
            number = self._nearest(node)
            if own is _NOTHING and self.tree.nodes[number][:2] == node[:2]:
                column.append(finer.masks(ground.allowed[number]))
            elif ground.covered and not ground.covered[number] and side.opens(node):
                column.append(((0, scene.operations),))
            else:
                masks = _combined(finer.masks(ground.matched[number]), own, or_)
                if wildcard != _NOTHING and (side.documented or not node.hidden):
                    masks = _combined(masks, wildcard, or_)
                column.append(_mapped(masks, scene.operations))
        return column

    def _nearest(self, node: Node) -> int:
        """Return the node with the same names, or else the longest prefix of a name."""
        number = bisect_right(self._keys, (node.name, node.literal))
        nodes = self.tree.nodes
        while number:
            near = nodes[number]
            if near[:2] == node[:2] or (not near.literal and node.name.startswith(near.name)):
                break
            number = near.parent
        return number

    def _below(self, own: Iterable[tuple[str, bool]]) -> set[int]:
        """Return the nodes whose names begin with one of the prefixes among names and prefixes."""
        below: set[int] = set()
        last: str | None = None
        for prefix in sorted(name for name, literal in own if not literal):
            if last is None or not prefix.startswith(last):
                last = prefix
                first = bisect_left(self._keys, (prefix, False))
                end = first
                while end < len(self._keys) and self._keys[end][0].startswith(prefix):
                    end += 1
                below.update(range(first + 1, end + 1))
        return below

    @cached_property
    def _keys(self) -> list[tuple[str, bool]]:
        """The nodes without the root, as they are sorted."""
        return [(node.name, node.literal) for node in self.tree.nodes[1:]]

    @cached_property
    def _gained_and_lost(self) -> tuple[Sequence[Masks], Sequence[Masks]]:
        before, after = (column.allowed for column in self._columns)
        return _gained_and_lost(self.tree, before, after)

    @cached_property
    def _distinct(self) -> frozenset[int]:
        """The nodes at which the differences are not those of the parent."""
        return frozenset(number for column in self._gained_and_lost for number, _ in _edges(self.tree, column))


@define
class _Finer:
    """Masks on a partition of hosts, on one by more hosts."""

    _classes: Sequence[int] | None
    """For each class the one that contains it; None if the partitions are the same."""
    _cache: dict[Masks, Masks] = field(factory=dict)

    @staticmethod
    def of(finer: HostClasses, hosts: HostClasses) -> "_Finer":
        """Return the way from a partition to one by the same hosts and more."""
        if finer is hosts or not isinstance(finer, Partition) or not isinstance(hosts, Partition):
            return _Finer(None)
        return _Finer(finer.classes_in(hosts))

    def masks(self, masks: Masks) -> Masks:
        """Return the same masks on the finer partition."""
        if self._classes is None or len(masks) == 1:
            return masks
        finer = self._cache.get(masks)
        if finer is None:
            firsts = [first for first, _ in masks]
            finer = self._cache[masks] = _joined(
                (number, masks[bisect_right(firsts, within) - 1][1]) for number, within in enumerate(self._classes)
            )
        return finer
