"""Distinct accesses of a log, each once per version of the ACLs that made a difference to it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.settings import Settings
from aclog.usage.access_counter import COUNTED, AccessCounter, SeenAccesses
from aclog.usage.arrow.batches import regrouped
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.necessary_acls import NecessaryAcls
from aclog.usage.decisions.versions import change_times

_ROWS = 1 << 18
"""Rows counted together."""


def count_accesses(
    frame: DataFrame, sent: "Broadcast[AclIntervals]", settings: Settings, *, own_time: bool
) -> DataFrame:
    """Return the columns COUNTED of accesses, all of which have a time; without `own_time` at the last version.

    Tasks add up what they see, and the JVM adds up their results: a distinct access is shuffled once per task, and more
    often only if a task sees more of them than it can hold.
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
        """Count the distinct accesses of one partition, on a worker."""
        seen = _seen(sent, settings)
        counter = AccessCounter(seen)
        for table in regrouped(batches, _ROWS):
            if counter.is_full:
                # emit before forgetting: the counter holds counts by the numbers of the accesses seen
                yield from counter.table().to_batches(_ROWS)
                seen.forget()
                counter = AccessCounter(seen)
            counter.add([table.column(name) for name in REQUEST_COLUMNS], np.asarray(table.column("time")))
        yield from counter.table().to_batches(_ROWS)

    return add_up


@lru_cache(1)
def _seen(sent: "Broadcast[AclIntervals]", settings: Settings) -> SeenAccesses:
    """Return the accesses that a worker process has seen, kept from task to task."""
    return SeenAccesses(necessary_acls(sent, settings))


@lru_cache(2)
def necessary_acls(sent: "Broadcast[AclIntervals]", settings: Settings) -> NecessaryAcls:
    """Return the index of ACLs of a worker process, kept from task to task."""
    return NecessaryAcls.of(sent.value, settings)
