"""Distinct accesses of a log, counted once per version of the ACLs that made a difference to them."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from attrs import define, field

from aclog.metalog.vectors import Int64s
from aclog.usage.decisions.accesses import (
    REQUEST_COLUMNS,
    Access,
    AccessNumbers,
    ParsedAccess,
    parse_access,
    spelled_as_kafka,
)
from aclog.usage.decisions.decision_steps import DecisionSteps
from aclog.usage.decisions.necessary_acls import NecessaryAcls
from aclog.usage.window import DAY

_MOST_HELD = 1 << 18
"""Distinct accesses that a task holds before it emits its counts; about 700 bytes each."""

_MOST_STEPS = 1 << 22
"""Steps of these accesses that a task holds, one per change of the ACLs; about 50 bytes each."""

_MOST_COUNTS = 1 << 22
"""Counts that a task holds, by step and, if asked for, by day; 40 bytes each."""

_MOST_LOOSE = 1 << 20
"""Counts of single batches that a task holds before it adds them up."""

_EARLIEST, _LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_DAY_BITS = 24
"""For the day in a key: more than the days of the years 1 to 9999, of which half come before 1970."""
_DAY_0 = 1 << (_DAY_BITS - 1)

COUNTED = pa.schema(
    [pa.field(name, pa.string()) for name in REQUEST_COLUMNS]
    + [pa.field(name, pa.int64()) for name in ("version", "count", "first", "last")]
)
"""An access, its count, its first and last time (us since 1970) while the ACLs it depends on are those of `version`."""

COUNTED_BY_DAY = COUNTED.append(pa.field("day", pa.int32()))
"""The same by day: days since 1970, UTC."""


@define(eq=False)
class SeenAccesses:
    """The accesses that a worker process has seen, and the versions at which the ACLs they depend on change.

    One that is spelled in several ways has several numbers.
    """

    acls: NecessaryAcls | None
    """None if all accesses are judged by the ACLs of one version, whatever their time."""
    version: int = field(default=0, kw_only=True)
    """That version."""
    numbers: AccessNumbers = field(init=False)
    accesses: list[Access] = field(init=False)
    steps: DecisionSteps = field(init=False)
    size: int = field(init=False)
    """The number of steps; their decision codes are unused."""

    def __attrs_post_init__(self) -> None:
        """Start empty."""
        self.forget()

    @property
    def is_full(self) -> bool:
        """Whether it is time to emit the counts and forget the accesses."""
        return len(self.accesses) > _MOST_HELD or self.size > _MOST_STEPS

    def forget(self) -> None:
        """Forget all accesses."""
        self.numbers, self.accesses, self.size = AccessNumbers(), [], 0
        self.steps = DecisionSteps(1 if self.acls is None else self.acls.intervals.versions.end)

    def number(self, columns: list[Any]) -> Int64s:
        """Return the number of each row's access."""
        access_of, new = self.numbers.number(columns)
        if new:
            self._learn(new)
        return access_of

    def steps_of(self, access_of: Int64s, times: Int64s) -> Int64s:
        """Return the step of each row: its access, at its time (us since 1970)."""
        return self.steps.steps(access_of, 0 if self.acls is None else self.acls.intervals.versions.at(times))

    def versions_of(self, steps: Int64s) -> Int64s:
        """Return the version at which each step begins."""
        return np.full(len(steps), self.version) if self.acls is None else self.steps.versions(steps)

    def _learn(self, raw: list[Access]) -> None:
        new = list(map(spelled_as_kafka, raw))
        moving = {} if self.acls is None else _moving(self.acls, new)
        self.steps.append(np.zeros(len(new), np.int32), moving)
        self.accesses += new
        self.size += len(new) + sum(len(steps) - 1 for steps in moving.values())


def _moving(acls: NecessaryAcls, new: list[Access]) -> dict[int, list[tuple[int, int]]]:
    parsed = [(at, access) for at, access in enumerate(map(parse_access, new)) if isinstance(access, ParsedAccess)]
    changes = acls.changes([access for _, access in parsed])
    return {parsed[at][0]: [(version, 0) for version in versions.tolist()] for at, versions in changes.items()}


