"""The order in which Kafka looks at the rules of a request, as one number a rule.

Of the rules on one name the first that denies and the last that allows are named. The names are all prefixes of the one
that was asked about, so "longest first" is an order of all rules, whatever was asked: by length, and at one length by
what stands in the rule (authorizer.index.rules.visit_key). LITERAL `*` and the empty name come last. Where Kafka strays
from that order (authorizer.index.order), LITERAL `*` takes part.
"""

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclog.authorizer.index.arrays import Binary, Int32s, binary_columns, slices
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.columns import row_keys
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.masks import OPERATIONS, known_pattern, known_permission
from aclog.authorizer.index.tables import tables_of
from aclog.metalog.vectors import Bytes, Int64s, unsigned_varints

NAMED, STAR, EMPTY = 0, 1, 2
"""Levels: a rule on a name or a prefix, on LITERAL `*`, on the empty name."""

_FIRST_ABOVE_SURROGATES = 0xEE
"""Code points from U+E000 on begin with this byte or a higher one; only there UTF-8 and UTF-16 sort differently."""

_PERMISSIONS = np.array([known_permission(byte) for byte in range(256)], np.int8)


def levels_of(base: Base) -> NDArray[np.uint8]:
    """The level of each row."""
    levels = np.full(len(base.resources), NAMED, np.uint8)
    levels[[star for star in base.stars if star >= 0]] = STAR
    levels[_name_lengths(base) == 0] = EMPTY
    return levels[row_keys(base)[0]]


def ranks_of(base: Base) -> Int32s:
    """The place of each row in the order of visits, among all rows."""
    resource_of, pair_of = row_keys(base)
    tables = tables_of(base)
    operations = np.frombuffer(base.operations, np.uint8)
    order = np.lexsort(
        (
            _PERMISSIONS[np.frombuffer(base.permissions, np.uint8)],
            _text_ranks(tables.hosts)[tables.host_of[pair_of]],
            _text_ranks(tables.principals)[tables.principal_of[pair_of]],
            np.where(operations < OPERATIONS, operations, 0),
            _patterns(base, resource_of),
            -_name_lengths(base)[resource_of],
            levels_of(base),
        )
    )
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def _patterns(base: Base, resource_of: Int32s) -> Bytes:
    """The pattern type of each row, as it stands in the record."""
    data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets)
    patterns: Bytes = data[offsets[1:] - 1][resource_of] if len(resource_of) else np.zeros(0, np.uint8)
    for row, (_, pattern) in base.odd.items():
        patterns[row] = known_pattern(pattern)
    return patterns


def _name_lengths(base: Base) -> Int64s:
    """The length of each resource's name in UTF-16 code units, which is how Java counts and compares."""
    data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets).astype(np.int64)
    if not len(data):
        return np.zeros(0, np.int64)
    _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
    units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate(([0], np.cumsum(units)))
    lengths: Int64s = before[offsets[1:] - 1] - before[starts]
    return lengths


def _text_ranks(texts: Binary) -> Int32s:
    """The place of each compact string in the order of String.compareTo."""
    offsets, data = binary_columns(texts)
    _, starts, _ = unsigned_varints(data, offsets[:-1])
    plain = slices(data.data, starts, offsets[1:])
    if (data >= _FIRST_ABOVE_SURROGATES).any():
        values: list[bytes] = plain.to_pylist()  # type: ignore[assignment]  # there are no nulls
        order = np.array(sorted(range(len(values)), key=lambda at: utf16(values[at].decode())), np.int64)
    else:
        order = np.asarray(pc.array_sort_indices(plain)).astype(np.int64)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks
