"""Building a base from ACLs in columns: number the keys, sort the rows, or the masks of each cell. Fully vectorised."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAclWithId
from aclog.authorizer.index.arrays import Binary, Dictionary, Int32s, Pause, binary_columns, no_pause, slices, values
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.first_units import count_units
from aclog.authorizer.index.ids import IdIndex
from aclog.authorizer.index.keys import KeyTable, compact
from aclog.authorizer.index.masks import TYPES, known_type, mask_table
from aclog.authorizer.index.prefixes import EMPTY, Prefixes
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.errors import ReplayError
from aclog.metalog.records import TaggedFields
from aclog.metalog.uuids import uuid_text
from aclog.metalog.vectors import Bools, Int64s, unsigned_varints

T = TypeVar("T")

NONE: frozenset[int] = frozenset()
_COLON, _SLASH = ord(":"), ord("/")
_MASKS = mask_table().ravel()


@frozen(eq=False, kw_only=True)
class Rows:
    """ACLs in log order with dictionary-encoded keys: the input of `build`."""

    resources: Binary
    """Distinct resource keys (aclog.authorizer.index.keys); `resource_of` and `pair_of` are indices into the keys."""
    resource_of: Int32s
    pairs: Binary
    pair_of: Int32s
    ids: NDArray[np.uint8]
    has_ids: bool = True
    operations: NDArray[np.uint8]
    permissions: NDArray[np.uint8]
    raw_codes: Mapping[int, tuple[int, int]]
    tags: Mapping[int, TaggedFields]
    resource_table: KeyTable | None = None
    """The tables of `resources` and `pairs`, if they can be reused (see aclog.authorizer.index.merge)."""
    pair_table: KeyTable | None = None


def rows_of_acls(acls: Iterable[StandardAclWithId]) -> Rows:
    """Return the rows of ACLs given as objects."""
    rules = list(acls)
    resources = [
        bytes((r.acl.resource_type & 0xFF,)) + compact(r.acl.resource_name) + bytes((r.acl.pattern_type & 0xFF,))
        for r in rules
    ]
    pairs = [compact(r.acl.principal) + compact(r.acl.host) for r in rules]
    ids = b"".join(r.id.bytes if r.id is not None else bytes(16) for r in rules)
    return _encoded(
        pa.array(resources, pa.binary()),
        pa.array(pairs, pa.binary()),
        ids=np.frombuffer(ids, np.uint8).reshape(-1, 16),
        has_ids=all(r.id is not None for r in rules),
        operations=np.array([r.acl.operation & 0xFF for r in rules], np.uint8),
        permissions=np.array([r.acl.permission_type & 0xFF for r in rules], np.uint8),
    )


def rows_of_columns(columns: AclColumns) -> Rows:
    """Return the rows of records in a buffer; the buffer is not kept."""
    buffer = columns.buffer
    return _encoded(
        slices(buffer, columns.resource_start, columns.resource_end),
        slices(buffer, columns.pair_start, columns.pair_end),
        ids=columns.ids,
        has_ids=True,
        operations=columns.operation.view(np.uint8),
        permissions=columns.permission_type.view(np.uint8),
    )


def _encoded(
    resource_keys: Binary,
    pair_keys: Binary,
    *,
    ids: NDArray[np.uint8],
    has_ids: bool,
    operations: NDArray[np.uint8],
    permissions: NDArray[np.uint8],
) -> Rows:
    resources, raw_codes = _canonical(resource_keys, resource_keys.dictionary_encode())
    pairs = pair_keys.dictionary_encode()
    return Rows(
        resources=resources.dictionary,
        resource_of=np.asarray(resources.indices).astype(np.int32, copy=False),
        pairs=pairs.dictionary,
        pair_of=np.asarray(pairs.indices).astype(np.int32, copy=False),
        ids=ids,
        has_ids=has_ids,
        operations=operations,
        permissions=permissions,
        raw_codes=raw_codes,
        tags={},
    )


def _canonical(keys: Binary, encoded: Dictionary) -> tuple[Dictionary, dict[int, tuple[int, int]]]:
    """Return the keys as authorize() reads them, and the original codes of each row whose key had to change.

    Kafka reads a resource type that it does not know as UNKNOWN, and every pattern type but LITERAL acts as PREFIXED.
    """
    offsets, data = binary_columns(encoded.dictionary)
    kinds, patterns = data[offsets[:-1]], data[offsets[1:] - 1]
    plain = (kinds < TYPES) & ((patterns == PatternType.LITERAL) | (patterns == PatternType.PREFIXED))
    if plain.all():
        return encoded, {}
    # Slow, by design: only handwritten records have such codes. Different keys may become equal here, so the changed
    # keys are encoded once more.
    codes = np.asarray(encoded.indices)
    raw_codes = {}
    texts = values(encoded.dictionary)
    for number in np.flatnonzero(~plain).tolist():
        key = texts[number]
        kind, pattern = _signed(key[0]), _signed(key[-1])
        literal = PatternType.LITERAL if pattern == PatternType.LITERAL else PatternType.PREFIXED
        texts[number] = bytes((known_type(kind),)) + key[1:-1] + bytes((literal,))
        for row in np.flatnonzero(codes == number).tolist():
            raw_codes[row] = kind, pattern
    renumbered = pa.array(texts, keys.type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(renumbered.indices.take(encoded.indices), renumbered.dictionary), raw_codes


def _signed(byte: int) -> int:
    return byte - (byte >> 7 << 8)


def build(rows: Rows, pause: Pause = no_pause) -> Base:
    """Build a base from these rows.

    Raises:
        ReplayError: an id occurs twice, or the same ACL under two ids; `position` is the number of the later row.

    """
    order, resource_of, pair_of, codes = _sorted(rows)
    # Sorted by resource and pair, equal ACLs are adjacent, and each cell is one slice of rows.
    ids, repeated = IdIndex.of(rows.ids.take(order, axis=0), pause)
    refused = dict(_repeated_content(rows, order, resource_of=resource_of, pair_of=pair_of, codes=codes))
    if repeated and rows.has_ids:
        refused |= _repeated_ids(rows)
    if refused:
        # The first offending row in log order, as a replay record by record would report it.
        row = min(refused)
        raise ReplayError(refused[row], position=row)
    first = _changes(resource_of, pair_of)
    cell_resources, cell_pairs = resource_of[first], pair_of[first]
    masks = np.bitwise_or.reduceat(_MASKS[codes], first) if len(first) else np.zeros(0, np.uint32)
    # With one row in every cell, a row and its cell have the same number and the column is left out.
    one_each = len(first) == len(order)
    unbindable, irregular = _counts(rows)
    return Base(
        resources=rows.resource_table or KeyTable.of(rows.resources, pause),
        pairs=rows.pair_table or KeyTable.of(rows.pairs, pause),
        cell_starts=_starts(cell_resources, len(rows.resources)),
        cell_pairs=cell_pairs.data,
        cell_masks=masks.data,
        cell_rows=range(len(order) + 1) if one_each else np.append(first, len(order)).astype(np.int32).data,
        operations=(codes & 0xFF).astype(np.uint8).tobytes(),
        permissions=(codes >> 8).astype(np.uint8).tobytes(),
        ids=ids,
        has_ids=rows.has_ids,
        raw_codes=_moved(rows.raw_codes, order),
        tags=_moved(rows.tags, order),
        range_pairs=_range_pairs(rows.pairs).data,
        **_resources(rows, cell_resources, cell_pairs, pause),
        unbindable=unbindable,
        irregular=irregular,
    )


def _sorted(rows: Rows) -> tuple[NDArray[np.int64], Int32s, Int32s, NDArray[np.uint16]]:
    """Return the order of rows by (resource, pair, permission << 8 | operation), and these columns in that order."""
    codes: NDArray[np.uint16] = (rows.permissions.astype(np.uint16) << np.uint16(8)) | rows.operations
    # One sort of a combined uint64 is several times as fast as lexsort; it needs resource and pair to fit into 48 bits.
    pair_bits = len(rows.pairs).bit_length()
    if len(rows.resources).bit_length() + pair_bits > 48:
        wide = np.lexsort((codes, rows.pair_of, rows.resource_of))
        return wide, rows.resource_of[wide], rows.pair_of[wide], codes[wide]
    key = rows.resource_of.astype(np.uint64) << np.uint64(pair_bits + 16)
    key |= rows.pair_of.astype(np.uint64) << np.uint64(16)
    key |= codes
    order: Int64s = np.argsort(key)
    key = key[order]
    pairs = (key >> np.uint64(16)) & np.uint64((1 << pair_bits) - 1)
    return (
        order,
        (key >> np.uint64(pair_bits + 16)).astype(np.int32),
        pairs.astype(np.int32),
        (key & np.uint64(0xFFFF)).astype(np.uint16),
    )


def _changes(*columns: Int32s) -> Int64s:
    """Return the rows at which a value differs from the row before; the first row is one of them."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def _starts(numbers: Int32s, count: int) -> memoryview:
    """Return where each number 0..count-1 begins in a sorted column, and the column's length."""
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(numbers, minlength=count), out=starts[1:])
    return starts.data


