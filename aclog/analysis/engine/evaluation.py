"""The differences between two sides for one subject below one root: which operations, from where, on which names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from attrs import frozen

from aclog.analysis.engine.host_classes import HostClasses
from aclog.analysis.engine.name_tree import NameTree
from aclog.analysis.engine.side import Side
from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Names
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.region import Direction
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD

Masks: TypeAlias = tuple[int, ...]
"""By class of hosts: a mask."""


class Change(NamedTuple):
    """What changes for a subject but for the operations."""

    direction: Direction
    hosts: Hosts
    names: Names


@frozen(eq=False, kw_only=True)
class Scene:
    """Where a subject is looked at: below a root, from some classes of hosts, for some operations."""

    root: Root
    hosts: HostClasses
    operations: int = REQUESTED


def evaluate(scene: Scene, old: Side, new: Side) -> dict[Change, int]:
    """Return what differs between two sides, exactly, with the operations of each change as a mask."""
    tree = NameTree.of(scene.root, _names(scene.root, old, new))
    before, after = _allowed(scene, tree, old), _allowed(scene, tree, new)
    found: dict[Change, int] = {}
    for direction, more, less in (Direction.GAINED, after, before), (Direction.LOST, before, after):
        column = [
            tuple(has & ~had for has, had in zip(masks, others, strict=True))
            for masks, others in zip(more, less, strict=True)
        ]
        for operations, hosts, names in _products(scene, tree, column):
            change = Change(direction, hosts, names)
            found[change] = found.get(change, 0) | operations
    return found


def _names(root: Root, old: Side, new: Side) -> Iterator[tuple[str, bool]]:
    wildcard = False
    for side in old, new:
        for cell in side.cells:
            yield cell.name, cell.literal
        if side.coverage is not None:
            yield from side.coverage.under
        wildcard |= bool(side.wildcard) or (side.coverage is not None and side.coverage.wildcard)
    if wildcard and WILDCARD.startswith(root.name):
        # LITERAL `*` ends here: longer names that begin with `*` are hidden from it.
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
        # What covers the whole root counts as if it were on the root itself.
        covers = not cell.literal and root.name.startswith(cell.name)
        key = (root.name, root.literal) if covers else (cell.name, cell.literal)
        here[key].append((scene.hosts.matched(cell.host, cidr=side.cidr), cell.mask))
    wildcard = _with((0,) * count, [(scene.hosts.matched(c.host, cidr=side.cidr), c.mask) for c in side.wildcard])
    has_wildcard = any(wildcard)
    inherited: list[Masks] = []
    found = []
    for node in tree.nodes:
        masks = inherited[node.parent] if node.parent >= 0 else (0,) * count
        own = here.get((node.name, node.literal))
        if own:
            masks = _with(masks, own)
        inherited.append(masks)
        if has_wildcard and (side.documented or not node.hidden):
            masks = tuple(mask | more for mask, more in zip(masks, wildcard, strict=True))
        found.append(tuple(mask & ~(mask >> 16) & scene.operations for mask in masks))
    if side.coverage is not None:
        _open_uncovered(scene, tree, side, found)
    return found


def _with(masks: Masks, cells: Iterable[tuple[int, int]]) -> Masks:
    """Return the masks with more cells; a cell is the classes of hosts it matches, and its mask."""
    more = list(masks)
    for classes, mask in cells:
        for number in range(len(more)):
            if classes >> number & 1:
                more[number] |= mask
    return tuple(more)


def _open_uncovered(scene: Scene, tree: NameTree, side: Side, found: list[Masks]) -> None:
    """Allow everything at the nodes that no rule covers."""
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
            found[number] = everything


def _products(scene: Scene, tree: NameTree, column: Sequence[Masks]) -> Iterator[tuple[int, Hosts, Names]]:
    """Yield the products of operations, hosts and names that make up a column of masks."""
    distinct = set(column)
    if len(distinct) == 1 and not any(column[0]):
        return
    for operations in _alike({mask for masks in distinct for mask in masks}, scene.operations):
        bit = operations & -operations
        by_names: dict[tuple[bool, ...], int] = {}
        for number in range(scene.hosts.count):
            chosen = tuple(bool(masks[number] & bit) for masks in column)
            if True in chosen:
                by_names[chosen] = by_names.get(chosen, 0) | 1 << number
        for chosen, classes in by_names.items():
            names = tree.names(chosen)
            for hosts in scene.hosts.hosts(classes):
                yield operations, hosts, names


def _alike(masks: Iterable[int], operations: int) -> list[int]:
    """Return the operations in groups that are together in each of the masks; those in none are left out."""
    groups = [operations]
    for mask in masks:
        groups = [part for group in groups for part in (group & mask, group & ~mask) if part]
    used = 0
    for mask in masks:
        used |= mask
    return [group for group in groups if group & used]
