"""The accesses that were denied most."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aclog.pipeline.authorize import VERDICT, Rules, with_texts
from aclog.pipeline.judge.accesses import ACCESS_COLUMNS

_VERDICT = "_verdict"


def denied(decided: DataFrame, rules: Rules, top: int) -> pa.Table:
    """Of distinct accesses (COUNTED) with a verdict, at most `top`; of those denied as often, the first by columns."""
    most = (
        with_decision(decided, rules, VERDICT, "decision")
        .where(F.col("decision") == "DENIED")
        .groupBy(*ACCESS_COLUMNS)
        .agg(
            F.sum("count").alias("count"),
            F.timestamp_micros(F.min("first")).alias("first_at"),
            F.timestamp_micros(F.max("last")).alias("last_at"),
            F.max_by(VERDICT, "last").alias(VERDICT),
        )
        .orderBy(F.desc("count"), *ACCESS_COLUMNS)
        .limit(top)
    )
    named = with_texts(most, rules).drop(VERDICT, "decision")
    return named.orderBy(F.desc("count"), *ACCESS_COLUMNS).toArrow()


def with_decision(frame: DataFrame, rules: Rules, verdict: str, name: str) -> DataFrame:
    """With a column of that name behind: ALLOWED, DENIED or ERROR, by the column with the verdict."""
    decisions = rules.texts.numbered().select(["verdict", "decision"]).rename_columns([_VERDICT, name])
    named = frame.sparkSession.createDataFrame(decisions)
    return frame.join(F.broadcast(named), F.col(verdict) == F.col(_VERDICT), "left").drop(_VERDICT)