def _moved(sparse: Mapping[int, T], order: NDArray[np.int64]) -> dict[int, T]:
    """Renumber the rows of a sparse column by their positions in `order`."""
    if not sparse:
        return {}
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return {int(place[row]): value for row, value in sparse.items()}


def _repeated_content(
    rows: Rows, order: Int64s, *, resource_of: Int32s, pair_of: Int32s, codes: NDArray[np.uint16]
) -> Iterator[tuple[int, str]]:
    """Yield the rows whose ACL equals that of an earlier row, each with an error text."""
    same = resource_of[1:] == resource_of[:-1]
    same &= pair_of[1:] == pair_of[:-1]
    same &= codes[1:] == codes[:-1]
    if not same.any():
        return
    # Equal in the columns is not yet equal: codes that Kafka reads alike are still different records.
    seen: dict[tuple[object, ...], int] = {}
    for row in np.unique(np.concatenate((order[:-1][same], order[1:][same]))).tolist():
        content = (rows.resource_of[row], rows.pair_of[row], rows.operations[row], rows.permissions[row])
        before = seen.setdefault((*content, rows.raw_codes.get(row)), row)
        if before != row:
            yield row, f"{_name(rows, row)} is the same as {_name(rows, before)}: expected every ACL once"


def _repeated_ids(rows: Rows) -> dict[int, str]:
    """Return the rows whose id occurs in an earlier row, each with an error text."""
    values = np.ascontiguousarray(rows.ids).view(">u8").reshape(-1, 2)
    order = np.lexsort((np.arange(len(values)), values[:, 1], values[:, 0]))
    ordered = values[order]
    repeated = order[1:][(ordered[1:] == ordered[:-1]).all(axis=1)].tolist()
    return {row: f"{_name(rows, row)} is added, but exists already" for row in repeated}


