"""Distinct accesses of a log, counted once per version of the ACLs that made a difference to them."""

from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field

from aclog.metalog.vectors import Int64s
from aclog.usage.decisions.accesses import REQUEST_COLUMNS, Access, AccessNumbers, ParsedAccess, parse_access
from aclog.usage.decisions.decision_steps import DecisionSteps
from aclog.usage.decisions.necessary_acls import NecessaryAcls

_MOST_HELD = 1 << 18
"""Distinct accesses that a task holds before it emits its counts; about 700 bytes each."""

_MOST_STEPS = 1 << 22
"""Steps of these accesses that a task holds, one per change of the ACLs; about 50 bytes each."""

_NEVER = np.iinfo(np.int64).max

COUNTED = pa.schema(
    [pa.field(name, pa.string()) for name in REQUEST_COLUMNS]
    + [pa.field(name, pa.int64()) for name in ("version", "count", "first", "last")]
)
"""An access, its count, its first and last time (us since 1970) while the ACLs it depends on are those of `version`."""


@define(eq=False)
class SeenAccesses:
    """The accesses that a worker process has seen, and the versions at which the ACLs they depend on change."""

    acls: NecessaryAcls
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
        self.steps = DecisionSteps(self.acls.intervals.versions.end)

    def number(self, columns: list[Any]) -> Int64s:
        """Return the number of each row's access."""
        access_of, new = self.numbers.number(columns)
        if new:
            self._learn(new)
        return access_of

    def _learn(self, new: list[Access]) -> None:
        parsed = [(at, access) for at, access in enumerate(map(parse_access, new)) if isinstance(access, ParsedAccess)]
        changes = self.acls.changes([access for _, access in parsed])
        moving = {parsed[at][0]: [(version, 0) for version in versions.tolist()] for at, versions in changes.items()}
        self.steps.append(np.zeros(len(new), np.int32), moving)
        self.accesses += new
        self.size += len(new) + sum(len(steps) - 1 for steps in moving.values())


@define(eq=False)
class AccessCounter:
    """Counts the accesses of one task by step, as DecisionSteps numbers steps."""

    seen: SeenAccesses
    _access_of: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _counts: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _first: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _last: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    """By step."""

    def add(self, columns: list[Any], times: Int64s) -> None:
        """Count rows: the columns REQUEST_COLUMNS, and the times in us since 1970."""
        access_of = self.seen.number(columns)
        steps = self.seen.steps.steps(access_of, self.seen.acls.intervals.versions.at(times))
        more = self.seen.size - len(self._counts)
        self._access_of, self._counts = (_longer(column, more, 0) for column in (self._access_of, self._counts))
        self._first, self._last = _longer(self._first, more, _NEVER), _longer(self._last, more, -_NEVER)
        self._access_of[steps] = access_of
        np.add.at(self._counts, steps, 1)
        np.minimum.at(self._first, steps, times)
        np.maximum.at(self._last, steps, times)

    def table(self) -> pa.Table:
        """Return the counts (COUNTED)."""
        steps = np.flatnonzero(self._counts)
        accesses = [self.seen.accesses[at] for at in self._access_of[steps].tolist()]
        texts = [pa.array(part, pa.string()) for part in zip(*accesses, strict=True)] or [pa.array([], pa.string())] * 5
        numbers = self.seen.steps.versions(steps), self._counts[steps], self._first[steps], self._last[steps]
        return pa.table([*texts, *map(pa.array, numbers)], schema=COUNTED)


def _longer(column: Int64s, more: int, value: int) -> Int64s:
    return np.concatenate((column, np.full(more, value, np.int64)))
