"""Compare what Spark and pyiceberg read of Iceberg tables that Spark writes. Arguments: the JAR, a DIRECTORY.

A program of its own, as Iceberg's package needs another PySpark (4.1) than the one of the tests: `make check-iceberg`.
"""

import sys
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import read_accesses
from aclog.pipeline.session import open_session
from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.accesses.table_formats import NEWEST, TableMoment
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

NAMES = [*REQUEST_COLUMNS, "timestamp"]
ROWS = (
    "SELECT 'User:' || id % 3 principal, '10.0.0.1' host, 'READ' operation, 'TOPIC' resourceType, "
    "'t' || id resourceName, timestamp_micros(1793528430123456 + id) timestamp FROM range({}, {})"
)

Rows = Counter[tuple[object, ...]]


def on_spark(spark: SparkSession, path: str, moment: TableMoment) -> Rows:
    """The rows by aclog on Spark."""
    frame = read_accesses(spark, path, moment).where("_malformed is null").select(*NAMES)
    return Counter(tuple(row[name] for name in NAMES) for row in frame.toArrow().to_pylist())


def without_spark(path: str, moment: TableMoment) -> Rows:
    """The rows by aclog with pyiceberg."""
    log = find_accesses([path], UTC, moment=moment)
    read = [batch.rows for part in log.parts for batch in read_part(part)]
    return Counter(tuple(row[name] for name in NAMES) for batch in read for row in batch.to_pylist())


def by_sql(spark: SparkSession, table: str, snapshot: int) -> Rows:
    """The rows by Spark alone, through its catalog."""
    frame = spark.sql(f"SELECT {', '.join(NAMES)} FROM {table} VERSION AS OF {snapshot}")
    return Counter(tuple(row[name] for name in NAMES) for row in frame.toArrow().to_pylist())


def check_table(spark: SparkSession, directory: Path, name: str, mode: str, version: int) -> list[str]:
    """Write a table with deletes, updates, a rewrite and a renamed column; return what differs."""
    table = f"lake.db.{name}"
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    spark.sql(f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ('format-version' = '{version}', {modes}) AS "
              + ROWS.format(0, 200))  # fmt: skip
    spark.sql(f"DELETE FROM {table} WHERE resourceName LIKE '%7'")
    spark.sql(f"INSERT INTO {table} {ROWS.format(200, 260)}")
    spark.sql(f"UPDATE {table} SET principal = 'User:x' WHERE resourceName = 't5'")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN host TO HOST_")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN HOST_ TO host")
    spark.sql(f"CALL lake.system.rewrite_data_files('db.{name}')")
    spark.sql(f"DELETE FROM {table} WHERE resourceName = 't11'")
    snapshots = spark.sql(f"SELECT snapshot_id, committed_at FROM {table}.snapshots ORDER BY committed_at").toArrow()
    path, wrong = str(directory / "db" / name), []
    for row in snapshots.to_pylist():
        expected = by_sql(spark, table, row["snapshot_id"])
        at = datetime.fromtimestamp(row["committed_at"].timestamp(), UTC)
        for moment in (TableMoment(version=row["snapshot_id"]), TableMoment(timestamp=at)):
            wrong += _differences(spark, path, moment, expected)
    newest = snapshots.to_pylist()[-1]["snapshot_id"]
    wrong += _differences(spark, path, NEWEST, by_sql(spark, table, newest))
    print(f"{name}: {len(snapshots)} snapshots, {by_sql(spark, table, newest).total()} rows in the newest")
    return wrong


def _differences(spark: SparkSession, path: str, moment: TableMoment, expected: Rows) -> list[str]:
    wrong = []
    for who, read in (("Spark", partial(on_spark, spark)), ("pyiceberg", without_spark)):
        try:
            rows = read(path, moment)
        except ConfigError as error:
            wrong.append(f"refused by {who}: {path}, {moment}: {error}")
            continue
        if rows != expected:
            wrong.append(f"{who}: {path}, {moment}: {rows.total()} rows, expected {expected.total()}")
    return wrong


def main() -> None:
    """Check tables of each kind of delete, and print what differs; exit with 1 if something does."""
    jar, directory = sys.argv[1], Path(sys.argv[2])
    catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": directory.as_uri()}
    settings = {f"spark.sql.catalog.lake{key}": value for key, value in catalog.items()}
    extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    spark = open_session("local[2]", {"spark.jars": jar, "spark.sql.extensions": extension, **settings})
    wrong = []
    for name, mode, version in (
        ("rewritten", "copy-on-write", 2), ("positions", "merge-on-read", 2), ("vectors", "merge-on-read", 3),
    ):  # fmt: skip
        wrong += check_table(spark, directory, name, mode, version)
    spark.stop()
    for text in wrong:
        print(text)
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()
