"""Building a base from ACLs in columns."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar
from uuid import UUID

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAclWithId
from aclog.authorizer.index.base import Base, BaseColumns, pack_base, resource_columns, with_colon, with_slash
from aclog.authorizer.index.layout import (
    TYPES,
    Allocate,
    ByteStrings,
    Int32s,
    Pause,
    UInt32s,
    bucket_order,
    changes,
    compact,
    distinct,
    known_type,
    mask_table,
    no_pause,
    numbered,
    pair_hashes,
    resource_hashes,
    starts_of,
)
from aclog.authorizer.index.names import id_order
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.errors import ReplayError
from aclog.metalog.primitives import Buffer, uuid_text
from aclog.metalog.records import TaggedFields
from aclog.metalog.vectors import Int64s

T = TypeVar("T")

_MASKS = mask_table().ravel()


@frozen(eq=False, kw_only=True)
class Rows:
    """ACLs in log order with dictionary-encoded keys: the input of `build`."""

    resources: ByteStrings
    """Distinct resource keys (aclog.authorizer.index.layout); `resource_of` and `pair_of` are indices into the keys."""
    resource_of: Int32s
    pairs: ByteStrings
    pair_of: Int32s
    ids: NDArray[np.uint8]
    has_ids: bool = True
    operations: NDArray[np.uint8]
    permissions: NDArray[np.uint8]
    raw_codes: Mapping[int, tuple[int, int]]
    tags: Mapping[int, TaggedFields]


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
        _whole(ByteStrings.of(resources)),
        _whole(ByteStrings.of(pairs)),
        ids=np.frombuffer(ids, np.uint8).reshape(-1, 16),
        has_ids=all(r.id is not None for r in rules),
        operations=np.array([r.acl.operation & 0xFF for r in rules], np.uint8),
        permissions=np.array([r.acl.permission_type & 0xFF for r in rules], np.uint8),
    )


def rows_of_columns(columns: AclColumns, *, has_ids: bool = True) -> Rows:
    """Return the rows of records in a buffer; the buffer is not kept."""
    buffer = columns.buffer
    return _encoded(
        (buffer, columns.resource_start, columns.resource_end),
        (buffer, columns.pair_start, columns.pair_end),
        ids=columns.ids,
        has_ids=has_ids,
        operations=columns.operation.view(np.uint8),
        permissions=columns.permission_type.view(np.uint8),
    )


def _whole(strings: ByteStrings) -> tuple[Buffer, Int64s, Int64s]:
    return strings.data.tobytes(), strings.starts, strings.ends


def _encoded(
    resource_keys: tuple[Buffer, Int64s, Int64s],
    pair_keys: tuple[Buffer, Int64s, Int64s],
    *,
    ids: NDArray[np.uint8],
    has_ids: bool,
    operations: NDArray[np.uint8],
    permissions: NDArray[np.uint8],
) -> Rows:
    resources, resource_of, raw_codes = _canonical(*numbered(*resource_keys))
    pairs, pair_of = numbered(*pair_keys)
    return Rows(
        resources=resources,
        resource_of=resource_of,
        pairs=pairs,
        pair_of=pair_of,
        ids=ids,
        has_ids=has_ids,
        operations=operations,
        permissions=permissions,
        raw_codes=raw_codes,
        tags={},
    )


def _canonical(keys: ByteStrings, numbers: Int32s) -> tuple[ByteStrings, Int32s, dict[int, tuple[int, int]]]:
    """Return the keys as authorize() reads them, and the original codes of each row whose key had to change.

    Kafka reads a resource type that it does not know as UNKNOWN, and every pattern type but LITERAL acts as PREFIXED.
    """
    kinds, patterns = keys.data[keys.starts], keys.data[keys.ends - 1]
    plain = (kinds < TYPES) & ((patterns == PatternType.LITERAL) | (patterns == PatternType.PREFIXED))
    if plain.all():
        return keys, numbers, {}
    # Slow, by design: only handwritten records have such codes. Different keys may become equal here, so the changed
    # keys are numbered once more.
    raw_codes = {}
    texts = keys.values()
    for number in np.flatnonzero(~plain).tolist():
        key = texts[number]
        kind, pattern = _signed(key[0]), _signed(key[-1])
        literal = PatternType.LITERAL if pattern == PatternType.LITERAL else PatternType.PREFIXED
        texts[number] = bytes((known_type(kind),)) + key[1:-1] + bytes((literal,))
        for row in np.flatnonzero(numbers == number).tolist():
            raw_codes[row] = kind, pattern
    distinct, again = numbered(*_whole(ByteStrings.of(texts)))
    return distinct, again[numbers], raw_codes


def _signed(byte: int) -> int:
    return byte - (byte >> 7 << 8)


def build(rows: Rows, pause: Pause = no_pause, allocate: Allocate = bytearray) -> Base:
    """Return a base of these ACLs, in a buffer that `allocate` returns.

    Raises:
        ReplayError: an id occurs twice, or the same ACL under two ids; `position` is the later one's row.

    """
    rows, resource_hashed, resource_buckets, pair_buckets = _in_bucket_order(rows, pause)
    order, resource_of, pair_of, codes = _sorted(rows)
    pause()
    # From here on columns are sorted by (resource, pair): a cell is one slice of rows.
    ids = rows.ids.take(order, axis=0)
    id_rows, id_starts, repeated = id_order(ids)
    _check_unique(rows, order, resource_of=resource_of, pair_of=pair_of, codes=codes, repeated=repeated)
    first = changes(resource_of, pair_of)
    cell_resources, cell_pairs = resource_of[first], pair_of[first]
    masks = np.bitwise_or.reduceat(_MASKS[codes], first) if len(first) else np.zeros(0, np.uint32)
    pause()
    unbindable, irregular = _counts(rows)
    colonless = np.flatnonzero(~with_colon(rows.pairs))
    of_resources = resource_columns(
        rows.resources, resource_hashed, np.bincount(rows.resource_of, minlength=len(rows.resources)), pause
    )
    columns = BaseColumns(
        resources=rows.resources,
        resource_buckets=resource_buckets,
        pairs=rows.pairs,
        pair_buckets=pair_buckets,
        cell_starts=starts_of(cell_resources, len(rows.resources)),
        cell_pairs=cell_pairs,
        cell_masks=masks,
        # With one row in every cell, a row and its cell have the same number and the column is left out.
        cell_rows=None if len(first) == len(order) else np.append(first, len(order)).astype(np.int32),
        operations=(codes & 0xFF).astype(np.uint8),
        permissions=(codes >> 8).astype(np.uint8),
        ids=ids,
        id_order=id_rows,
        id_starts=id_starts,
        has_ids=rows.has_ids,
        **of_resources,
        colonless=distinct(cell_resources[np.isin(cell_pairs, colonless)]),
        range_pairs=with_slash(rows.pairs),
        raw_codes=_moved(rows.raw_codes, order),
        tags=_moved(rows.tags, order),
        unbindable=unbindable,
        irregular=irregular,
    )
    pause()
    return pack_base(columns, allocate)


def _in_bucket_order(rows: Rows, pause: Pause) -> tuple[Rows, UInt32s, Int32s, Int32s]:
    """Return the rows with their keys numbered as in a KeyTable, the resources' hashes, and the buckets of both."""
    hashed = resource_hashes(rows.resources, pause)
    resources, resource_buckets = bucket_order(rows.resources, hashed)
    pairs, pair_buckets = bucket_order(rows.pairs, pair_hashes(rows.pairs, pause))
    renumbered = evolve(
        rows,
        resources=rows.resources.take(resources, pause),
        resource_of=_places(resources)[rows.resource_of],
        pairs=rows.pairs.take(pairs, pause),
        pair_of=_places(pairs)[rows.pair_of],
    )
    return renumbered, hashed[resources], resource_buckets, pair_buckets


