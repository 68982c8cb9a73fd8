"""Batch authorization: decisions on every row of an access log."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Int64s
from aclog.pipeline.broadcasts import broadcast
from aclog.usage.arrow.batches import regrouped
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.bulk_authorizer import NO_TIME, BulkAuthorizer
from aclog.usage.decisions.decision_texts import TEXT_COLUMNS
from aclog.usage.decisions.rules import Rules

DECISION_CODE = "decision_code"
_ADDED = frozenset({DECISION_CODE, *TEXT_COLUMNS})
_TIME = "microseconds of the access"
"""A column that only exists on the way to workers: no input has such a name."""
_CODE = "_code"
_AUTHORIZERS = 2
"""The authorizers that a worker keeps: simulate decides by two."""
DECIDED_TOGETHER = 1 << 18
"""The rows decided together: the cost of a batch, apart from its rows, is spread over so many."""


def authorize(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """Return the rows of `frame` with the columns `decision`, `rule` and `rule_id` appended.

    `frame` has the text columns principal, host, operation, resourceType and resourceName. With `own_time` each row is
    decided by the ACLs in force at its `timestamp`. `decision` is ALLOWED, DENIED or ERROR; `rule` is the text of
    Kafka's audit log, or for ERROR the reason. Each worker decides a distinct access once.

    Raises:
        ConfigError: `frame` has a column of one of these names already.

    """
    for name in frame.columns:
        if name.lower() in _ADDED:
            raise ConfigError(f"the table has a column {name!r}, which would come out twice: rename it")
    plain = _with_plain_names(frame, (*REQUEST_COLUMNS, "timestamp") if own_time else REQUEST_COLUMNS)
    if _fits_arrow(plain):
        authorized = _authorized(plain, rules, settings, own_time=own_time)
    else:
        decided = plain.withColumn(DECISION_CODE, decision_code(plain, rules, settings, own_time=own_time))
        authorized = with_texts(decided, rules).drop(DECISION_CODE)
    return authorized.toDF(*frame.columns, *TEXT_COLUMNS)


def _with_plain_names(frame: DataFrame, needed: Sequence[str]) -> DataFrame:
    """Return the frame with numbers for names, except for the columns needed: Spark's Python functions refuse others.

    mapInArrow looks columns up by name, and so fails on a name with a dot, and on two columns of one name.
    """
    names = [f"column {number}" for number in range(len(frame.columns))]
    for name in needed:
        names[_position(frame, name)] = name
    return frame.toDF(*names)


def _fits_arrow(frame: DataFrame) -> bool:
    """Return whether Arrow can carry all columns to Python and back, as it cannot for year-month intervals."""
    try:
        to_arrow_schema(frame.schema, timezone="UTC")
    except PySparkTypeError:
        return False
    return True


def _authorized(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool) -> DataFrame:
    """Return the frame with texts, all of whose columns go through Python.

    That is faster than a Python UDF: while a UDF runs, Spark queues the other columns row by row and then joins them.
    """
    sent = broadcast(frame.sparkSession, rules.intervals)
    texts = broadcast(frame.sparkSession, rules.texts)
    width, names = len(frame.columns), [*frame.columns, *TEXT_COLUMNS]
    asked = [_position(frame, name) for name in REQUEST_COLUMNS]
    times = [F.unix_micros(frame["timestamp"]).alias(_TIME)] if own_time else []

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide one partition, on a worker."""
        for table in regrouped(batches, DECIDED_TOGETHER):
            codes, start = decide(table.select([*asked, *range(width, table.num_columns)]), sent, settings), 0
            # texts by the batches that came in: their columns are passed on without a copy, and texts stay below 2 GiB
            for batch in table.to_batches():
                added = texts.value.of_codes(codes[start : start + batch.num_rows])
                start += batch.num_rows
                yield pa.record_batch([*batch.columns[:width], *added], names=names)

    fields = [*frame.schema.fields, *(StructField(name, StringType()) for name in TEXT_COLUMNS)]
    return frame.select("*", *times).mapInArrow(run, StructType(fields))


def _position(frame: DataFrame, name: str) -> int:
    """Return the position of the column that Spark finds by this name; Spark ignores case."""
    frame.select(name)  # Spark's own error if there is no such column, or more than one
    columns = frame.columns
    return columns.index(name) if name in columns else [other.lower() for other in columns].index(name.lower())


def decision_codes(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """Return the decision code of each row of `frame` and nothing else, in no order: the cheapest form of decisions."""
    sent = broadcast(frame.sparkSession, rules.intervals)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide one partition, on a worker."""
        for table in regrouped(batches, DECIDED_TOGETHER):
            yield pa.record_batch([decide(table, sent, settings)], names=[DECISION_CODE])

    return frame.select(*_asked(frame, own_time=own_time)).mapInArrow(run, f"{DECISION_CODE} int")


def decision_code(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> Column:
    """Return the decision code of each row of `frame` as an INT column (aclog.usage.decisions.decision_codes)."""
    sent = broadcast(frame.sparkSession, rules.intervals)
    asked = _asked(frame, own_time=own_time)
    names = list(map(str, range(len(asked))))

    def run(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        """Decide one partition, on a worker."""
        # an iterator UDF may regroup batches, as long as it returns as many rows in total, in the same order
        tables = (pa.record_batch(list(columns), names=names) for columns in batches)
        for table in regrouped(tables, DECIDED_TOGETHER):
            yield decide(table, sent, settings)

    as_column: Any = F.arrow_udf(run, "int")  # type: ignore[attr-defined]  # missing in the stubs
    column: Column = as_column(*asked)
    return column


def _asked(frame: DataFrame, *, own_time: bool) -> list[Column]:
    """Return the columns of `frame` that decide."""
    columns = [frame[name] for name in REQUEST_COLUMNS]
    return [*columns, F.unix_micros(frame["timestamp"])] if own_time else columns


def decide(table: pa.Table, sent: "Broadcast[AclIntervals]", settings: Settings) -> "pa.Array[Any]":
    """Return the decision code of each row of REQUEST_COLUMNS, and of the time where rows have their own."""
    columns = table.columns
    times = _times(columns[len(REQUEST_COLUMNS)]) if len(columns) > len(REQUEST_COLUMNS) else None
    return pa.array(_authorizer(sent, settings).decide(columns[: len(REQUEST_COLUMNS)], times))


@lru_cache(_AUTHORIZERS)
def _authorizer(sent: "Broadcast[AclIntervals]", settings: Settings) -> BulkAuthorizer:
    """Return the authorizer of a worker process, kept from task to task: it remembers what it has decided.

    Spark reuses worker processes, and the broadcast is the same object in all tasks of one process.
    """
    return BulkAuthorizer.of(sent.value, settings)


def _times(column: "pa.ChunkedArray[Any]") -> Int64s:
    return np.asarray(column.fill_null(pa.scalar(NO_TIME))).astype(np.int64, copy=False)


def with_texts(decided: DataFrame, rules: Rules) -> DataFrame:
    """Return a frame that has decision codes with the columns decision, rule and rule_id appended.

    A broadcast join: the texts of a million ACLs reach each executor once, and never pass through Python.
    """
    texts = rules.texts.numbered().rename_columns([_CODE, *map("_{}".format, TEXT_COLUMNS)])
    named = decided.sparkSession.createDataFrame(texts)
    joined = decided.join(F.broadcast(named), F.col(DECISION_CODE) == named[_CODE], "left")
    return joined.select(*(decided[name] for name in decided.columns), *(named[f"_{n}"].alias(n) for n in TEXT_COLUMNS))


def with_decision(frame: DataFrame, rules: Rules, code: str, name: str) -> DataFrame:
    """Return the frame with a column `name` of ALLOWED, DENIED or ERROR for the decision codes in the column `code`."""
    decisions = rules.texts.numbered().select(["decision_code", "decision"]).rename_columns([_CODE, name])
    named = frame.sparkSession.createDataFrame(decisions)
    return frame.join(F.broadcast(named), F.col(code) == F.col(_CODE), "left").drop(_CODE)
