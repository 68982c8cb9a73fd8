"""The merge of an overlay into the rows of a new base.

It runs in a background thread while others decide: no step holds the GIL for long, and `pause` is called between steps.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from aclog.authorizer.index.arrays import Binary, Int32s, Pause, no_pause
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.build import Rows
from aclog.authorizer.index.columns import row_keys
from aclog.authorizer.index.keys import KeyTable, pair_key, resource_key
from aclog.authorizer.index.overlay import Overlay, key_of
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.vectors import Bools, Bytes

_CHUNK = 512

_MAX_DEAD = 8
"""Unused keys are dropped once they are more than one in this many."""


def merged_rows(base: Base, overlay: Overlay, pause: Pause = no_pause) -> Rows:
    """Return the rows of a base with an overlay applied."""
    added = list(overlay.added.values())
    pause()
    keep = np.ones(len(base), np.bool_)
    keep[list(overlay.removed)] = False
    resource_of, pair_of = row_keys(base)
    resources = _numbered(base.resources, resource_of[keep], [_resource_key(record) for record in added], pause)
    pairs = _numbered(base.pairs, pair_of[keep], [pair_key(record.principal, record.host) for record in added], pause)
    kept = int(keep.sum())
    moved = np.cumsum(keep) - 1
    raw_codes = {int(moved[row]): kinds for row, kinds in base.raw_codes.items() if keep[row]}
    raw_codes |= {kept + n: kinds for n, kinds in _raw_codes(added)}
    tags = {int(moved[row]): fields for row, fields in base.tags.items() if keep[row]}
    tags |= {kept + n: record.tagged_fields for n, record in enumerate(added) if record.tagged_fields}
    ids = np.frombuffer(base.ids.ids, np.uint8).reshape(-1, 16)[keep]
    return Rows(
        resources=resources[0],
        resource_of=resources[1],
        resource_table=resources[2],
        pairs=pairs[0],
        pair_of=pairs[1],
        pair_table=pairs[2],
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


def _codes(before: bytes, keep: Bools, added: list[int]) -> Bytes:
    return np.concatenate((np.frombuffer(before, np.uint8)[keep], np.array(added, np.int8).view(np.uint8)))


def _numbered(
    table: KeyTable, numbers: Int32s, added: Sequence[bytes], pause: Pause
) -> tuple[Binary, Int32s, KeyTable | None]:
    """Return the keys after the merge, the number of each row's key, and the old table if it can be reused.

    Building a table hashes every key. So keys without rows stay as long as no key is new and they are few.
    """
    new: dict[bytes, int] = {}
    found = []
    for n, key in enumerate(added):
        if n % _CHUNK == 0:
            pause()
        number = table.find(key)
        found.append(number if number >= 0 else new.setdefault(key, len(table) + len(new)))
    numbers = np.concatenate((numbers, np.array(found, np.int32)))
    used = np.bincount(numbers, minlength=len(table) + len(new)) > 0
    dead = int(len(used) - used.sum())
    if not new and dead * _MAX_DEAD <= len(table):
        return table.array(), numbers, table
    keys = pa.concat_arrays([table.array(), pa.array(list(new), table.array().type)])
    if dead:
        keys = keys.filter(pa.array(used))
        numbers = (np.cumsum(used) - 1).astype(np.int32)[numbers]
    return keys, numbers, None
