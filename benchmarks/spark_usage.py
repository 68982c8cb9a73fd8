"""`spark usage` on a large access log vs. Spark reading the columns that it needs, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.authorizer.settings import Settings
from aclog.pipeline.access_rows import AccessRows
from aclog.pipeline.accesses import plain_accesses
from aclog.pipeline.session import open_session
from aclog.pipeline.usage import usage
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from benchmarks.report import Row
from benchmarks.spark import Cost, Costs, accesses, moving_rules, rules_of

_WANTED = 1 / 1.5
_RULES = 2_000
_ROWS_OF_A_FILE = 4_000_000


def run(scratch: Path, rows: int, rounds: int) -> Iterator[Row]:
    """Yield rows for `rows` accesses with 2,000 ACLs, by one state and by the ACLs of each access's own time."""
    spark = open_session("local[*]", {"spark.local.dir": str(scratch)})
    try:
        files = max(rows // _ROWS_OF_A_FILE, 1)
        path = accesses(scratch / "accesses", rows, _RULES, files=files, row_group=1_000_000)
        found = Costs(rounds).of(
            {
                "columns": lambda: _noop(spark, path),
                "one state": lambda: _usage(spark, path, own_time=False),
                "own time": lambda: _usage(spark, path, own_time=True),
            }
        )
        for name in ("one state", "own time"):
            yield from _rows(f"{rows:,} accesses, {_RULES:,} rules: usage by {name}", found[name], found["columns"])
    finally:
        spark.stop()


def _rows(what: str, ours: Cost, theirs: Cost) -> Iterator[Row]:
    what = f"{what}, vs. Spark reading the columns"
    yield Row(what=f"{what}: clock", ours=ours.wall, theirs=theirs.wall, unit="s", target=_WANTED)
    yield Row(what=f"{what}: CPU", ours=ours.cpu, theirs=theirs.cpu, unit="s")


def _noop(spark: SparkSession, path: Path) -> None:
    columns = spark.read.parquet(str(path)).select(*REQUEST_COLUMNS, "timestamp")
    columns.write.format("noop").mode("overwrite").save()


def _usage(spark: SparkSession, path: Path, *, own_time: bool) -> None:
    rules = moving_rules(_RULES) if own_time else rules_of(_RULES)
    plain = plain_accesses(spark, path, spark.sparkContext.defaultParallelism * 2)
    assert plain is not None
    rows = AccessRows.of_parts(spark, plain[0])
    usage(rows, rules, Settings(), own_time=own_time, window_days=90)
