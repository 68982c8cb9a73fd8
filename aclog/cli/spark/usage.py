"""`aclog spark usage`: which ACLs an access log needed, as tables and as a printed summary."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.cli.spark.flags import UsageFlags
from aclog.cli.spark.policy import Policy
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import MALFORMED, pinned_accesses
from aclog.pipeline.output_directory import check_new, new_directory
from aclog.pipeline.usage.report import Usage, usage
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned
from aclog.terminal.timezone import shown_zone
from aclog.usage.answer import Answer
from aclog.usage.counts import Counts

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
    asked, files = pinned_accesses(spark, requests)
    good = asked.where(F.col(MALFORMED).isNull()).drop(MALFORMED)
    with files.held():
        found = usage(
            good,
            policy.rules,
            policy.settings,
            own_time=policy.own_time,
            window_days=flags.days,
            until=until,
            top=flags.top,
        )
        malformed = asked.where(F.col(MALFORMED).isNotNull()).count()
    with new_directory(out) as partial:
        for name, table in (("rules", found.rules), ("denied", found.denied), ("holes", found.holes)):
            # each table is small by now: one file rather than one per partition
            table.coalesce(1).write.parquet(str(partial / name))
    for line in _summary(found, out):
        say(line)
    _warn(found, malformed)


def window_end(text: str | None) -> datetime | None:
    """Return the time in --until. Raises ConfigError: it is not a time."""
    if text is None:
        return None
    moment = take_moment(text)
    if isinstance(moment, int):
        raise ConfigError(f"--until {text}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment


def _summary(found: Usage, out: Path) -> Iterator[str]:
    days = (found.window.until - found.window.start).days
    yield f"{days} days: {_time(found.window.start)} to {_time(found.window.until)}"
    yield ""
    yield from aligned(("accesses", "what"), _counted(found.counts))
    yield ""
    yield from aligned(("ACLs", "removable", "answer"), _answers(found.rules))
    yield ""
    yield f"{out}/rules: all removable ACLs can be removed together"
    denied = found.denied.limit(_SHOWN_DENIED).collect()
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


def _answers(rules: DataFrame) -> list[tuple[str, str, str]]:
    counted = rules.groupBy("answer").agg(F.count("*").alias("rules"), F.count_if("removable").alias("removable"))
    found = {row["answer"]: row for row in counted.collect()}
    return [
        (f"{found[answer]['rules']:,}", f"{found[answer]['removable']:,}", answer.value)
        if answer in found
        else ("0", "0", answer.value)
        for answer in Answer
    ]


def _warn(found: Usage, malformed: int) -> None:
    if not found.has_times:
        note("the source has no times: all of its ACLs are assumed to be in force in the whole window")
    holes = [row["day"] for row in found.holes.collect()]
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
    """In the form that --as-of accepts. Spark returns naive datetimes, which are UTC in our sessions."""
    shown = time.replace(tzinfo=UTC).astimezone(shown_zone())
    return shown.isoformat(timespec="seconds").replace("+00:00", "Z")
