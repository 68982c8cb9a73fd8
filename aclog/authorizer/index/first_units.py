"""The first UTF-16 code unit of resource names, which decides where Kafka's scan jumps (kafka_scan_order)."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from aclog.authorizer.acl import WILDCARD
from aclog.metalog.vectors import Bools, Bytes, Int64s

UnitCounts: TypeAlias = Mapping[tuple[int, int], int]
"""By resource type and first code unit of the name: how many ACLs there are. Those on `*` and on the empty name are
left out."""

_SUPPLEMENTARY, _HIGH_SURROGATES = 0x10000, 0xD800
_UNITS = 1 << 16


def first_unit(name: str) -> int:
    """Return the first UTF-16 code unit; 0 for the empty name."""
    code = ord(name[0]) if name else 0
    return code if code < _SUPPLEMENTARY else _HIGH_SURROGATES + (code - _SUPPLEMENTARY >> 10)


def count_units(kinds: Bytes, data: Bytes, starts: Int64s, ends: Int64s, acls: Int64s) -> dict[tuple[int, int], int]:
    """Return the UnitCounts of resources, given their types, their names as ranges of UTF-8, and their numbers of ACLs.

    A few vector operations, so that no decision has to pass over all resources.
    """
    named: Bools = (ends > starts) & ~((ends - starts == 1) & (data.take(starts, mode="clip") == ord(WILDCARD)))
    key = kinds[named].astype(np.int64) * _UNITS + _units(data, starts[named])
    totals = np.bincount(key, weights=acls[named])
    return {divmod(each, _UNITS): int(totals[each]) for each in np.flatnonzero(totals).tolist()}


def _units(data: Bytes, starts: Int64s) -> Int64s:
    """Return the first code unit of each name, none of which is empty."""
    units = data[starts].astype(np.int64)
    wide = np.flatnonzero(units >= 0x80)
    if len(wide):
        lead = units[wide]
        second, third = (data.take(starts[wide] + step, mode="clip").astype(np.int64) & 0x3F for step in (1, 2))
        supplementary = (lead & 0x07) << 8 | second << 2 | third >> 4  # the code point without its last ten bits
        units[wide] = np.select(
            [lead < 0xE0, lead < 0xF0],
            [(lead & 0x1F) << 6 | second, (lead & 0x0F) << 12 | second << 6 | third],
            _HIGH_SURROGATES + supplementary - (_SUPPLEMENTARY >> 10),
        )
    return units
