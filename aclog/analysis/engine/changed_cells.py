"""The cells in which two images differ: where an exact difference has to look."""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from aclog.authorizer.acl import PatternType, StandardAcl
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.keys import KeyTable, resource_name, split_pair
from aclog.authorizer.index.overlay import TouchedResource, key_of
from aclog.metalog.vectors import Int64s


class CellKey(NamedTuple):
    """Where rules stand: on a resource pattern, for one principal and host."""

    kind: int
    name: str
    literal: bool
    principal: str
    host: str


def cell_of(acl: StandardAcl) -> CellKey:
    """Return the cell of a rule."""
    return CellKey(*key_of(acl), acl.principal, acl.host)


def changed_cells(old: AclIndex, new: AclIndex) -> Iterator[CellKey]:
    """Yield at least every cell whose rules deny or allow something else in one index than in the other, once."""
    if old.base is new.base:
        yield from _changed_in_overlays(old, new)
        return
    found = dict.fromkeys(chain(_changed_in_bases(old.base, new.base), _touched(old), _touched(new)))
    yield from (key for key in found if cell_mask(old, key) != cell_mask(new, key))


def cell_mask(index: AclIndex, key: CellKey) -> int:
    """Return the mask of a cell; 0 if it has no rules."""
    literal, prefixed = index.named(key.kind, key.name)
    resource = literal if key.literal else prefixed
    if resource.touched is not None:
        cell = resource.touched.cells.get((key.principal, key.host))
        if cell is not None:
            return cell.mask
    subject = index.base.subject(((key.principal, key.host),))
    return index.base.cells_mask(*index.base.cells(resource.number), subject.pairs)


def _changed_in_overlays(old: AclIndex, new: AclIndex) -> Iterator[CellKey]:
    """Compare two indexes on one base: only what either overlay touched can differ."""
    before, after = dict(old.overlay.resources()), dict(new.overlay.resources())
    for resource in dict.fromkeys(chain(after, before)):
        was, now = before.get(resource), after.get(resource)
        if was is now:
            continue  # persistent maps share what did not change
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
    """Compare two bases as columns: no object is made for a cell that is the same in both."""
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


def _renumbered(keys: KeyTable, known: KeyTable) -> Int64s:
    """Return the number of each key in another table; a number beyond it for those that it does not have."""
    number_of = {key: number for number, key in enumerate(_all(known))}
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
