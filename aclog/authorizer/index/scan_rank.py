"""Kafka's scan order as one number per ACL, for deciding in bulk.

All ACLs that cover a name have that name or a prefix of it. So "longest name first" is an order of all ACLs, whatever
the request: by length of the name, then by aclog.authorizer.index.kafka_scan_order.scan_key. LITERAL `*` and the empty
name
"""

import numpy as np
from numpy.typing import NDArray

from aclog.authorizer.acl import PatternType
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.byte_strings import ByteStrings, sorted_rows
from aclog.authorizer.index.columns import row_keys
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.masks import OPERATIONS, known_pattern, known_permission
from aclog.authorizer.index.tables import tables_of
from aclog.metalog.vectors import Bytes, Int64s, unsigned_varints

NAMED, STAR, EMPTY, ODD = 0, 1, 2, 3
"""Levels: ACLs on a name or a non-empty prefix, on LITERAL `*`, on the empty name; and those on the empty name whose
pattern type only a record can carry, which Kafka may visit earlier than their rank says."""

_FIRST_ABOVE_SURROGATES = 0xEE
"""UTF-8 lead byte of U+E000. Only texts with code points from there on sort differently in UTF-8 and UTF-16."""

_PERMISSIONS = np.array([known_permission(byte) for byte in range(256)], np.int8)


def levels_of(base: Base) -> NDArray[np.uint8]:
    """Return the level of each row."""
    levels = np.full(len(base.resources), NAMED, np.uint8)
    levels[[number for number in base.wildcard_resources if number >= 0]] = STAR
    levels[_name_lengths(base) == 0] = EMPTY
    of_rows: NDArray[np.uint8] = levels[row_keys(base)[0]]
    for row, (_, pattern) in base.raw_codes.items():
        if of_rows[row] == EMPTY and known_pattern(pattern) < PatternType.LITERAL:
            of_rows[row] = ODD
    return of_rows


def ranks_of(base: Base) -> Int32s:
    """Return the rank of each row in scan order, among all rows."""
    resource_of, pair_of = row_keys(base)
    tables = tables_of(base)
    operations = np.frombuffer(base.operations, np.uint8)
    order = np.lexsort(  # the last key is the most significant one
        (
            _PERMISSIONS[np.frombuffer(base.permissions, np.uint8)],
            _text_ranks(tables.hosts)[tables.host_of[pair_of]],
            _text_ranks(tables.principals)[tables.principal_of[pair_of]],
            np.where(operations < OPERATIONS, operations, 0),
            _patterns(base, resource_of),
            -_name_lengths(base)[resource_of],
            np.minimum(levels_of(base), EMPTY),
        )
    )
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def _patterns(base: Base, resource_of: Int32s) -> Bytes:
    """Return the pattern type of each row as Kafka reads it from the record."""
    data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets)
    patterns: Bytes = data[offsets[1:] - 1][resource_of] if len(resource_of) else np.zeros(0, np.uint8)
    for row, (_, pattern) in base.raw_codes.items():
        patterns[row] = known_pattern(pattern)
    return patterns


def _name_lengths(base: Base) -> Int64s:
    """Return the length of each resource's name in UTF-16 code units, as Java counts."""
    data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets).astype(np.int64)
    if not len(data):
        return np.zeros(0, np.int64)
    _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
    # One unit per UTF-8 lead byte, one more for the lead byte of a four-byte sequence (a surrogate pair in UTF-16).
    units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate(([0], np.cumsum(units)))
    lengths: Int64s = before[offsets[1:] - 1] - before[starts]
    return lengths


def _text_ranks(texts: ByteStrings) -> Int32s:
    """Return the rank of each compact string in the order of String.compareTo."""
    data = texts.data
    _, starts, _ = unsigned_varints(data, texts.starts)
    if (data >= _FIRST_ABOVE_SURROGATES).any():
        bounds = zip(starts.tolist(), texts.ends.tolist(), strict=True)
        values = [utf16(data[start:end].tobytes().decode()) for start, end in bounds]
        order = np.array(sorted(range(len(values)), key=values.__getitem__), np.int32)
    else:
        order = sorted_rows(data, starts, texts.ends)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks
