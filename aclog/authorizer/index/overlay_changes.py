"""Applying ACL records to an overlay.

A node runs this for every ACL record it replays, at about 20 us per record, so the code is kept flat: codes stay plain
integers, since enum members are slow to look up, and `_add` calls little.
"""

from collections.abc import Iterable
from itertools import product
from typing import TypeAlias
from uuid import UUID

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.first_units import first_unit
from aclog.authorizer.index.keys import resource_name, split_pair
from aclog.authorizer.index.masks import TYPES, rule_mask
from aclog.authorizer.index.overlay import NO_ROWS, Cell, Overlay, PairKey, ResourceKey, TouchedResource
from aclog.metalog.errors import ReplayError
from aclog.metalog.persistent_map import Map
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.uuids import uuid_text

Change: TypeAlias = AccessControlEntryRecord | RemoveAccessControlEntryRecord
Codes: TypeAlias = tuple[int, int, int, int]
"""Resource type, pattern type, operation and permission as written in the record."""

_LITERAL = int(PatternType.LITERAL)
_SUPPLEMENTARY = 0x10000
"""The first code point that takes two UTF-16 code units."""
_PATTERNS = frozenset(map(int, (PatternType.LITERAL, PatternType.PREFIXED)))
_PERMISSIONS = frozenset(map(int, (AclPermissionType.DENY, AclPermissionType.ALLOW)))
_TYPES = frozenset(map(int, ResourceType)) - {ResourceType.ANY}
_OPERATIONS = frozenset(map(int, AclOperation)) - {AclOperation.ANY}
_ORDINARY: frozenset[Codes] = frozenset(product(_TYPES, _PATTERNS, _OPERATIONS, _PERMISSIONS))
"""The codes of nearly every ACL: neither unbindable nor irregular, found by one look-up."""

# A named tuple's own constructor is a call of a function in Python first, which takes as long again.
_made = tuple.__new__

_NO_CELLS: "Map[PairKey, Cell]" = Map()
_UNTOUCHED = TouchedResource(_NO_CELLS, rules=0, shrunk=False, number=-1)


def apply_changes(base: Base, overlay: Overlay, changes: Iterable[Change]) -> Overlay:
    """Return the overlay after these changes, applied in order.

    Raises:
        ReplayError: an added id exists already, an added ACL exists under another id, or a removed id does not exist.

    """
    if overlay.core is None and base.core is not None:
        overlay = overlay._replace(core=base.core)
    for change in changes:
        if isinstance(change, AccessControlEntryRecord):
            overlay = _add(base, overlay, change)
        else:
            overlay = _remove(base, overlay, change.id)
    return overlay


def is_unbindable(codes: Codes) -> bool:
    """Return whether Kafka cannot list the ACL: it holds ANY or MATCH, which belong in filters only."""
    kind, pattern, operation, permission = codes
    return (
        kind == ResourceType.ANY
        or operation == AclOperation.ANY
        or permission == AclPermissionType.ANY
        or pattern in {PatternType.ANY, PatternType.MATCH}
    )


def is_irregular(codes: Codes) -> bool:
    """Return whether authorize() and byResourceType read the ACL differently."""
    return codes[3] not in _PERMISSIONS or codes[1] not in _PATTERNS


