"""The distinct accesses of a log, each once for every version of the rules that made a difference to it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.vectors import Int64s
from aclog.pipeline.arrow_batches import regrouped
from aclog.pipeline.decisions.accesses import REQUEST_COLUMNS, Access, AccessNumbers, ParsedAccess, parse_access
from aclog.pipeline.decisions.acl_intervals import AclIntervals
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.decisions.decision_steps import DecisionSteps
from aclog.pipeline.decisions.necessary_acls import NecessaryAcls
from aclog.pipeline.decisions.versions import change_times

_ROWS = 1 << 18
"""Rows looked at together."""

_MOST_HELD = 1 << 18
"""Distinct accesses that a task adds up before it hands on what it has; about 700 bytes each."""

_MOST_STEPS = 1 << 22
"""And steps of these, as rules come and go; about 50 bytes each."""

_NEVER = np.iinfo(np.int64).max

COUNTED = pa.schema(
    [pa.field(name, pa.string()) for name in REQUEST_COLUMNS]
    + [pa.field(name, pa.int64()) for name in ("version", "count", "first", "last")]
)
"""An access, and how often and when (us since 1970) it came while the rules that matter to it stood as at `version`."""


def counted(frame: DataFrame, sent: "Broadcast[AclIntervals]", settings: Settings, *, own_time: bool) -> DataFrame:
    """The columns COUNTED of accesses that all have a time, one row each.

    `version` is the last one without `own_time`.

    Tasks add up what they see, and the JVM what these hand on: a distinct access goes over the wire once a task, and
    once more only where a task sees too many of them to hold.
    """
    rows = frame.select(*REQUEST_COLUMNS, F.unix_micros("timestamp").alias("time"))
    if own_time:
        some = rows.mapInArrow(_adding_up(sent, settings), from_arrow_schema(COUNTED))
    else:
        version, one = F.lit(len(change_times(sent.value))).cast("long"), F.lit(1).cast("long")
        first, last = F.col("time").alias("first"), F.col("time").alias("last")
        some = rows.select(*REQUEST_COLUMNS, version.alias("version"), one.alias("count"), first, last)
    return some.groupBy(*REQUEST_COLUMNS, "version").agg(
        F.sum("count").alias("count"), F.min("first").alias("first"), F.max("last").alias("last")
    )


def _adding_up(sent: "Broadcast[AclIntervals]", settings: Settings) -> Any:
    def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One task: its distinct accesses, added up."""
        known = _known(sent, settings)
        counting = Counting(known)
        for table in regrouped(batches, _ROWS):
            if known.is_full:
                yield from counting.table().to_batches(_ROWS)
                known.forget()
                counting = Counting(known)
            counting.add([table.column(name) for name in REQUEST_COLUMNS], np.asarray(table.column("time")))
        yield from counting.table().to_batches(_ROWS)

    return add_up


@lru_cache(1)
def _known(sent: "Broadcast[AclIntervals]", settings: Settings) -> "Known":
    """Kept by a worker from one task to the next: it knows what it has seen."""
    return Known(necessary_acls(sent, settings))


@lru_cache(2)
def necessary_acls(sent: "Broadcast[AclIntervals]", settings: Settings) -> NecessaryAcls:
    """Kept by a worker from one task to the next."""
    return NecessaryAcls.of(sent.value, settings)


@define(eq=False)
class Known:
    """The accesses that a worker has seen, and the steps that each of them goes through; owned by that worker."""

    needs: NecessaryAcls
    numbers: AccessNumbers = field(init=False)
    accesses: list[Access] = field(init=False)
    steps: DecisionSteps = field(init=False)
    size: int = field(init=False)
    """How many steps there are."""

    def __attrs_post_init__(self) -> None:
        """Nothing has been seen yet."""
        self.forget()

    @property
    def is_full(self) -> bool:
        """Whether it is time to forget, and to hand on what was added up."""
        return len(self.accesses) > _MOST_HELD or self.size > _MOST_STEPS

    def forget(self) -> None:
        """Begin anew."""
        self.numbers, self.accesses, self.size = AccessNumbers(), [], 0
        self.steps = DecisionSteps(self.needs.intervals.versions.end)

    def number(self, columns: list[Any]) -> Int64s:
        """The number of each row's access."""
        access_of, new = self.numbers.number(columns)
        if new:
            self._learn(new)
        return access_of

    def _learn(self, new: list[Access]) -> None:
        parsed = [(at, access) for at, access in enumerate(map(parse_access, new)) if isinstance(access, ParsedAccess)]
        changes = self.needs.changes([access for _, access in parsed])
        moving = {parsed[at][0]: [(version, 0) for version in versions.tolist()] for at, versions in changes.items()}
        self.steps.append(np.zeros(len(new), np.int32), moving)
        self.accesses += new
        self.size += len(new) + sum(len(steps) - 1 for steps in moving.values())


@define(eq=False)
class Counting:
    """Adds up the accesses of one task by the steps that they are on; owned by it."""

    known: Known
    _access_of: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _counts: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _first: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _last: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    """By step, as DecisionSteps numbers them."""

    def add(self, columns: list[Any], times: Int64s) -> None:
        """Rows: the five columns, and when (us since 1970)."""
        access_of = self.known.number(columns)
        steps = self.known.steps.steps(access_of, self.known.needs.intervals.versions.at(times))
        more = self.known.size - len(self._counts)
        self._access_of, self._counts = (_longer(column, more, 0) for column in (self._access_of, self._counts))
        self._first, self._last = _longer(self._first, more, _NEVER), _longer(self._last, more, -_NEVER)
        self._access_of[steps] = access_of
        np.add.at(self._counts, steps, 1)
        np.minimum.at(self._first, steps, times)
        np.maximum.at(self._last, steps, times)

    def table(self) -> pa.Table:
        """What has been added up (COUNTED)."""
        steps = np.flatnonzero(self._counts)
        accesses = [self.known.accesses[at] for at in self._access_of[steps].tolist()]
        texts = [pa.array(part, pa.string()) for part in zip(*accesses, strict=True)] or [pa.array([], pa.string())] * 5
        numbers = self.known.steps.versions(steps), self._counts[steps], self._first[steps], self._last[steps]
        return pa.table([*texts, *map(pa.array, numbers)], schema=COUNTED)


def _longer(column: Int64s, more: int, value: int) -> Int64s:
    return np.concatenate((column, np.full(more, value, np.int64)))
