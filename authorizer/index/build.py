"""Builds a base: keys to numbers, rows in order, masks per cell. Vectorised: nothing is done rule by rule."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAclWithId
from authorizer.index.base import Base
from authorizer.index.ids import IdIndex
from authorizer.index.keys import KeyTable, binary_columns, compact
from authorizer.index.masks import TYPES, known_type, mask_table
from authorizer.index.prefixes import EMPTY, Prefixes
from metalog.columns import AclColumns
from metalog.errors import ReplayError
from metalog.records import TaggedFields
from metalog.uuids import uuid_text
from metalog.vectors import Bools, Int64s, unsigned_varints

T = TypeVar("T")

NONE: frozenset[int] = frozenset()
_COLON = ord(":")
_MASKS = mask_table().ravel()
_INT32_BYTES = 1 << 31


@frozen(eq=False, kw_only=True)
class Rows:
    """Rules with numbered keys, in log order: what a base is built of."""

    resources: pa.Array
    """Distinct resource keys (authorizer.index.keys), and the number of each row's."""
    resource_of: NDArray[np.int32]
    pairs: pa.Array
    pair_of: NDArray[np.int32]
    ids: NDArray[np.uint8]
    has_ids: bool = True
    operations: NDArray[np.uint8]
    permissions: NDArray[np.uint8]
    odd: Mapping[int, tuple[int, int]]
    tags: Mapping[int, TaggedFields]
    resource_table: KeyTable | None = None
    """The tables of `resources` and `pairs`, where they stand already."""
    pair_table: KeyTable | None = None


def rows_of_acls(acls: Iterable[StandardAclWithId]) -> Rows:
    """Rules as objects to rows."""
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
    """Records in a buffer to rows; the buffer is not kept."""
    buffer = pa.py_buffer(columns.buffer)
    return _encoded(
        _slices(buffer, columns.resource_start, columns.resource_end),
        _slices(buffer, columns.pair_start, columns.pair_end),
        ids=columns.ids,
        has_ids=True,
        operations=columns.operation.view(np.uint8),
        permissions=columns.permission_type.view(np.uint8),
    )


def _slices(buffer: pa.Buffer, starts: Int64s, ends: Int64s) -> pa.Array:
    """The bytes [start, end) of each row as a binary array."""
    ascending = bool((starts[1:] >= ends[:-1]).all())
    order = None if ascending else np.argsort(starts, kind="stable")
    wide = buffer.size >= _INT32_BYTES
    positions = np.empty(2 * len(starts) + 1, np.int64 if wide else np.int32)
    positions[0:-1:2] = starts if order is None else starts[order]
    positions[1::2] = ends if order is None else ends[order]
    positions[-1] = positions[-2] if len(starts) else 0
    kind = pa.large_binary() if wide else pa.binary()
    interleaved = pa.Array.from_buffers(kind, 2 * len(starts), [None, pa.py_buffer(positions), buffer])
    slot = np.arange(0, 2 * len(starts), 2)
    if order is not None:
        slot[order] = slot.copy()
    return interleaved.take(pa.array(slot))


def _encoded(
    resource_keys: pa.Array,
    pair_keys: pa.Array,
    *,
    ids: NDArray[np.uint8],
    has_ids: bool,
    operations: NDArray[np.uint8],
    permissions: NDArray[np.uint8],
) -> Rows:
    resources, odd = _canonical(resource_keys, resource_keys.dictionary_encode())
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
        odd=odd,
        tags={},
    )


