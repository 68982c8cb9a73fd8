"""`aclog spark simulate`: the accesses of a log that other ACLs would decide differently."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.spark.policy import Policy
from aclog.cli.unused_wording import unread_text
from aclog.pipeline.accesses import MALFORMED
from aclog.pipeline.output_directory import check_new, new_directory
from aclog.pipeline.simulate import simulate, undecided_by_kafka
from aclog.pipeline.usage.unread import rejected_lines, undecided_accesses, unread_lines
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned
from aclog.usage.answer import Answer
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.simulation import Change, may_flip
from aclog.usage.unread import UnreadAccesses

_SHOWN = 10


def simulate_command(spark: SparkSession, requests: str, out: Path, before: Policy, after: Policy) -> bool:
    """Write the accesses whose decision changes as Parquet, and print how many are gained and lost.

    `out` appears only once it is complete. Returns whether any decision changes, or may for what cannot be decided.

    Raises:
        ConfigError: `out` exists; the requests cannot be read, lack needed timestamps, or are rotated meanwhile.

    """
    check_new(out)
    asked, files = before.accesses(spark, requests)
    good = asked.where(F.col(MALFORMED).isNull()).drop(MALFORMED)
    with new_directory(out) as partial, files.held():
        sides = [(policy.rules, policy.settings) for policy in (before, after)]
        simulate(good, *sides, own_time=before.own_time).write.parquet(str(partial))
        bad = asked.where(F.col(MALFORMED).isNotNull()).select(MALFORMED)
        malformed = bad.count()
        parts = [undecided_accesses(good, need_time=before.own_time), rejected_lines(spark, requests)]
        if malformed:
            parts.append(unread_lines(bad))
        parts.append(undecided_by_kafka(good, *sides))
    unread = may_flip(UnreadAccesses.sum_of(parts), *((each.rules, each.settings) for each in (before, after)))
    changed = _show(spark.read.parquet(str(out)), unread)
    if malformed:
        warn(f"{malformed:,} lines are not accesses and were skipped")
    if unread:
        warn(f"{unread_text(unread)}: rules change that they may need, so that they may be decided differently")
    return changed or bool(unread)


def _show(flips: DataFrame, unread: UnreadAccesses) -> bool:
    """Print how many accesses change, or may; return whether some do."""
    counted = flips.groupBy("change").agg(F.sum("count").alias("accesses"), F.count("*").alias("distinct"))
    found = {row["change"]: row for row in counted.collect()}
    rows = [
        (f"{found[change]['accesses']:,}", f"{found[change]['distinct']:,}", change.value)
        if change in found
        else ("0", "0", change.value)
        for change in Change
        if change in found or change in {Change.GAINED, Change.LOST}
    ]
    if unread:
        rows.append((f"{unread.total:,}", "", Answer.NOT_JUDGED.value))
    for line in aligned(("accesses", "distinct", "change"), rows):
        say(line)
    for change in Change:
        if change in found:
            _show_most(flips.where(F.col("change") == change.value), change)
    return bool(found)


def _show_most(flips: DataFrame, change: str) -> None:
    order = F.desc("count"), *REQUEST_COLUMNS
    say()
    header = (change.lower(), "principal", "host", "operation", "resource", "before", "after")
    rows = (
        (
            f"{row['count']:,}",
            *(str(row[name]) for name in ("principal", "host", "operation")),
            f"{row['resourceType']}:{row['resourceName']}",
            row["rule_id_before"] or row["rule_before"],
            row["rule_id_after"] or row["rule_after"],
        )
        for row in flips.orderBy(*order).limit(_SHOWN).collect()
    )
    for line in aligned(header, rows):
        say(line)