def _add(base: Base, overlay: Overlay, record: AccessControlEntryRecord) -> Overlay:
    number, added, removed = record.id.int, overlay.added, overlay.removed
    if number in added or (base.has_ids and (row := base.ids.find(number)) >= 0 and row not in removed):
        raise ReplayError(f"ACL {uuid_text(record.id)} is added, but exists already")
    codes = record.resource_type, record.pattern_type, record.operation, record.permission_type
    kind, pattern, operation, permission = codes
    # Inlined aclog.authorizer.index.overlay.key_of: enum comparisons are slow here.
    key = kind if 0 <= kind < TYPES else 0, record.resource_name, pattern == _LITERAL
    pair = principal, host = record.principal, record.host
    touched = overlay.touched[2 * key[0] + key[2]].get(key[1])
    if touched is None:
        touched = _untouched(base, base.resource(key[0], key[1], literal=key[2]))
    cells, rules, shrunk, resource = touched
    mask, rows = rule_mask(operation, permission), NO_ROWS
    records: tuple[AccessControlEntryRecord, ...] = (record,)
    cell = cells.get(pair)
    # The first change to a cell starts from the base's cell: from then on the overlay's mask replaces the base's.
    if cell is None and resource >= 0:
        cell = _untouched_cell(base, resource, pair)
    if cell is not None:
        _check_content(base, overlay, record.id, codes, cell)
        mask, rows, records = mask | cell.mask, cell.rows, (*cell.added, record)
    cells = cells.set(pair, _made(Cell, (mask, records, rows)))
    touched = _made(TouchedResource, (cells, rules + 1, shrunk, resource))
    overlay = _changed(
        overlay, key, pair, touched, added=added.set(number, record), removed=removed, codes=codes, step=1
    )
    if "/" in host:
        hosts = (*overlay.ranges.get(principal, ()), host)
        overlay = overlay._replace(ranges=overlay.ranges.set(principal, hosts))
    if ":" not in principal:
        overlay = overlay._replace(colonless=overlay.colonless + 1)
    return overlay


def _remove(base: Base, overlay: Overlay, uuid: UUID) -> Overlay:
    number = uuid.int
    record = overlay.added.get(number)
    if record is not None:
        return _remove_added(base, overlay, record)
    # The overlay comes first: an id that was removed from the base may have been added again.
    row = base.ids.find(number) if base.has_ids else -1
    if row < 0 or row in overlay.removed:
        raise ReplayError(f"ACL {uuid_text(uuid)} is removed, but does not exist")
    return _remove_row(base, overlay, row)


def _remove_added(base: Base, overlay: Overlay, record: AccessControlEntryRecord) -> Overlay:
    kind = record.resource_type
    codes = kind, record.pattern_type, record.operation, record.permission_type
    key = kind if 0 <= kind < TYPES else 0, record.resource_name, codes[1] == _LITERAL
    pair = record.principal, record.host
    touched = overlay.touched[2 * key[0] + key[2]][key[1]]
    cell = touched.cells[pair]
    others = tuple(other for other in cell.added if other is not record)
    cells = _with_cell(base, touched.cells, pair, removed=overlay.removed, added=others, rows=cell.rows)
    touched = TouchedResource(cells, touched.rules - 1, touched.shrunk, touched.number)
    return _changed(
        overlay,
        key,
        pair,
        touched,
        added=overlay.added.delete(record.id.int),
        removed=overlay.removed,
        codes=codes,
        step=-1,
    )


def _remove_row(base: Base, overlay: Overlay, row: int) -> Overlay:
    at = base.cell_of(row)
    resource = base.resource_of(at)
    data = base.resources.key(resource)
    key, pair = (data[0], resource_name(data), data[-1] == _LITERAL), split_pair(base.pairs.key(base.cell_pairs[at]))
    touched = overlay.touched[2 * key[0] + key[2]].get(key[1]) or _untouched(base, resource)
    cell = touched.cells.get(pair)
    others, rows = (cell.added, cell.rows) if cell is not None else ((), base.rows(at, at + 1))
    removed = overlay.removed.set(row, True)
    cells = _with_cell(base, touched.cells, pair, removed=removed, added=others, rows=rows)
    touched = TouchedResource(cells, touched.rules - 1, True, resource)
    codes = base.codes(row, data)
    return _changed(overlay, key, pair, touched, added=overlay.added, removed=removed, codes=codes, step=-1)