def _canonical(keys: pa.Array, encoded: pa.DictionaryArray) -> tuple[pa.DictionaryArray, dict[int, tuple[int, int]]]:
    """Keys as authorize() reads them, and what stood there instead.

    A type that Kafka does not know is UNKNOWN to it, and every pattern type but LITERAL acts as PREFIXED.
    """
    offsets, data = binary_columns(encoded.dictionary)
    kinds, patterns = data[offsets[:-1]], data[offsets[1:] - 1]
    plain = (kinds < TYPES) & ((patterns == PatternType.LITERAL) | (patterns == PatternType.PREFIXED))
    if plain.all():
        return encoded, {}
    codes = np.asarray(encoded.indices)
    odd = {}
    texts = encoded.dictionary.to_pylist()
    for number in np.flatnonzero(~plain).tolist():
        key = texts[number]
        kind, pattern = _signed(key[0]), _signed(key[-1])
        literal = PatternType.LITERAL if pattern == PatternType.LITERAL else PatternType.PREFIXED
        texts[number] = bytes((known_type(kind),)) + key[1:-1] + bytes((literal,))
        for row in np.flatnonzero(codes == number).tolist():
            odd[row] = kind, pattern
    renumbered = pa.array(texts, keys.type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(renumbered.indices.take(encoded.indices), renumbered.dictionary), odd


def _signed(byte: int) -> int:
    return byte - (byte >> 7 << 8)


def build(rows: Rows) -> Base:
    """A base of these rows.

    Raises:
        ReplayError: an id that stands twice, or one content under two ids; `position` is the later row's number.

    """
    order, resource_of, pair_of, codes = _sorted(rows)
    _check_content(rows, order, resource_of, pair_of, codes)
    ids, repeated = IdIndex.of(rows.ids[order])
    if repeated and rows.has_ids:
        raise _repeated_id(rows)
    first = _changes(resource_of, pair_of)
    cell_resources, cell_pairs = resource_of[first], pair_of[first]
    masks = np.bitwise_or.reduceat(_MASKS[codes], first) if len(first) else np.zeros(0, np.uint32)
    one_each = len(first) == len(order)
    return Base(
        resources=rows.resource_table or KeyTable.of(rows.resources),
        pairs=rows.pair_table or KeyTable.of(rows.pairs),
        cell_starts=_starts(cell_resources, len(rows.resources)),
        cell_pairs=memoryview(cell_pairs),
        cell_masks=memoryview(masks),
        cell_rows=range(len(order) + 1) if one_each else memoryview(np.append(first, len(order)).astype(np.int32)),
        operations=(codes & 0xFF).astype(np.uint8).tobytes(),
        permissions=(codes >> 8).astype(np.uint8).tobytes(),
        ids=ids,
        has_ids=rows.has_ids,
        odd=_moved(rows.odd, order),
        tags=_moved(rows.tags, order),
        **_resources(rows, cell_resources, cell_pairs),
        **_counts(rows),
    )


def _sorted(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint16]]:
    """The rows' order by (resource, pair, permission, operation), and these columns in it, the last two as one."""
    codes = rows.permissions.astype(np.uint16) << 8 | rows.operations
    pair_bits = len(rows.pairs).bit_length()
    if len(rows.resources).bit_length() + pair_bits > 48:
        order = np.lexsort((codes, rows.pair_of, rows.resource_of))
        return order, rows.resource_of[order], rows.pair_of[order], codes[order]
    key = rows.resource_of.astype(np.uint64) << np.uint64(pair_bits + 16)
    key |= rows.pair_of.astype(np.uint64) << np.uint64(16)
    key |= codes
    order = np.argsort(key)
    key = key[order]
    pairs = (key >> np.uint64(16)) & np.uint64((1 << pair_bits) - 1)
    return (
        order,
        (key >> np.uint64(pair_bits + 16)).astype(np.int32),
        pairs.astype(np.int32),
        (key & np.uint64(0xFFFF)).astype(np.uint16),
    )


def _changes(*columns: NDArray[np.int32]) -> Int64s:
    """Where a value differs from the one before, the first row included."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def _starts(numbers: NDArray[np.int32], count: int) -> memoryview:
    """Where each number begins in a sorted column, and its length."""
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(numbers, minlength=count), out=starts[1:])
    return memoryview(starts)


def _moved(sparse: Mapping[int, T], order: NDArray[np.int64]) -> dict[int, T]:
    """A sparse column by the rows' places in `order`."""
    if not sparse:
        return {}
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return {int(place[row]): value for row, value in sparse.items()}


