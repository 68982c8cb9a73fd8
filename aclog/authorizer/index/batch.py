"""Many decisions at once: distinct requests once each, and where few repeat, all of them with numpy."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import islice
from typing import Self

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.decision_mask import State
from aclog.authorizer.index.masks import ALLOWED, DENIED, Masks
from aclog.authorizer.index.tables import numbers_of, tables_of
from aclog.metalog.vectors import Bools, Int64s

_CHUNK = 1 << 20
"""Requests looked at together: it bounds what is held beside them."""

_SAMPLE = 1 << 16
_REPEATS = 20
"""All with numpy where more than one request in so many is distinct."""

_TABLE = 1 << 24
"""Numbers below this are renumbered through a table, others through a hash."""

_FIRST_PREFIX = 2
MOST_LEVELS = 8
"""The masks of names with more prefixes are looked up one by one."""


class Answer(IntEnum):
    """What becomes of one of many requests."""

    DENIED = 0
    ALLOWED = 1
    ERROR = 2
    """Malformed, or Kafka's authorizer would throw."""


@frozen(eq=False, kw_only=True)
class Askings:
    """Requests without their operations: who asks, from where, and about what (a type and a name), as numbers."""

    principals: Sequence[str]
    principal_of: Int32s
    hosts: Sequence[str]
    host_of: Int32s
    types: Sequence[int]
    names: Sequence[str]
    place_of: Int32s
    """The index into `types` and `names`."""

    def rows(self, rows: Int64s | slice) -> Self:
        """Some of them."""
        return evolve(
            self, principal_of=self.principal_of[rows], host_of=self.host_of[rows], place_of=self.place_of[rows]
        )

    def distinct(self) -> tuple[Self, Int32s]:
        """Each that differs once, and the index of each row's among them."""
        hosts, places = len(self.hosts), len(self.names)
        askers, asker_of = distinct(
            self.principal_of.astype(np.int64) * hosts + self.host_of, len(self.principals) * hosts
        )
        values, rows = distinct(asker_of.astype(np.int64) * places + self.place_of, len(askers) * places)
        asker = askers[values // places]
        return evolve(
            self,
            principal_of=(asker // hosts).astype(np.int32),
            host_of=(asker % hosts).astype(np.int32),
            place_of=(values % places).astype(np.int32),
        ), rows

    def repeat(self) -> bool:
        """Whether so many are the same that deciding the distinct ones is quicker; judged by a sample."""
        step = max(len(self.place_of) // _SAMPLE, 1)
        sample = self.rows(slice(0, step * _SAMPLE, step))
        return len(self.place_of) < _SAMPLE or len(sample.distinct()[0].place_of) * _REPEATS <= len(sample.place_of)


def distinct(numbers: Int64s, size: int) -> tuple[Int64s, Int32s]:
    """The distinct ones of numbers in 0..size-1, and the index of each row's among them."""
    if size <= _TABLE:
        used = np.zeros(size, np.bool_)
        used[numbers] = True
        return np.flatnonzero(used), (np.cumsum(used, dtype=np.int32) - 1)[numbers]
    encoded = pa.array(numbers).dictionary_encode()
    return np.asarray(encoded.dictionary), np.asarray(encoded.indices)


def scalar_masks(state: State, asked: Askings, subject: Callable[[str, str], Subject], *, star_always: bool) -> Masks:
    """The mask of each row, one by one; `subject` resolves a principal and a host."""
    rows = zip(asked.principal_of.tolist(), asked.host_of.tolist(), asked.place_of.tolist(), strict=True)
    found = (
        state.mask(
            subject(asked.principals[who], asked.hosts[where]), asked.types[what], asked.names[what], star_always
        )
        for who, where, what in rows
    )
    return np.fromiter(found, np.uint32, len(asked.place_of))


def all_masks(state: State, asked: Askings, *, star_always: bool) -> tuple[Masks, Int64s]:
    """The mask of each row, looked up with numpy, and the rows that are left for scalar_masks.

    The state has no overlay, and no hosts that are ranges.
    """
    tables = tables_of(state.base)
    places = _Places.of(state, asked, star_always=star_always)
    principals, hosts = numbers_of(asked.principals, tables.principals), numbers_of(asked.hosts, tables.hosts)
    (anybody,), (anywhere,) = numbers_of([WILDCARD_PRINCIPAL], tables.principals), numbers_of([WILDCARD], tables.hosts)
    from_anywhere = tables.pair(principals, np.full_like(principals, anywhere))
    for_anybody = tables.pair(np.full_like(hosts, anybody), hosts)
    all_of_them = tables.pair(np.array([anybody]), np.array([anywhere]))
    masks = np.zeros(len(asked.place_of), np.uint32)
    for start in range(0, len(masks), _CHUNK):
        rows = slice(start, start + _CHUNK)
        who, where, what = asked.principal_of[rows], asked.host_of[rows], asked.place_of[rows]
        pairs = [from_anywhere[who], for_anybody[where], np.broadcast_to(all_of_them, who.shape)]
        if (hosts >= 0).any():
            pairs.append(tables.pair(principals[who], hosts[where]))
        for pair in pairs:
            if (pair >= 0).any():
                for level in places.levels:
                    masks[rows] |= tables.cells.get(level[what], pair)
    return masks, np.flatnonzero(places.deep[asked.place_of])


@frozen(eq=False, kw_only=True)
class _Places:
    """Where names lead, in columns."""

    levels: list[Int32s]
    """The LITERAL resource, LITERAL `*` where it matches, and those of the prefixes; -1 where there is none."""
    deep: Bools
    """There are more prefixes than levels."""

    @classmethod
    def of(cls, state: State, asked: Askings, *, star_always: bool) -> Self:
        """The resources on each name asked for, looked up once a name."""
        base, count = state.base, len(asked.names)
        levels = [np.full(count, -1, np.int32) for _ in range(_FIRST_PREFIX + MOST_LEVELS)]
        deep = np.zeros(count, np.bool_)
        deepest = 0
        for place, (kind, name) in enumerate(zip(asked.types, asked.names, strict=True)):
            levels[0][place] = base.resource(kind, name, literal=True)
            if star_always or name[:1] != WILDCARD:
                levels[1][place] = base.stars[kind]
            nodes = list(islice(base.prefixes[kind].chain(name), MOST_LEVELS + 1))
            deep[place] = len(nodes) > MOST_LEVELS
            for level, node in enumerate(nodes[:MOST_LEVELS]):
                levels[_FIRST_PREFIX + level][place] = base.prefixes[kind].resources[node]
            deepest = max(deepest, min(len(nodes), MOST_LEVELS))
        return cls(levels=levels[: _FIRST_PREFIX + deepest], deep=deep)


def answers(masks: Masks, operations: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """ALLOWED or DENIED by masks alone."""
    bits = masks >> operations
    allowed: Bools = (bits & np.uint32(ALLOWED | DENIED)) == ALLOWED
    return allowed.view(np.uint8)
