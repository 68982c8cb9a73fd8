"""Batch authorization: what the rules say to every row of an access log."""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark import Broadcast
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Int64s
from aclog.pipeline.arrow_batches import regrouped
from aclog.pipeline.decisions.accesses import REQUEST_COLUMNS
from aclog.pipeline.decisions.acl_intervals import RULE_COLUMNS, AclIntervals, rule_table
from aclog.pipeline.decisions.bulk_authorizer import NO_TIME, BulkAuthorizer, Settings
from aclog.pipeline.decisions.decision_texts import TEXT_COLUMNS, DecisionTexts

DECISION_CODE = "decision_code"
_ADDED = frozenset({DECISION_CODE, *TEXT_COLUMNS})
_TIME = "microseconds of the access"
_CODE = "_code"
_AUTHORIZERS = 2
_ROWS = 1 << 18


@frozen(eq=False, kw_only=True)
class Rules:
    """Rules to judge by, as text for people and in the form that is sent to workers; row n of `table` is ordinal n."""

    table: pa.Table
    intervals: AclIntervals

    @cached_property
    def texts(self) -> DecisionTexts:
        """What codes by these rules stand for; made when it is first asked for."""
        return DecisionTexts.of_rules(self.table)

    @classmethod
    def of_image(cls, image: AclsImage) -> "Rules":
        """The rules of one state, in force at all times."""
        return cls.of_table(rule_table(image))

    @classmethod
    def of_table(cls, table: pa.Table, *, known_from: int | None = None) -> "Rules":
        """The rules of a history (pipeline.history.intervals.intervals): each from `visible_from` to `visible_to`.

        `known_from` is the time from which they are known, in ms since 1970; None for ever.
        """
        return cls(table=table.select(RULE_COLUMNS), intervals=AclIntervals.of_table(table, known_from=known_from))