class _Counts(NamedTuple):
    """Counts in columns; keys are distinct."""

    key: Int64s
    """The step, and below it the day, if counted by day."""
    access: Int64s
    rows: Int64s
    first: Int64s
    last: Int64s


@define(eq=False)
class AccessCounter:
    """Counts the distinct accesses of one task by step, as DecisionSteps numbers steps, and by day if asked to."""

    seen: SeenAccesses
    by_day: bool = False
    _held: list[_Counts] = field(factory=list, init=False)
    _loose: int = field(default=0, init=False)
    """The counts in all but the first of them, which are those of single batches."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to emit the counts, and forget the accesses."""
        return self.seen.is_full or (bool(self._held) and len(self._held[0].key) > _MOST_COUNTS)

    def add(self, columns: list[Any], times: Int64s) -> None:
        """Count rows: the columns REQUEST_COLUMNS, and the times in us since 1970."""
        access_of = self.seen.number(columns)
        keys = self.seen.steps_of(access_of, times)
        if self.by_day:
            keys = keys << _DAY_BITS | (times // DAY + _DAY_0)
        found = _added_up(_Counts(keys, access_of, np.ones(len(keys), np.int64), times, times))
        self._hold(found)

    def add_timeless(self, columns: list[Any]) -> None:
        """Count rows without a time, by a counter of one version for all times and not by day.

        An access without any time has a `first` that is later than its `last`.
        """
        access_of = self.seen.number(columns)
        steps, rows = self.seen.steps_of(access_of, access_of), np.ones_like(access_of)
        first, last = (np.full(len(access_of), end, np.int64) for end in (_LATEST, _EARLIEST))
        self._hold(_added_up(_Counts(steps, access_of, rows, first, last)))

    def _hold(self, found: _Counts) -> None:
        self._held.append(found)
        self._loose += len(found.key)
        if self._loose > _MOST_LOOSE:
            self._add_up()

    def table(self) -> pa.Table:
        """Return the counts (COUNTED, or COUNTED_BY_DAY)."""
        self._add_up()
        if not self._held:
            return (COUNTED_BY_DAY if self.by_day else COUNTED).empty_table()
        counts = self._held[0]
        steps = counts.key >> _DAY_BITS if self.by_day else counts.key
        numbers: list[Any] = [self.seen.versions_of(steps), counts.rows, counts.first, counts.last]
        if self.by_day:
            numbers.append(((counts.key & ((1 << _DAY_BITS) - 1)) - _DAY_0).astype(np.int32))
        schema = COUNTED_BY_DAY if self.by_day else COUNTED
        return pa.table([*self._texts(counts.access), *map(pa.array, numbers)], schema=schema)

    def _texts(self, access: Int64s) -> list[Any]:
        # an access may have many counts: its texts become Arrow values once
        once, at = np.unique(access, return_inverse=True)
        accesses = [self.seen.accesses[number] for number in once.tolist()]
        return [pa.array(part, pa.string()).take(pa.array(at, pa.int64())) for part in zip(*accesses, strict=True)]

    def _add_up(self) -> None:
        if len(self._held) > 1:
            self._held = [_added_up(_Counts(*map(np.concatenate, zip(*self._held, strict=True))))]
        self._loose = 0


def _added_up(counts: _Counts) -> _Counts:
    encoded = pa.array(counts.key).dictionary_encode()
    of = np.asarray(encoded.indices)
    size = len(encoded.dictionary)
    access, count = np.empty(size, np.int64), np.zeros(size, np.int64)
    first, last = np.full(size, _LATEST), np.full(size, _EARLIEST)
    access[of] = counts.access
    np.add.at(count, of, counts.rows)
    np.minimum.at(first, of, counts.first)
    np.maximum.at(last, of, counts.last)
    return _Counts(np.asarray(encoded.dictionary), access, count, first, last)
