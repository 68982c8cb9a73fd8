"""The merge of an overlay into the rows of a new base.

It may run in a thread while others decide: no step holds the GIL for long, and `pause` is called between steps.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from aclog.authorizer.index.arrays import Int32s, Pause, no_pause
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.build import Rows
from aclog.authorizer.index.byte_strings import ByteStrings
from aclog.authorizer.index.columns import row_keys
from aclog.authorizer.index.keys import KeyTable, pair_key, resource_key
from aclog.authorizer.index.overlay import key_of
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.vectors import Bools, Bytes

_CHUNK = 512


def merged_rows(
    base: Base, added: Sequence[AccessControlEntryRecord], removed: Collection[int], pause: Pause = no_pause
) -> Rows:
    """Return the rows of a base without the rows `removed` and with the records `added`."""
    keep = np.ones(len(base), np.bool_)
    keep[list(removed)] = False
    resource_of, pair_of = row_keys(base)
    resources, resource_of = _numbered(base, base.resources, resource_of[keep], added, pause)
    pairs, pair_of = _numbered(base, base.pairs, pair_of[keep], added, pause)
    kept = int(keep.sum())
    moved = np.cumsum(keep) - 1
    raw_codes = {int(moved[row]): kinds for row, kinds in base.raw_codes.items() if keep[row]}
    raw_codes |= {kept + n: kinds for n, kinds in _raw_codes(added)}
    tags = {int(moved[row]): fields for row, fields in base.tags.items() if keep[row]}
    tags |= {kept + n: record.tagged_fields for n, record in enumerate(added) if record.tagged_fields}
    ids = np.frombuffer(base.ids.ids, np.uint8).reshape(-1, 16)[keep]
    return Rows(
        resources=resources,
        resource_of=resource_of,
        pairs=pairs,
        pair_of=pair_of,
        ids=np.concatenate((ids, np.frombuffer(b"".join(r.id.bytes for r in added), np.uint8).reshape(-1, 16))),
        has_ids=base.has_ids,
        operations=_codes(base.operations, keep, [record.operation for record in added]),
        permissions=_codes(base.permissions, keep, [record.permission_type for record in added]),
        raw_codes=raw_codes,
        tags=tags,
    )


def _resource_key(record: AccessControlEntryRecord) -> bytes:
    kind, name, literal = key_of(record)
    return resource_key(kind, name, literal=literal)


def _raw_codes(added: Sequence[AccessControlEntryRecord]) -> Iterator[tuple[int, tuple[int, int]]]:
    for n, record in enumerate(added):
        key = _resource_key(record)
        if (record.resource_type, record.pattern_type) != (key[0], key[-1]):
            yield n, (record.resource_type, record.pattern_type)


def _codes(before: memoryview, keep: Bools, added: list[int]) -> Bytes:
    return np.concatenate((np.frombuffer(before, np.uint8)[keep], np.array(added, np.int8).view(np.uint8)))


def _numbered(
    base: Base, table: KeyTable, numbers: Int32s, added: Sequence[AccessControlEntryRecord], pause: Pause
) -> tuple[ByteStrings, Int32s]:
    """Return the keys that are used after the merge, and the number of each row's key."""
    new: dict[bytes, int] = {}
    found = []
    for n, record in enumerate(added):
        if n % _CHUNK == 0:
            pause()
        if table is base.pairs:
            key, number = pair_key(record.principal, record.host), base.pair(record.principal, record.host)
        else:
            kind, name, literal = key_of(record)
            key, number = resource_key(kind, name, literal=literal), base.resource(kind, name, literal=literal)
        found.append(number if number >= 0 else new.setdefault(key, len(table) + len(new)))
    numbers = np.concatenate((numbers, np.array(found, np.int32)))
    offsets = np.asarray(table.offsets).astype(np.int64)
    keys = ByteStrings(offsets, np.frombuffer(table.data, np.uint8)).joined(ByteStrings.of(list(new)))
    used = np.bincount(numbers, minlength=len(keys)) > 0
    if not used.all():
        keys = keys.take(np.flatnonzero(used), pause)
        numbers = (np.cumsum(used) - 1).astype(np.int32)[numbers]
    return keys, numbers