def authorize(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """The rows of `frame` with `decision`, `rule` and `rule_id` behind its columns.

    `frame` has the text columns principal, host, operation, resourceType and resourceName. With `own_time` each row is
    judged by the rules that were in force at its `timestamp`. `decision` is ALLOWED, DENIED, or ERROR where `rule` says
    why there is none; else `rule` is the text of Kafka's audit log. Each distinct access is decided once by a worker.

    Raises:
        ConfigError: `frame` has a column of such a name already.

    """
    for name in frame.columns:
        if name.lower() in _ADDED:
            raise ConfigError(f"the table has a column {name!r}, which would come out twice: rename it")
    if _passes(frame):
        return _authorized(frame, rules, settings, own_time=own_time)
    judged = frame.withColumn(DECISION_CODE, decision_code(frame, rules, settings, own_time=own_time))
    return with_texts(judged, rules).drop(DECISION_CODE)


def _passes(frame: DataFrame) -> bool:
    """Whether Arrow can carry all of its columns to Python and back; an interval of months is one that it cannot."""
    try:
        to_arrow_schema(frame.schema, timezone="UTC")
    except PySparkTypeError:
        return False
    return True


def _authorized(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool) -> DataFrame:
    """All columns go through Python at once: a Python column beside them costs Spark a queue of rows, and a join."""
    sent = frame.sparkSession.sparkContext.broadcast(rules.intervals)
    texts = frame.sparkSession.sparkContext.broadcast(rules.texts)
    width, names = len(frame.columns), [*frame.columns, *TEXT_COLUMNS]
    asked = [_position(frame, name) for name in REQUEST_COLUMNS]
    times = [F.unix_micros(frame["timestamp"]).alias(_TIME)] if own_time else []

    def decide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a worker does with the batches of a partition."""
        for table in regrouped(batches, _ROWS):
            found, start = _judged(table.select([*asked, *range(width, table.num_columns)]), sent, settings), 0
            for batch in table.to_batches():
                told = texts.value.of_codes(found[start : start + batch.num_rows])
                start += batch.num_rows
                yield pa.record_batch([*batch.columns[:width], *told], names=names)

    added = (StructField(name, StringType()) for name in TEXT_COLUMNS)
    return frame.select("*", *times).mapInArrow(decide, StructType([*frame.schema.fields, *added]))


def _position(frame: DataFrame, name: str) -> int:
    """Where the column is that Spark finds by this name, however it is written there."""
    frame.select(name)  # where there is none, or more than one, Spark says so
    columns = frame.columns
    return columns.index(name) if name in columns else [other.lower() for other in columns].index(name.lower())


def decision_codes(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """The code on each row of `frame` and nothing else, which is the cheapest answer there is; in no order."""
    sent = frame.sparkSession.sparkContext.broadcast(rules.intervals)

    def decide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a worker does with the batches of a partition."""
        for table in regrouped(batches, _ROWS):
            yield pa.record_batch([_judged(table, sent, settings)], names=[DECISION_CODE])

    return frame.select(*_asked(frame, own_time=own_time)).mapInArrow(decide, f"{DECISION_CODE} int")


def decision_code(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> Column:
    """The code on each row of `frame` as an int (aclog.pipeline.decisions.decision_codes)."""
    sent = frame.sparkSession.sparkContext.broadcast(rules.intervals)
    asked = _asked(frame, own_time=own_time)
    names = list(map(str, range(len(asked))))

    def decide(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        """What a worker does with the batches of a partition."""
        tables = (pa.record_batch(list(columns), names=names) for columns in batches)
        for table in regrouped(tables, _ROWS):
            yield _judged(table, sent, settings)

    as_column: Any = F.arrow_udf(decide, "int")  # type: ignore[attr-defined]  # the stubs do not know it
    judged: Column = as_column(*asked)
    return judged


def _asked(frame: DataFrame, *, own_time: bool) -> list[Column]:
    """The columns of `frame` that decide."""
    columns = [frame[name] for name in REQUEST_COLUMNS]
    return [*columns, F.unix_micros(frame["timestamp"])] if own_time else columns


def _judged(table: pa.Table, sent: "Broadcast[AclIntervals]", settings: Settings) -> "pa.Array[Any]":
    """The code on each row of the five columns, and the time where there is one, in this order."""
    columns = table.columns
    times = _times(columns[len(REQUEST_COLUMNS)]) if len(columns) > len(REQUEST_COLUMNS) else None
    return pa.array(_authorizer(sent, settings).decide(columns[: len(REQUEST_COLUMNS)], times))


@lru_cache(_AUTHORIZERS)
def _authorizer(sent: "Broadcast[AclIntervals]", settings: Settings) -> BulkAuthorizer:
    """Kept by a worker from one task to the next: it knows what it has decided."""
    return BulkAuthorizer.of(sent.value, settings)


def _times(column: "pa.ChunkedArray[Any]") -> Int64s:
    return np.asarray(column.fill_null(pa.scalar(NO_TIME))).astype(np.int64, copy=False)


def with_texts(judged: DataFrame, rules: Rules) -> DataFrame:
    """Decision, rule and rule_id behind the columns of a frame with codes."""
    texts = rules.texts.numbered().rename_columns(["_verdict", *map("_{}".format, TEXT_COLUMNS)])
    named = judged.sparkSession.createDataFrame(texts)
    joined = judged.join(F.broadcast(named), F.col(DECISION_CODE) == named["_verdict"], "left")
    return joined.select(*(judged[name] for name in judged.columns), *(named[f"_{n}"].alias(n) for n in TEXT_COLUMNS))


def with_decision(frame: DataFrame, rules: Rules, code: str, name: str) -> DataFrame:
    """With a column of that name behind: ALLOWED, DENIED or ERROR, by the column with the code."""
    decisions = rules.texts.numbered().select(["decision_code", "decision"]).rename_columns([_CODE, name])
    named = frame.sparkSession.createDataFrame(decisions)
    return frame.join(F.broadcast(named), F.col(code) == F.col(_CODE), "left").drop(_CODE)
