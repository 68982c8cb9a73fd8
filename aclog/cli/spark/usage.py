"""`aclog spark usage`: which ACLs an access log needed, as tables and as a printed summary."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import compress, groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.spark.flags import UsageFlags
from aclog.cli.spark.policy import Policy
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import MALFORMED, pinned_accesses, plain_accesses
from aclog.pipeline.accesses.pinned_files import PinnedFiles
from aclog.pipeline.output_directory import check_new, new_directory
from aclog.pipeline.usage.accesses import AccessRows
from aclog.pipeline.usage.report import usage
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned
from aclog.terminal.timezone import shown_zone
from aclog.usage.answer import Answer
from aclog.usage.counts import Counts
from aclog.usage.report import UsageReport

_PARTS_OF_A_CORE = 2
"""So that a core that is done early takes over work; each part pays for its distinct accesses."""
_SHOWN_DENIED = 10
_SHOWN_HOLES = 5


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
        found = usage(
            rows,
            policy.rules,
            policy.settings,
            own_time=policy.own_time,
            window_days=flags.days,
            until=until,
            top=flags.top,
        )
        malformed = unread.count() if unread is not None else 0
    with new_directory(out) as partial:
        for name, table in (("rules", found.rules), ("denied", found.denied), ("holes", found.holes)):
            (partial / name).mkdir(parents=True)
            pq.write_table(table, partial / name / "part-00000.parquet")
    for line in _summary(found, out):
        say(line)
    _warn(found, malformed)


def _rows(spark: SparkSession, requests: str) -> tuple[AccessRows, PinnedFiles, DataFrame | None]:
    """Return the rows of an access log and its files, and those that cannot be read, if there may be any."""
    plain = plain_accesses(spark, requests, spark.sparkContext.defaultParallelism * _PARTS_OF_A_CORE)
    if plain is not None:
        parts, files = plain
        return AccessRows.of_parts(spark, parts), files, None
    asked, files = pinned_accesses(spark, requests)
    rows = AccessRows.of_frame(asked.where(F.col(MALFORMED).isNull()))
    return rows, files, asked.where(F.col(MALFORMED).isNotNull())


def window_end(text: str | None) -> datetime | None:
    """Return the time in --until. Raises ConfigError: it is not a time."""
    if text is None:
        return None
    moment = take_moment(text)
    if isinstance(moment, int):
        raise ConfigError(f"--until {text}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment


def _summary(found: UsageReport, out: Path) -> Iterator[str]:
    days = (found.window.until - found.window.start).days
    yield f"{days} days: {_time(found.window.start)} to {_time(found.window.until)}"
    yield ""
    yield from aligned(("accesses", "what"), _counted(found.counts))
    yield ""
    yield from aligned(("ACLs", "removable", "answer"), _answers(found.rules))
    yield ""
    yield f"{out}/rules: all removable ACLs can be removed together"
    denied = found.denied.slice(0, _SHOWN_DENIED).to_pylist()
    if denied:
        yield ""
        header = ("denied", "last", "principal", "host", "operation", "resource", "rule")
        yield from aligned(
            header,
            (
                (
                    f"{row['count']:,}",
                    _time(row["last_at"]),
                    row["principal"],
                    row["host"],
                    row["operation"],
                    f"{row['resourceType']}:{row['resourceName']}",
                    row["rule_id"] or row["rule"],
                )
                for row in denied
            ),
        )


def _counted(counts: Counts) -> list[tuple[str, str]]:
    rows = [
        (counts.decided, "decided, and counted for ACLs"),
        (counts.super_users, "by super users"),
        *((count, f"not decided: {text}") for text, count in counts.errors.items()),
        (counts.before_log, "not judged: the log does not reach back to the time of the access"),
        (counts.outside, "outside the window"),
        (counts.without_time, "without a timestamp"),
    ]
    first, *others = [(f"{count:,}", what) for count, what in rows if count or what.startswith("decided")]
    return [first, *others, (f"{counts.total:,}", "read")]


def _answers(rules: pa.Table) -> list[tuple[str, str, str]]:
    answers = rules.column("answer").to_pylist()
    rows, removable = Counter(answers), Counter(compress(answers, rules.column("removable").to_pylist()))
    return [(f"{rows[answer]:,}", f"{removable[answer]:,}", answer.value) for answer in Answer]


def _warn(found: UsageReport, malformed: int) -> None:
    if not found.has_times:
        note("the source has no times: all of its ACLs are assumed to be in force in the whole window")
    holes = [day for day in found.holes.column("day").to_pylist() if day is not None]
    if holes:
        ranges = list(_ranges(holes))
        more = f" and {len(ranges) - _SHOWN_HOLES:,} more ranges" if len(ranges) > _SHOWN_HOLES else ""
        shown = ", ".join(ranges[:_SHOWN_HOLES]) + more
        warn(f"no access at all on {len(holes):,} of {len(found.window.days):,} days: {shown}: unused or not logged")
    if malformed:
        warn(f"{malformed:,} lines are not accesses and were skipped")


def _ranges(days: list[date]) -> Iterator[str]:
    # consecutive days minus their place in the list are all the same day
    for _, together in groupby(enumerate(days), lambda pair: pair[1] - timedelta(days=pair[0])):
        run = [day for _, day in together]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


def _time(time: datetime) -> str:
    """In the form that --as-of accepts."""
    shown = time.astimezone(shown_zone())
    return shown.isoformat(timespec="seconds").replace("+00:00", "Z")
