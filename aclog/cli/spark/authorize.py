"""`aclog spark authorize`: decisions on every row of a file of requests."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.decisions import ALLOWED, BAD_INPUT
from aclog.cli.spark.policy import Policy
from aclog.pipeline.accesses import MALFORMED
from aclog.pipeline.authorize import authorize
from aclog.pipeline.output_directory import new_directory
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned

_DECISIONS = ("ALLOWED", "DENIED", "ERROR")
_REASONS = 5


def authorize_command(spark: SparkSession, requests: str, out: Path, policy: Policy) -> int:
    """Write the requests with decision, rule and rule_id as Parquet, and print the number of each decision.

    Returns the exit code: 2 if a request could not be decided.

    Raises:
        ConfigError: the requests cannot be read, lack timestamps that are needed, or are rotated meanwhile.

    """
    asked, files = policy.accesses(spark, requests)
    decided = authorize(asked, policy.rules, policy.settings, own_time=policy.own_time)
    with new_directory(out) as partial, files.held():
        _with_malformed(decided).write.parquet(str(partial))
    # counted in what was written: counting `decided` would run the job a second time
    written = spark.read.parquet(str(out))
    counts = {row["decision"]: row["count"] for row in written.groupBy("decision").count().collect()}
    for line in aligned(("requests", "decision"), [(f"{counts.get(name, 0):,}", name) for name in _DECISIONS]):
        say(line)
    if not counts.get("ERROR"):
        return ALLOWED
    for reason, count in _reasons(written):
        warn(f"{count:,} requests: {reason}")
    return BAD_INPUT


def _with_malformed(decided: DataFrame) -> DataFrame:
    """Give an unreadable line its text as the reason; the decision only found its columns missing."""
    text = F.concat(F.lit("not a request: "), F.col(MALFORMED))
    return decided.withColumn("rule", F.coalesce(text, "rule")).drop(MALFORMED)


def _reasons(written: DataFrame) -> list[tuple[str, int]]:
    reason = F.when(F.col("rule").startswith("not a request: "), "not a request").otherwise(F.col("rule"))
    counted = written.where(F.col("decision") == "ERROR").groupBy(reason.alias("reason")).count()
    return [
        (row["reason"], row["count"]) for row in counted.orderBy(F.desc("count"), "reason").limit(_REASONS).collect()
    ]
