"""`aclog spark usage`: which rules an access log needed, in tables for programs and a summary for people."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.pipeline.accesses import MALFORMED, read_accesses
from aclog.pipeline.authorize import Rules
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.output_directory import check_new, new_directory
from aclog.pipeline.usage.report import Answer, Counts, Usage, usage
from aclog.terminal.notices import note, warn
from aclog.terminal.table import aligned

_SHOWN_DENIED = 10
_SHOWN_HOLES = 5


def usage_command(
    spark: SparkSession,
    requests: str,
    out: Path,
    rules: Rules,
    settings: Settings,
    *,
    own_time: bool,
    window_days: int,
    until: datetime | None = None,
    top: int = 100,
) -> None:
    """Write `out`/rules, `out`/denied and `out`/holes as Parquet, and print what is in them; `out` appears whole.

    Raises:
        ConfigError: `out` is there; the requests cannot be read, or no timestamp tells when they came.

    """
    check_new(out)
    asked = read_accesses(spark, requests)
    good = asked.where(F.col(MALFORMED).isNull()).drop(MALFORMED)
    found = usage(good, rules, settings, own_time=own_time, window_days=window_days, until=until, top=top)
    with new_directory(out) as partial:
        for name, table in (("rules", found.rules), ("denied", found.denied), ("holes", found.holes)):
            table.coalesce(1).write.parquet(str(partial / name))
    for line in _summary(found, out):
        print(line)
    _warn(found, asked.where(F.col(MALFORMED).isNotNull()).count())


def _summary(found: Usage, out: Path) -> Iterator[str]:
    days = (found.window.until - found.window.start).days
    yield f"{days} days: {_time(found.window.start)} to {_time(found.window.until)}"
    yield ""
    yield from aligned(("accesses", "what"), _counted(found.counts))
    yield ""
    yield from aligned(("rules", "can go", "answer"), _answers(found.rules))
    yield ""
    yield f"{out}/rules: all rules that can go, can go together"
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
        (counts.decided, "decided, and counted for rules"),
        (counts.super_users, "by super users"),
        *((count, f"not decided: {text}") for text, count in counts.errors.items()),
        (counts.before_log, "before the log of rules begins"),
        (counts.outside, "outside of the window"),
        (counts.without_time, "without timestamp"),
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
        note("it is not known since when the rules are in force: all are taken as in force in the whole window")
    holes = [row["day"] for row in found.holes.collect()]
    if holes:
        ranges = list(_ranges(holes))
        more = f" and {len(ranges) - _SHOWN_HOLES:,} times more" if len(ranges) > _SHOWN_HOLES else ""
        told = ", ".join(ranges[:_SHOWN_HOLES]) + more
        warn(f"no access at all on {len(holes):,} of {len(found.window.days):,} days: {told}: unused or not logged")
    if malformed:
        warn(f"{malformed:,} lines are no accesses, and were left out")


def _ranges(days: list[date]) -> Iterator[str]:
    for _, together in groupby(enumerate(days), lambda pair: pair[1] - timedelta(days=pair[0])):
        run = [day for _, day in together]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


def _time(time: datetime) -> str:
    """As `--as-of` reads it; what Spark gives is UTC, without saying so."""
    return time.replace(tzinfo=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
