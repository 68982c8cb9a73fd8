"""`aclog spark simulate`: the accesses of a log that other rules would decide otherwise."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import MALFORMED, read_accesses
from aclog.pipeline.authorize import Rules
from aclog.pipeline.decisions.accesses import REQUEST_COLUMNS
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.output_directory import check_new, new_directory
from aclog.pipeline.simulate import Change, simulate
from aclog.terminal.notices import warn
from aclog.terminal.table import aligned

_SHOWN = 10


def simulate_command(
    spark: SparkSession,
    requests: str,
    out: Path,
    before: tuple[Rules, Settings],
    after: tuple[Rules, Settings],
    *,
    own_time: bool,
) -> bool:
    """Write the accesses that change as Parquet, and print how many are gained and lost; whether there are any.

    `out` appears when it is whole.

    Raises:
        ConfigError: `out` is there; the requests cannot be read, or have no timestamp where one is wanted.

    """
    check_new(out)
    asked = read_accesses(spark, requests)
    if own_time and "timestamp" not in asked.columns:
        raise ConfigError(f"{requests}: no column 'timestamp': --own-time judges each row by it")
    good = asked.where(F.col(MALFORMED).isNull()).drop(MALFORMED)
    with new_directory(out) as partial:
        simulate(good, before, after, own_time=own_time).write.parquet(str(partial))
    changed = _show(spark.read.parquet(str(out)))
    malformed = asked.where(F.col(MALFORMED).isNotNull()).count()
    if malformed:
        warn(f"{malformed:,} lines are no accesses, and were left out")
    return changed


def _show(flips: DataFrame) -> bool:
    counted = flips.groupBy("change").agg(F.sum("count").alias("accesses"), F.count("*").alias("distinct"))
    found = {row["change"]: row for row in counted.collect()}
    rows = [
        (f"{found[change]['accesses']:,}", f"{found[change]['distinct']:,}", change.value)
        if change in found
        else ("0", "0", change.value)
        for change in Change
        if change in found or change in {Change.GAINED, Change.LOST}
    ]
    for line in aligned(("accesses", "distinct", "change"), rows):
        print(line)
    for change in Change:
        if change in found:
            _show_most(flips.where(F.col("change") == change.value), change)
    return bool(found)


def _show_most(flips: DataFrame, change: str) -> None:
    order = F.desc("count"), *REQUEST_COLUMNS
    print()
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
        print(line)