def _name(rows: Rows, row: int) -> str:
    return f"ACL {uuid_text(UUID(bytes=rows.ids[row].tobytes()))}" if rows.has_ids else f"ACL {row + 1}"


def _resources(rows: Rows, cell_resources: Int32s, cell_pairs: Int32s, pause: Pause) -> dict[str, Any]:
    """Return the fields of a base about its resources: prefixes, LITERAL `*`, first units, colonless principals."""
    offsets, data = binary_columns(rows.resources)
    starts, ends = offsets[:-1], offsets[1:] - 1
    kinds = data[starts]
    prefixed = data[ends] == PatternType.PREFIXED
    _, name_starts, _ = unsigned_varints(data, starts + 1)
    acls = np.bincount(rows.resource_of, minlength=len(rows.resources))
    # mode="clip": the empty name at the very end of the data has no first byte.
    stars = ~prefixed & (ends - name_starts == 1) & (data.take(name_starts, mode="clip") == ord("*"))
    prefixes, first_nodes, nodes = [], [], 0
    for code in range(TYPES):
        members = np.flatnonzero(prefixed & (kinds == code))
        names = slices(data.data, name_starts[members], ends[members])
        prefixes.append(Prefixes.of(names, members.astype(np.int32), pause) if len(members) else EMPTY)
        first_nodes.append(nodes)
        nodes += len(members)
    star_of = dict(zip(kinds[stars].tolist(), np.flatnonzero(stars).tolist(), strict=True))
    colonless = np.flatnonzero(~_with_colon(rows.pairs))
    return {
        "prefixes": tuple(prefixes),
        "first_nodes": tuple(first_nodes),
        "wildcard_resources": tuple(star_of.get(code, -1) for code in range(TYPES)),
        "colonless_resources": frozenset(cell_resources[np.isin(cell_pairs, colonless)].tolist())
        if len(colonless)
        else NONE,
        "units": count_units(kinds, data, name_starts, ends, acls),
    }


def _with_colon(pairs: Binary) -> Bools:
    """Return whether the principal of each pair key has a colon."""
    offsets, data = binary_columns(pairs)
    length, starts, _ = unsigned_varints(data, offsets[:-1])
    colons = np.append(np.flatnonzero(data == _COLON), len(data) + 1)
    return np.asarray(colons[np.searchsorted(colons, starts)] < starts + length - 1, np.bool_)


def _range_pairs(pairs: Binary) -> Int32s:
    """Return the pairs whose host may have a slash (or 46 bytes: a length is not told from a slash), sorted by key."""
    offsets, data = binary_columns(pairs)
    length, starts, _ = unsigned_varints(data, offsets[:-1])
    slashes = np.append(-1, np.flatnonzero(data == _SLASH))
    found = np.flatnonzero(slashes[np.searchsorted(slashes, offsets[1:]) - 1] >= starts + length - 1)
    order: Int64s = np.asarray(pc.array_sort_indices(pairs.take(found)))
    in_order: Int32s = found[order].astype(np.int32)
    return in_order


def _counts(rows: Rows) -> tuple[int, int]:
    """Return the counts `unbindable` and `irregular` (see Base): ACLs that CreateAcls would have refused."""
    any_code = (rows.operations == AclOperation.ANY) | (rows.permissions == AclPermissionType.ANY)
    strange = (rows.permissions != AclPermissionType.ALLOW) & (rows.permissions != AclPermissionType.DENY)
    offsets, data = binary_columns(rows.resources)
    if len(data):
        any_code |= (data[offsets[:-1]] == ResourceType.ANY)[rows.resource_of]
    for row, (_, pattern) in rows.raw_codes.items():
        any_code[row] |= pattern in {PatternType.ANY, PatternType.MATCH}
        strange[row] |= pattern not in {PatternType.LITERAL, PatternType.PREFIXED}
    return int(any_code.sum()), int(strange.sum())
