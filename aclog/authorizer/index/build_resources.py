"""The columns of a base about its resources: prefixes and their links, LITERAL `*`, first units; and odd pairs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD, PatternType
from aclog.authorizer.index.arrays import Int32s, Pause, UInt32s, distinct, no_pause
from aclog.authorizer.index.byte_strings import ByteStrings, sorted_rows
from aclog.authorizer.index.first_units import count_units
from aclog.authorizer.index.keys import bucket_count
from aclog.authorizer.index.masks import TYPES
from aclog.authorizer.index.prefixes import links
from aclog.metalog.vectors import Bools, Int64s, unsigned_varints

_COLON, _SLASH = ord(":"), ord("/")

FILTER_BITS = 16
"""Bits of the filter per prefix: with two of them set for each, one absent name in 70 gets through."""
SECOND_BIT = 0xC2B2AE35
"""The hash is multiplied by it for the second bit."""


def resource_columns(keys: ByteStrings, hashes: UInt32s, acls: Int64s, pause: Pause = no_pause) -> dict[str, Any]:
    """Return these columns of BaseColumns, given the resource keys, their hashes and their numbers of ACLs."""
    _, name_starts, _ = unsigned_varints(keys.data, keys.starts + 1)
    name_ends, kinds = keys.ends - 1, keys.data[keys.starts]
    prefixed = keys.data[name_ends] == PatternType.PREFIXED
    # mode="clip": the empty name at the very end of the data has no first byte.
    stars = ~prefixed & (name_ends - name_starts == 1) & (keys.data.take(name_starts, mode="clip") == ord(WILDCARD))
    wildcards = np.full(TYPES, -1, np.int32)
    wildcards[kinds[stars]] = np.flatnonzero(stars)
    nodes, parents, jumps, type_nodes = _forest(keys, np.flatnonzero(prefixed), name_starts, pause)
    return {
        "prefix_resources": nodes,
        "prefix_parents": parents,
        "prefix_jumps": jumps,
        "type_nodes": type_nodes,
        "prefix_lengths": _lengths((name_ends - name_starts)[nodes], type_nodes),
        "prefix_filter": _filter(hashes[nodes]),
        "wildcards": wildcards,
        "units": count_units(kinds, keys.data, name_starts, name_ends, acls),
    }


def _forest(
    keys: ByteStrings, prefixed: Int64s, name_starts: Int64s, pause: Pause
) -> tuple[Int32s, Int32s, Int32s, Int32s]:
    """Return the prefixed resources by type and name, their parents and jump links, and where each type begins."""
    nodes: list[Int64s] = []
    parents: list[Int32s] = []
    jumps: list[Int32s] = []
    type_nodes, kinds = [0], keys.data[keys.starts[prefixed]]
    for kind in range(TYPES):
        members = prefixed[kinds == kind]
        rows = sorted_rows(keys.data, name_starts[members], keys.ends[members] - 1)
        pause()
        members, first = members[rows], type_nodes[-1]
        names = ByteStrings.cut(keys.data, name_starts[members], keys.ends[members] - 1, pause).values()
        for found, into in zip(links(names, pause), (parents, jumps), strict=True):
            column = np.array(found, np.int32)
            into.append(np.where(column < 0, column, column + np.int32(first)))
        nodes.append(members)
        type_nodes.append(first + len(members))
    columns = (np.concatenate(each).astype(np.int32) for each in (nodes, parents, jumps))
    return *columns, np.array(type_nodes, np.int32)  # type: ignore[return-value]  # three of them


def _lengths(sizes: Int64s, type_nodes: Int32s) -> Int32s:
    """Return where the lengths of each type begin, and then the distinct lengths in bytes of each type's prefixes."""
    of_types = [distinct(sizes[type_nodes[kind] : type_nodes[kind + 1]]) for kind in range(TYPES)]
    starts = np.cumsum([0, *map(len, of_types)])
    return np.concatenate((starts, *of_types)).astype(np.int32)


def _filter(hashes: UInt32s) -> NDArray[np.uint64]:
    """Return a Bloom filter of these hashes: two bits for each."""
    words = bucket_count(-(-len(hashes) * FILTER_BITS // 64))
    shift = np.uint32(32 - (64 * words).bit_length() + 1)
    found = np.zeros(words, np.uint64)
    for bits in (hashes >> shift, (hashes * np.uint32(SECOND_BIT)) >> shift):
        np.bitwise_or.at(found, bits >> np.uint32(6), np.uint64(1) << (bits & np.uint32(63)).astype(np.uint64))
    return found


def with_colon(pairs: ByteStrings) -> Bools:
    """Return whether the principal of each pair key has a colon."""
    length, starts, _ = unsigned_varints(pairs.data, pairs.starts)
    colons = np.append(np.flatnonzero(pairs.data == _COLON), len(pairs.data) + 1)
    return np.asarray(colons[np.searchsorted(colons, starts)] < starts + length - 1, np.bool_)


def with_slash(pairs: ByteStrings) -> Int32s:
    """Return the pairs whose host may have a slash (or 46 bytes: a length is not told from a slash), sorted by key."""
    length, starts, _ = unsigned_varints(pairs.data, pairs.starts)
    slashes = np.append(-1, np.flatnonzero(pairs.data == _SLASH))
    found = np.flatnonzero(slashes[np.searchsorted(slashes, pairs.ends) - 1] >= starts + length - 1)
    in_order: Int32s = found[sorted_rows(pairs.data, pairs.starts[found], pairs.ends[found])].astype(np.int32)
    return in_order