def _places(order: Int64s) -> Int32s:
    """Return by old number the new one."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _check_unique(
    rows: Rows, order: Int64s, *, resource_of: Int32s, pair_of: Int32s, codes: NDArray[np.uint16], repeated: bool
) -> None:
    refused = dict(_repeated_content(rows, order, resource_of=resource_of, pair_of=pair_of, codes=codes))
    if repeated and rows.has_ids:
        refused |= _repeated_ids(rows)
    if refused:
        # The first offending row in log order, as a replay record by record would report it.
        row = min(refused)
        raise ReplayError(refused[row], position=row)


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
    first_rows: dict[tuple[object, ...], int] = {}
    for row in np.unique(np.concatenate((order[:-1][same], order[1:][same]))).tolist():
        content = (rows.resource_of[row], rows.pair_of[row], rows.operations[row], rows.permissions[row])
        before = first_rows.setdefault((*content, rows.raw_codes.get(row)), row)
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


def _counts(rows: Rows) -> tuple[int, int]:
    """Return the counts `unbindable` and `irregular` (see Base): ACLs that CreateAcls would have refused."""
    any_code = (rows.operations == AclOperation.ANY) | (rows.permissions == AclPermissionType.ANY)
    strange = (rows.permissions != AclPermissionType.ALLOW) & (rows.permissions != AclPermissionType.DENY)
    if len(rows.resources):
        any_code |= (rows.resources.data[rows.resources.starts] == ResourceType.ANY)[rows.resource_of]
    for row, (_, pattern) in rows.raw_codes.items():
        any_code[row] |= pattern in {PatternType.ANY, PatternType.MATCH}
        strange[row] |= pattern not in {PatternType.LITERAL, PatternType.PREFIXED}
    return int(any_code.sum()), int(strange.sum())