def _with_cell(
    base: Base,
    cells: "Map[PairKey, Cell]",
    pair: PairKey,
    *,
    removed: "Map[int, bool]",
    added: tuple[AccessControlEntryRecord, ...],
    rows: range,
) -> "Map[PairKey, Cell]":
    """Return the cells with one of them recomputed from these added ACLs and the base's rows that are not removed."""
    if not added and not rows:
        return cells.delete(pair)
    # A bit cannot be taken out of an or-ed mask: another ACL of the cell may set it, too.
    mask = 0
    for record in added:
        mask |= rule_mask(record.operation, record.permission_type)
    for row in rows:
        if row not in removed:
            mask |= rule_mask(base.operations[row], base.permissions[row])
    return cells.set(pair, Cell(mask, added, rows))


def _changed(
    overlay: Overlay,
    key: ResourceKey,
    pair: PairKey,
    touched: TouchedResource,
    *,
    added: "Map[int, AccessControlEntryRecord]",
    removed: "Map[int, bool]",
    codes: Codes,
    step: int,
) -> Overlay:
    """Return the overlay with the new state of a resource, one cell of which changed.

    `step` is 1 if an ACL was added, -1 if one was removed.
    """
    _, _, resources, lengths, stars, ranges, colonless, unbindable, irregular, units, _, core = overlay
    kind, name, literal = key
    # Inlined for nearly all names: aclog.authorizer.index.first_units.
    if name and name != WILDCARD:
        code = ord(name[0])
        unit = kind, code if code < _SUPPLEMENTARY else first_unit(name)
        units = units.set(unit, units.get(unit, 0) + step)
    # Lengths are never taken back when a prefix loses its ACLs: a look-up that finds nothing is cheap.
    if not literal:
        if len(name) not in lengths[kind]:
            longest_first = tuple(sorted((*lengths[kind], len(name)), reverse=True))
            lengths = (*lengths[:kind], longest_first, *lengths[kind + 1 :])
    elif name == WILDCARD:
        stars = (*stars[:kind], touched, *stars[kind + 1 :])
    if codes not in _ORDINARY:
        unbindable += step * is_unbindable(codes)
        irregular += step * is_irregular(codes)
    at = 2 * kind + literal
    resources = (*resources[:at], resources[at].set(name, touched), *resources[at + 1 :])
    changes = len(added) + len(removed)
    if core is not None:
        cell = touched.cells.get(pair)
        core = core.put(kind, name, literal, *pair, -1 if cell is None else cell.mask, touched.rules)
    fields = added, removed, resources, lengths, stars, ranges, colonless, unbindable, irregular, units, changes, core
    return _made(Overlay, fields)


def _untouched(base: Base, resource: int) -> TouchedResource:
    """Return the state of a resource that the base has unchanged, or that it does not have (-1)."""
    if resource < 0:
        return _UNTOUCHED
    return TouchedResource(_NO_CELLS, len(base.rows(*base.cells(resource))), shrunk=False, number=resource)


def _untouched_cell(base: Base, resource: int, pair: PairKey) -> Cell | None:
    """Return the base's cell of a resource and a pair, if there is one."""
    low, high = base.cell(resource, base.pair(*pair))
    return Cell(base.cell_masks[low], (), base.rows(low, high)) if low < high else None


def _check_content(base: Base, overlay: Overlay, uuid: UUID, codes: Codes, cell: Cell) -> None:
    """Raise ReplayError if the cell has an ACL with the same codes already."""
    other: UUID | None = None
    for known in cell.added:
        if codes == (known.resource_type, known.pattern_type, known.operation, known.permission_type):
            other = known.id
    if cell.rows:
        # A cell has few rows: at most one per operation and permission.
        data = base.resources.key(base.resource_of(base.cell_of(cell.rows[0])))
        for row in cell.rows:
            if row not in overlay.removed and base.codes(row, data) == codes:
                other = base.id_of(row) or UUID(int=0)
    if other is not None:
        both = f"ACL {uuid_text(uuid)} is the same as ACL {uuid_text(other)}"
        raise ReplayError(f"{both}: expected every ACL once")
