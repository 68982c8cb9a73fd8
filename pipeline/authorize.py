"""Batch authorization: what the rules say to every row of an access log."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from authorizer.acls_image import AclsImage
from metalog.errors import ConfigError
from metalog.vectors import Int64s
from pipeline.deciding.accesses import ACCESS_COLUMNS
from pipeline.deciding.judge import NO_TIME, Judge, Settings
from pipeline.deciding.rule_spans import RULE_COLUMNS, RuleSpans, rule_table
from pipeline.deciding.verdicts import ALLOWED, BASES, ERRORS
from pipeline.regrouping import regrouped

VERDICT = "verdict"
_ADDED = frozenset({VERDICT, "decision", "rule", "rule_id"})
_JUDGES = 2
_ROWS = 1 << 18


@frozen(eq=False, kw_only=True)
class Rules:
    """Rules to judge by, as text for people and in the form that is sent to workers; row n of `table` is ordinal n."""

    table: pa.Table
    spans: RuleSpans

    @classmethod
    def of_image(cls, image: AclsImage) -> "Rules":
        """The rules of one state, in force at all times."""
        return cls.of_table(rule_table(image))

    @classmethod
    def of_table(cls, table: pa.Table, *, known_from: int | None = None) -> "Rules":
        """The rules of a history (pipeline.history.intervals): each from `visible_from` to `visible_to`.

        `known_from` is the time from which they are known, in ms since 1970; None for ever.
        """
        return cls(table=table.select(RULE_COLUMNS), spans=RuleSpans.of_table(table, known_from=known_from))


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
    judged = frame.withColumn(VERDICT, verdict(frame, rules, settings, own_time=own_time))
    return with_texts(judged, rules).drop(VERDICT)


def verdicts(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """The verdict on each row of `frame` and nothing else, which is the cheapest answer there is; in no order."""
    sent = frame.sparkSession.sparkContext.broadcast(rules.spans)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for judged in _judged(batches, sent, settings):
            yield pa.record_batch([judged], names=[VERDICT])

    return frame.select(*_asked(frame, own_time=own_time)).mapInArrow(judge, f"{VERDICT} int")


def verdict(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> Column:
    """The verdict on each row of `frame` as an int (pipeline.deciding.verdicts)."""
    sent = frame.sparkSession.sparkContext.broadcast(rules.spans)
    asked = _asked(frame, own_time=own_time)
    names = list(map(str, range(len(asked))))

    def judge(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        tables = (pa.record_batch(list(columns), names=names) for columns in batches)
        yield from _judged(tables, sent, settings)

    as_column: Any = F.arrow_udf(judge, "int")  # type: ignore[attr-defined]  # the stubs do not know it
    judged: Column = as_column(*asked)
    return judged


def _asked(frame: DataFrame, *, own_time: bool) -> list[Column]:
    """The columns of `frame` that decide."""
    columns = [frame[name] for name in ACCESS_COLUMNS]
    return [*columns, F.unix_micros(frame["timestamp"])] if own_time else columns


def _judged(
    batches: Iterator[pa.RecordBatch], sent: "Broadcast[RuleSpans]", settings: Settings
) -> Iterator["pa.Array[Any]"]:
    judge = _judge(sent, settings)
    for table in regrouped(batches, _ROWS):
        columns = table.columns
        times = _times(columns[len(ACCESS_COLUMNS)]) if len(columns) > len(ACCESS_COLUMNS) else None
        yield pa.array(judge.verdicts(columns[: len(ACCESS_COLUMNS)], times))


@lru_cache(_JUDGES)
def _judge(sent: "Broadcast[RuleSpans]", settings: Settings) -> Judge:
    """Kept by a worker from one task to the next: it knows what it has decided."""
    return Judge.of(sent.value, settings)


def _times(column: "pa.ChunkedArray[Any]") -> Int64s:
    return np.asarray(column.fill_null(pa.scalar(NO_TIME))).astype(np.int64, copy=False)


def with_texts(judged: DataFrame, rules: Rules) -> DataFrame:
    """Decision, rule and rule_id behind the columns of a frame with verdicts; `rule_frame` says how they are made."""
    named = rule_frame(judged.sparkSession, rules)
    joined = judged.join(F.broadcast(named), F.col(VERDICT) == named["_verdict"], "left")
    texts = (named[f"_{name}"].alias(name) for name in ("decision", "rule", "rule_id"))
    return joined.select(*(judged[name] for name in judged.columns), *texts)


def rule_frame(spark: SparkSession, rules: Rules) -> DataFrame:
    """What every verdict stands for: _verdict, _decision, _rule as the audit log names it, _rule_id."""
    without = [(int(code), "ALLOWED" if code in ALLOWED else "DENIED", text, None) for code, text in BASES.items()]
    without += [(int(code), "ERROR", text, None) for code, text in ERRORS.items()]
    others = spark.createDataFrame(without, "_verdict int, _decision string, _rule string, _rule_id string")
    ordinals = pa.array(np.arange(len(rules.table), dtype=np.int32))
    named = spark.createDataFrame(pa.table([ordinals, *rules.table.columns], names=["_verdict", *RULE_COLUMNS]))
    decision = F.when(F.col("permissionType") == "ALLOW", "ALLOWED").otherwise("DENIED")
    return others.unionByName(
        named.select("_verdict", decision.alias("_decision"), _text().alias("_rule"), F.col("id").alias("_rule_id"))
    )


def _text() -> Column:
    """As the audit log names a rule (StandardAcl.toString)."""
    parts: list[Column] = []
    for name in RULE_COLUMNS[:-1]:
        parts += [F.lit(f"{', ' if parts else 'MatchingAcl(acl=StandardAcl['}{name}="), F.col(name)]
    return F.concat(*parts, F.lit("])"))
