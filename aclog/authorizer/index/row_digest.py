"""A number that is equal for equal sets of ACLs, of any base: what proves that a merge lost, made up and mixed up none.

It is a sum over the ACLs, so that those of a merged base are those of its parts. It guards against mistakes and damage
and not against whoever can choose what is merged.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclog.authorizer.index.base import Base
from aclog.authorizer.index.byte_strings import ByteStrings
from aclog.authorizer.index.columns import row_keys
from aclog.authorizer.index.keys import KeyTable, pair_key, resource_key
from aclog.authorizer.index.overlay import key_of
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.vectors import Bytes, Int64s

_MULTIPLIERS = tuple(
    np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
)
_HALF = np.uint64(32)
_WORD = 8
_LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
"""By a number of bytes: the mask of that many."""

SUMS = 1 << 64
"""Digests are below this, and added modulo this."""

Hashes: TypeAlias = NDArray[np.uint64]


def base_digest(base: Base, without: Iterable[int] = ()) -> int:
    """Return the digest of all ACLs of a base, or of all but some of its rows."""
    resource_of, pair_of = row_keys(base)
    hashes = _rows(
        _of_table(base.resources)[resource_of],
        _of_table(base.pairs)[pair_of],
        ids=np.frombuffer(base.ids.ids, np.uint8),
        operations=np.frombuffer(base.operations, np.uint8),
        permissions=np.frombuffer(base.permissions, np.uint8),
    )
    gone = np.fromiter(without, np.int64)
    return (int(hashes.sum()) - int(hashes[gone].sum())) % SUMS


def ids_digest(ids: Bytes) -> int:
    """Return a digest of ids alone, 16 bytes each; in few steps, as `base_digest` is not."""
    return int(_mixed(_of_ids(ids)).sum()) % SUMS


def records_digest(records: Iterable[AccessControlEntryRecord]) -> int:
    """Return the digest of these ACLs."""
    rules = list(records)
    resources, pairs = [], []
    for record in rules:
        kind, name, literal = key_of(record)
        resources.append(resource_key(kind, name, literal=literal))
        pairs.append(pair_key(record.principal, record.host))
    found = _rows(
        _of_strings(ByteStrings.of(resources)),
        _of_strings(ByteStrings.of(pairs)),
        ids=np.frombuffer(b"".join(record.id.int.to_bytes(16) for record in rules), np.uint8),
        operations=np.array([record.operation & 0xFF for record in rules], np.uint8),
        permissions=np.array([record.permission_type & 0xFF for record in rules], np.uint8),
    )
    return int(found.sum()) % SUMS


def _rows(resources: Hashes, pairs: Hashes, *, ids: Bytes, operations: Bytes, permissions: Bytes) -> Hashes:
    """Return the hash of each row."""
    one, two, _, _ = _MULTIPLIERS
    found = resources * one
    found ^= pairs * two
    found += _of_ids(ids)
    found += (operations.astype(np.uint64) << np.uint64(8) | permissions) * two
    return _mixed(found)


def _of_ids(ids: Bytes) -> Hashes:
    halves = ids.view("<u8").reshape(-1, 2)
    found: Hashes = halves[:, 0] * _MULTIPLIERS[2]
    found ^= halves[:, 1] * _MULTIPLIERS[3]
    return found


def _mixed(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> _HALF
    hashes *= _MULTIPLIERS[0]
    hashes ^= hashes >> _HALF
    return hashes


def _of_table(table: KeyTable) -> Hashes:
    return _of_strings(ByteStrings(np.asarray(table.offsets).astype(np.int64), np.frombuffer(table.data, np.uint8)))


def _of_strings(strings: ByteStrings) -> Hashes:
    """Return the hash of each string, eight bytes at a time."""
    padded = np.concatenate((strings.data, np.zeros(_WORD, np.uint8)))
    # Every position is the start of a word: an unaligned view of the same bytes.
    words = np.ndarray(len(strings.data) + 1, np.dtype("<u8"), padded, strides=(1,))
    at, left = strings.starts, strings.ends - strings.starts
    hashes = left.astype(np.uint64)
    rows: Int64s | slice = slice(None)
    while len(at):
        hashes[rows] = _mixed(hashes[rows] * _MULTIPLIERS[1] ^ words[at] & _LOW_BYTES[np.minimum(left, _WORD)])
        longer = np.flatnonzero(left > _WORD)
        rows = longer if isinstance(rows, slice) else rows[longer]
        at, left = at[longer] + _WORD, left[longer] - _WORD
    return hashes
