"""The accesses that were denied most."""

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.authorize import VERDICT, Rules, with_texts
from pipeline.deciding.accesses import ACCESS_COLUMNS
from pipeline.deciding.verdicts import ALLOWED, Verdict

_DENYING = "_denying"


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
    permissions = rules.table.column("permissionType").to_numpy()
    ordinals = np.flatnonzero(permissions != "ALLOW").astype(np.int32)
    denying = frame.sparkSession.createDataFrame(pa.table({_DENYING: ordinals}))
    joined = frame.join(F.broadcast(denying), F.col(verdict) == F.col(_DENYING), "left")
    return joined.withColumn(name, _decision(F.col(verdict))).drop(_DENYING)


def _decision(verdict: Column) -> Column:
    by_rule = F.when(F.col(_DENYING).isNull(), "ALLOWED").otherwise("DENIED")
    return (
        F.when(verdict >= 0, by_rule)
        .when(verdict.isin([int(code) for code in ALLOWED]), "ALLOWED")
        .when(verdict == int(Verdict.DEFAULT_DENY), "DENIED")
        .otherwise("ERROR")
    )
