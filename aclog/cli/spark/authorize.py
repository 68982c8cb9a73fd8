"""`aclog spark authorize`: what the rules say to every row of a file of requests."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.decisions import ALLOWED, BAD_INPUT
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import MALFORMED, read_accesses
from aclog.pipeline.authorize import Rules, authorize
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.output_directory import new_directory
from aclog.terminal.notices import warn
from aclog.terminal.table import aligned

_DECISIONS = ("ALLOWED", "DENIED", "ERROR")
_REASONS = 5


def authorize_command(
    spark: SparkSession, requests: str, out: Path, rules: Rules, settings: Settings, *, own_time: bool
) -> int:
    """Write the requests with decision, rule and rule_id as Parquet, and print how many there are of each decision.

    Returns the exit code: 2 where a request could not be decided.

    Raises:
        ConfigError: the requests cannot be read, or have no timestamp where one is wanted.

    """
    asked = read_accesses(spark, requests)
    if own_time and "timestamp" not in asked.columns:
        raise ConfigError(f"{requests}: no column 'timestamp': --own-time judges each row by it")
    with new_directory(out) as partial:
        _told_malformed(authorize(asked, rules, settings, own_time=own_time)).write.parquet(str(partial))
    written = spark.read.parquet(str(out))
    counts = {row["decision"]: row["count"] for row in written.groupBy("decision").count().collect()}
    for line in aligned(("requests", "decision"), [(f"{counts.get(name, 0):,}", name) for name in _DECISIONS]):
        print(line)
    if not counts.get("ERROR"):
        return ALLOWED
    for reason, count in _reasons(written):
        warn(f"{count:,} requests: {reason}")
    return BAD_INPUT


def _told_malformed(judged: DataFrame) -> DataFrame:
    """Say of a line that could not be read that it could not, and not that its columns are missing."""
    text = F.concat(F.lit("not a request: "), F.col(MALFORMED))
    return judged.withColumn("rule", F.coalesce(text, "rule")).drop(MALFORMED)


def _reasons(written: DataFrame) -> list[tuple[str, int]]:
    reason = F.when(F.col("rule").startswith("not a request: "), "not a request").otherwise(F.col("rule"))
    counted = written.where(F.col("decision") == "ERROR").groupBy(reason.alias("reason")).count()
    return [
        (row["reason"], row["count"]) for row in counted.orderBy(F.desc("count"), "reason").limit(_REASONS).collect()
    ]
