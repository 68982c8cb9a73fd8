"""`aclog spark authorize`: decisions on every row of a file of requests."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.decisions import ALLOWED, BAD_INPUT
from aclog.cli.spark.flags import DecidedFlags
from aclog.cli.spark.policy import Policy
from aclog.metalog.errors import ConfigError
from aclog.pipeline.access_events import events, without_time
from aclog.pipeline.accesses import MALFORMED
from aclog.pipeline.authorize import authorize
from aclog.pipeline.event_form import EventForm
from aclog.pipeline.output_directory import new_directory
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned

_DECISIONS = ("ALLOWED", "DENIED", "ERROR")
_REASONS = 5


def authorize_command(
    spark: SparkSession, requests: str, out: Path, policy: Policy, flags: DecidedFlags | None = None
) -> int:
    """Write the requests with decision, rule and rule_id as Parquet, and print the number of each decision.

    As events, `out` has these in `decided`, and the events as JSON lines in `events`. Returns the exit code: 2 if a
    request could not be decided.

    Raises:
        ConfigError: the requests cannot be read, lack timestamps that are needed, or are rotated meanwhile.

    """
    asked, files = policy.accesses(spark, requests)
    decided = _with_malformed(authorize(asked, policy.rules, policy.settings, own_time=policy.own_time))
    form = None if flags is None else flags.as_
    place = "" if form is None else "decided"
    with new_directory(out) as partial, files.held():
        if flags is not None and form is not None:
            events(decided, form, source=flags.event_source)  # refused before the job, not after it
        decided.write.parquet(str(partial / place))
        if flags is not None and form is not None:
            _write_events(spark.read.parquet(str(partial / place)), partial / "events", flags, form)
    # counted in what was written: counting `decided` would run the job a second time
    written = spark.read.parquet(str(out / place))
    counts = {row["decision"]: row["count"] for row in written.groupBy("decision").count().collect()}
    for line in aligned(("requests", "decision"), [(f"{counts.get(name, 0):,}", name) for name in _DECISIONS]):
        say(line)
    if not counts.get("ERROR"):
        return ALLOWED
    for reason, count in _reasons(written):
        warn(f"{count:,} requests: {reason}")
    return BAD_INPUT


def _write_events(written: DataFrame, out: Path, flags: DecidedFlags, form: EventForm) -> None:
    """Write an event for each decided row that is wanted."""
    if form is EventForm.OCSF and (timeless := without_time(written)):
        raise ConfigError(
            f"{timeless:,} of the requests {'has' if timeless == 1 else 'have'} no timestamp, and an OCSF event must "
            "have a time: leave them out, or export --as cloudevents"
        )
    wanted = written if flags.only is None else written.where(F.col("decision") == flags.only.upper())
    events(wanted, form, source=flags.event_source).write.json(str(out))


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
