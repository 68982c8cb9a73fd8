"""`aclog spark usage`: which ACLs an access log needed, as tables and as a printed summary."""

from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.spark.flags import UsageFlags
from aclog.cli.spark.policy import Policy
from aclog.cli.usage_summary import summary_lines, warn_of_gaps
from aclog.pipeline.accesses import MALFORMED, pinned_accesses, plain_accesses
from aclog.pipeline.accesses.pinned_files import PinnedFiles
from aclog.pipeline.output_directory import check_new, new_directory
from aclog.pipeline.usage.accesses import AccessRows
from aclog.pipeline.usage.report import usage
from aclog.pipeline.usage.unread import rejected_lines, unread_lines
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.usage.unread import UnreadAccesses

_PARTS_OF_A_CORE = 2
"""So that a core that is done early takes over work; each part pays for its distinct accesses."""


def usage_command(
    spark: SparkSession,
    requests: str,
    out: Path,
    policy: Policy,
    *,
    flags: UsageFlags,
    until: datetime | None = None,
) -> None:
    """Write `out`/rules, `out`/denied and `out`/holes as Parquet, and print a summary.

    `out` appears only once it is complete. `until` is the parsed --until.

    Raises:
        ConfigError: `out` exists; the requests cannot be read, are rotated meanwhile, or none of them has a timestamp.

    """
    check_new(out)
    rows, files, unread = _rows(spark, requests)
    with files.held():
        malformed = unread.count() if unread is not None else 0
        unknown = rejected_lines(spark, requests)
        if unread is not None and malformed:
            unknown = UnreadAccesses.sum_of((unknown, unread_lines(unread.select(MALFORMED))))
        found = usage(
            rows,
            policy.rules,
            policy.settings,
            own_time=policy.own_time,
            window_days=flags.days,
            until=until,
            top=flags.top,
            unread=unknown,
        )
    with new_directory(out) as partial:
        for name, table in (("rules", found.rules), ("denied", found.denied), ("holes", found.holes)):
            (partial / name).mkdir(parents=True)
            pq.write_table(table, partial / name / "part-00000.parquet")
    together = f"{out}/rules: all removable ACLs can be removed together"
    for line in summary_lines(found, [together]):
        say(line)
    warn_of_gaps(found)
    if malformed:
        warn(f"{malformed:,} lines are not accesses and were skipped")


def _rows(spark: SparkSession, requests: str) -> tuple[AccessRows, PinnedFiles, DataFrame | None]:
    """Return the rows of an access log and its files, and those that cannot be read, if there may be any."""
    plain = plain_accesses(spark, requests, spark.sparkContext.defaultParallelism * _PARTS_OF_A_CORE)
    if plain is not None:
        parts, files = plain
        return AccessRows.of_parts(spark, parts), files, None
    asked, files = pinned_accesses(spark, requests)
    rows = AccessRows.of_frame(asked.where(F.col(MALFORMED).isNull()))
    return rows, files, asked.where(F.col(MALFORMED).isNotNull())