def _check_content(
    rows: Rows,
    order: NDArray[np.int64],
    resource_of: NDArray[np.int32],
    pair_of: NDArray[np.int32],
    codes: NDArray[np.uint16],
) -> None:
    same = resource_of[1:] == resource_of[:-1]
    same &= pair_of[1:] == pair_of[:-1]
    same &= codes[1:] == codes[:-1]
    if not same.any():
        return
    suspects = np.unique(np.concatenate((order[:-1][same], order[1:][same]))).tolist()
    seen: dict[tuple[object, ...], int] = {}
    for row in suspects:
        content = (rows.resource_of[row], rows.pair_of[row], rows.operations[row], rows.permissions[row])
        before = seen.setdefault((*content, rows.odd.get(row)), row)
        if before != row:
            what = f"{_name(rows, row)} says what {_name(rows, before)} says: expected every rule once"
            raise ReplayError(what, position=row)


def _repeated_id(rows: Rows) -> ReplayError:
    values = np.ascontiguousarray(rows.ids).view(">u8").reshape(-1, 2)
    order = np.lexsort((np.arange(len(values)), values[:, 1], values[:, 0]))
    ordered = values[order]
    row = int(order[1:][(ordered[1:] == ordered[:-1]).all(axis=1)].min())
    return ReplayError(f"{_name(rows, row)} is added, but stands already", position=row)


def _name(rows: Rows, row: int) -> str:
    return f"ACL {uuid_text(UUID(bytes=rows.ids[row].tobytes()))}" if rows.has_ids else f"ACL {row + 1}"


def _resources(rows: Rows, cell_resources: NDArray[np.int32], cell_pairs: NDArray[np.int32]) -> dict[str, Any]:
    """What a base keeps of its resources: the prefixes, LITERAL `*`, those with a principal without colon."""
    offsets, data = binary_columns(rows.resources)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64) - 1
    kinds = data[starts]
    prefixed = data[ends] == PatternType.PREFIXED
    _, name_starts, _ = unsigned_varints(data, starts + 1)
    stars = ~prefixed & (ends - name_starts == 1) & (data.take(name_starts, mode="clip") == ord("*"))
    prefixes, first_nodes, nodes = [], [], 0
    for code in range(TYPES):
        members = np.flatnonzero(prefixed & (kinds == code))
        names = _slices(pa.py_buffer(data), name_starts[members], ends[members])
        prefixes.append(Prefixes.of(names, members.astype(np.int32)) if len(members) else EMPTY)
        first_nodes.append(nodes)
        nodes += len(members)
    star_of = dict(zip(kinds[stars].tolist(), np.flatnonzero(stars).tolist(), strict=True))
    colonless = np.flatnonzero(~_with_colon(rows.pairs))
    return {
        "prefixes": tuple(prefixes),
        "first_nodes": tuple(first_nodes),
        "stars": tuple(star_of.get(code, -1) for code in range(TYPES)),
        "throwing": frozenset(cell_resources[np.isin(cell_pairs, colonless)].tolist()) if len(colonless) else NONE,
    }


def _with_colon(pairs: pa.Array) -> Bools:
    """Whether the principal of each pair key has a colon."""
    offsets, data = binary_columns(pairs)
    length, starts, _ = unsigned_varints(data, offsets[:-1].astype(np.int64))
    before = np.concatenate(([0], np.cumsum(data == _COLON)))
    return np.asarray(before[starts + length - 1] > before[starts], np.bool_)


def _counts(rows: Rows) -> dict[str, int]:
    """How many rules are beyond what CreateAcls lets in; see Base."""
    any_code = (rows.operations == AclOperation.ANY) | (rows.permissions == AclPermissionType.ANY)
    strange = (rows.permissions != AclPermissionType.ALLOW) & (rows.permissions != AclPermissionType.DENY)
    offsets, data = binary_columns(rows.resources)
    if len(data):
        any_code |= (data[offsets[:-1]] == ResourceType.ANY)[rows.resource_of]
    for row, (_, pattern) in rows.odd.items():
        any_code[row] |= pattern in {PatternType.ANY, PatternType.MATCH}
        strange[row] |= pattern not in {PatternType.LITERAL, PatternType.PREFIXED}
    return {"unbindable": int(any_code.sum()), "irregular": int(strange.sum())}
