"""Sets of lives that matched accesses together, each kept once: its number is its place among all."""

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Final

import numpy as np

from aclog.metalog.errors import DecodeError
from aclog.metalog.vectors import Int64s
from aclog.usage.index.packing import packed, unpacked
from aclog.usage.unused.access_sets import AccessSets

TABLES: Final = """
CREATE TABLE sets (segment INTEGER PRIMARY KEY, digests BLOB NOT NULL, columns BLOB NOT NULL);
"""

_SEGMENT = 1 << 13
_DIGEST = 16


def set_numbers(database: sqlite3.Connection, sets: AccessSets) -> Int64s:
    """Return the numbers of sets, whose members ascend within the denies and within the allows; add those not known."""
    digests = _digests(sets)
    known = b"".join(row[0] for row in database.execute("SELECT digests FROM sets ORDER BY segment"))
    number_of = {known[at : at + _DIGEST]: at // _DIGEST for at in range(0, len(known), _DIGEST)}
    numbers, new = np.empty(len(sets), np.int64), list[int]()
    count = len(number_of)
    for at, digest in enumerate(digests):
        number = number_of.setdefault(digest, len(number_of))
        numbers[at] = number
        if number == count + len(new):
            new.append(at)
    _append(database, count, sets, new, digests)
    return numbers


def read_sets(database: sqlite3.Connection, numbers: Int64s) -> AccessSets:
    """Return sets by their numbers, which ascend."""
    sizes, members, denies = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for segment in np.unique(numbers // _SEGMENT).tolist():
        wanted = numbers[numbers // _SEGMENT == segment] % _SEGMENT
        size, member, deny = _segment(database, segment)
        if wanted[-1] >= len(size):
            raise DecodeError("sets are missing: damaged")
        chosen = np.zeros(len(size), np.bool_)
        chosen[wanted] = True
        of_member = np.repeat(chosen, size)
        sizes.append(size[wanted])
        members.append(member[of_member])
        denies.append(deny[of_member])
    return AccessSets(
        starts=np.concatenate(([0], np.cumsum(np.concatenate(sizes)))),
        members=np.concatenate(members),
        denies=np.concatenate(denies) > 0,
    )


def _append(
    database: sqlite3.Connection, count: int, sets: AccessSets, new: Sequence[int], digests: Sequence[bytes]
) -> None:
    at = 0
    while at < len(new):
        segment, known = divmod(count + at, _SEGMENT)
        chosen = new[at : at + _SEGMENT - known]
        size, member, deny = _segment(database, segment) if known else [np.zeros(0, np.int64)] * 3
        is_chosen = np.zeros(len(sets), np.bool_)
        is_chosen[list(chosen)] = True
        of_member = np.repeat(is_chosen, np.diff(sets.starts))
        columns = packed(
            np.concatenate((size, np.diff(sets.starts)[is_chosen])),
            np.concatenate((member, sets.members[of_member])),
            np.concatenate((deny, sets.denies[of_member])),
        )
        row = database.execute("SELECT digests FROM sets WHERE segment = ?", (segment,)).fetchone()
        keys = b"".join((b"" if row is None else row[0], *(digests[each] for each in chosen)))
        database.execute("INSERT OR REPLACE INTO sets VALUES (?, ?, ?)", (segment, keys, columns))
        at += len(chosen)


def _segment(database: sqlite3.Connection, segment: int) -> list[Int64s]:
    row = database.execute("SELECT columns FROM sets WHERE segment = ?", (segment,)).fetchone()
    if row is None:
        raise DecodeError("sets are missing: damaged")
    columns = unpacked(row[0])
    if len(columns) != 3 or not columns[0].sum() == len(columns[1]) == len(columns[2]):
        raise DecodeError("sets without their members: damaged")
    return columns


def _digests(sets: AccessSets) -> list[bytes]:
    data = (sets.members << 1 | sets.denies).astype("<i8").tobytes()
    ends = (sets.starts * 8).tolist()
    return [blake2b(data[a:b], digest_size=_DIGEST).digest() for a, b in pairwise(ends)]
