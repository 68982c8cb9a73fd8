"""The order of keys in a KeyTable: by the leading bits of their hashes; by their bytes where many share a bucket."""

import numpy as np

from aclog.authorizer.acl import PatternType
from aclog.authorizer.index.arrays import Int32s, Pause, UInt32s, changes, no_pause, starts_of
from aclog.authorizer.index.byte_strings import ByteStrings, crc32s
from aclog.authorizer.index.keys import CROWDED, FIBONACCI, SALT, bucket_count
from aclog.metalog.vectors import Int64s, unsigned_varints


def resource_hashes(keys: ByteStrings, pause: Pause = no_pause) -> UInt32s:
    """Return aclog.authorizer.index.keys.resource_hash of each resource key."""
    _, starts, _ = unsigned_varints(keys.data, keys.starts + 1)
    kinds = keys.data[keys.starts].astype(np.uint32)
    literal = keys.data[keys.ends - 1] == PatternType.LITERAL
    salts = (2 * kinds + literal).astype(np.uint32) * np.uint32(SALT)
    hashes: UInt32s = (crc32s(keys.data, starts, keys.ends - 1, pause) + salts) * np.uint32(FIBONACCI)
    return hashes


def pair_hashes(keys: ByteStrings, pause: Pause = no_pause) -> UInt32s:
    """Return aclog.authorizer.index.keys.pair_hash of each pair key."""
    hashes: UInt32s = crc32s(keys.data, keys.starts, keys.ends, pause) * np.uint32(FIBONACCI)
    return hashes


def bucket_order(keys: ByteStrings, hashes: UInt32s) -> tuple[Int64s, Int32s]:
    """Return the order of keys in a table, and where each bucket begins in it."""
    count = bucket_count(len(keys))
    bucket_of = _buckets(hashes, count)
    order = np.argsort(bucket_of, kind="stable")
    ordered = bucket_of[order]
    first = changes(ordered)
    sizes = np.diff(np.append(first, len(keys)))
    crowded = sizes > CROWDED
    for start, size in zip(first[crowded].tolist(), sizes[crowded].tolist(), strict=True):
        rows = order[start : start + size].tolist()
        rows.sort(key=lambda row: keys.data[keys.offsets[row] : keys.offsets[row + 1]].tobytes())
        order[start : start + size] = rows
    return order, starts_of(ordered, count)


def _buckets(hashes: UInt32s, count: int) -> Int64s:
    found: Int64s = (hashes.astype(np.int64) >> (33 - count.bit_length())).astype(np.int64)
    return found
