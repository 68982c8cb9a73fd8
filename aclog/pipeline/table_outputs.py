"""Outputs in table formats: Delta and Iceberg, whose own transactions publish them.

A table of Delta is a directory of any store; one of Iceberg has a name in a catalog of the session. A batch of a stream
is written once: Delta records the application and its number in the transaction (txnAppId, txnVersion), and ignores a
repetition. Iceberg gets them as properties of the snapshot, which are read before a batch is written.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from attrs import field
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline import storage
from aclog.pipeline.output_directory import TABLE_NAME, Mode, OutFormat, Place, hadoop_name
from aclog.pipeline.session import frame_of, is_connect
from aclog.usage.accesses.table_formats import TableFormat

PACKAGES: Final = {
    TableFormat.DELTA: ("io.delta.tables.DeltaTable", "io.delta:delta-spark_{}_2.13:VERSION"),
    TableFormat.ICEBERG: (
        "org.apache.iceberg.spark.source.IcebergSource",
        "org.apache.iceberg:iceberg-spark-runtime-{}_2.13:VERSION",
    ),
}
"""A class of each package, and the package for a version of Spark."""
DAY: Final = "day"
_APPLICATION, _BATCH = "aclog-stream", "aclog-batch"


def check_format(spark: SparkSession, out: Place, form: OutFormat) -> None:
    """Refuse a format that the session cannot write.

    Raises:
        ConfigError: its package is not on Spark's classpath, or `out` is not the name of a table of Iceberg.

    """
    if form not in {OutFormat.DELTA, OutFormat.ICEBERG}:
        return
    missing = missing_package(spark, TableFormat[form.name])
    if missing is not None:
        package, minor = missing
        raise ConfigError(
            f"--out-format {form}: Spark writes it by a package: expected --packages {package}, with its newest "
            f"version for Spark {minor}, if there is one (docs/spark.md: Delta and Iceberg)"
        )
    if form is OutFormat.ICEBERG and not TABLE_NAME.fullmatch(str(out)):
        raise ConfigError(f"--out {out}: expected CATALOG.DATABASE.TABLE, a table of a catalog of Iceberg in --conf")


def missing_package(spark: SparkSession, table_format: TableFormat) -> tuple[str, str] | None:
    """Return the package of a format that the session lacks, and Spark's minor version; None if it has it."""
    name, package = PACKAGES[table_format]
    minor = ".".join(spark.version.split(".")[:2])
    if is_connect(spark):
        return None if _has_source(spark, table_format.name.lower()) else (package.format(minor), minor)
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(name)
    except Py4JJavaError:
        return package.format(minor), minor
    return None


def _has_source(spark: SparkSession, name: str) -> bool:
    """Return whether a server of Spark Connect has a data source: without it, Spark does not look at the path."""
    try:
        spark.read.format(name).load("/no such table").schema  # noqa: B018 - it is analyzed
    except PySparkException as error:
        return error.getCondition() != "DATA_SOURCE_NOT_FOUND"
    return True


@frozen(kw_only=True)
class TableOutput:
    """The tables of an output: `out` itself, or for several tables one each."""

    spark: SparkSession
    out: Place
    form: OutFormat
    mode: Mode = Mode.ERROR
    by_day: bool = False
    _kept: dict[str, DataFrame] = field(factory=dict, init=False, repr=False)
    """The rows that were appended to tables, which have others too."""

    def close(self) -> None:
        """Forget the rows that were appended."""
        for rows in self._kept.values():
            rows.unpersist()

    def place(self, table: str = "") -> str:
        """Return the path or the name of a table."""
        if self.form is OutFormat.ICEBERG:
            return f"{self.out}_{table}" if table else str(self.out)
        return storage.joined(hadoop_name(self.out), table) if table else hadoop_name(self.out)

    def exists(self, table: str = "") -> bool:
        """Return whether there is a table."""
        place = self.place(table)
        if self.form is OutFormat.ICEBERG:
            return bool(self.spark.catalog.tableExists(place))
        return storage.exists(self.spark, place)

    def read(self, table: str = "") -> DataFrame:
        """Return the rows of a table; after an append, those that were appended."""
        if table in self._kept:
            return self._kept[table]
        place = self.place(table)
        if self.form is OutFormat.ICEBERG:
            self.spark.catalog.refreshTable(place)  # each session has a cache: a stream writes in one of its own
            return self.spark.table(place)
        return self.spark.read.format(self.form.value).load(place)

    def write(self, frame: DataFrame, table: str = "", *, by_day: bool = False) -> None:
        """Write the rows of a table in one transaction; with `by_day`, as with the attribute.

        Raises:
            ConfigError: the table exists, and the mode is `error`.

        """
        if self.mode is Mode.ERROR and self.exists(table):
            raise ConfigError(f"{self.place(table)}: exists already: expected a new name, or --mode overwrite")
        by_day = by_day or self.by_day
        rows = with_day(frame) if by_day else frame
        if self.mode is Mode.APPEND:
            rows = self._kept[table] = rows.persist(StorageLevel.DISK_ONLY)
        if self.form is OutFormat.ICEBERG:
            self._write_iceberg(rows, table, by_day=by_day)
            return
        writer = rows.write.format("delta").mode({Mode.ERROR: "error"}.get(self.mode, self.mode.value))
        if self.mode is Mode.OVERWRITE:
            writer = writer.option("overwriteSchema", value=True).options(**WHOLE)
        in_days(writer, by_day=by_day).save(self.place(table))

    def add(self, rows: pa.Table, table: str) -> None:
        """Write a small table."""
        self.write(frame_of(self.spark, rows), table)

    def last_batch(self, stream: str, table: str = "") -> int | None:
        """Return the number of the last batch of a stream in a table, None without one. `stream` is its random name."""
        place, application = self.place(table), _application(stream, table)
        if self.form is OutFormat.ICEBERG:
            if not self.exists(table):
                return None
            summary = F.col("summary")
            self.spark.catalog.refreshTable(place)
            snapshots = self.spark.table(f"{place}.snapshots").where(summary[_APPLICATION] == application)
            newest = snapshots.select(F.max(summary[_BATCH].cast("long")).alias("newest")).collect()[0]["newest"]
            return None if newest is None else int(newest)
        jvm: Any = self.spark.sparkContext._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(self.spark._jsparkSession, place)
        newest = log._2().transactions().get(application)
        return int(newest.get()) if newest.isDefined() else None

    def write_batch(self, frame: DataFrame, stream: str, number: int, table: str = "") -> None:
        """Write a batch of a stream, unless it has been. `stream` is its random name."""
        rows, application = with_day(frame) if self.by_day else frame, _application(stream, table)
        if self.form is OutFormat.ICEBERG:
            last = self.last_batch(stream, table)
            if last is None or last < number:
                self._write_iceberg_batch(rows, application, number, table)
            return
        writer = rows.write.format("delta").mode("append")
        writer = writer.options(txnAppId=application, txnVersion=number)
        in_days(writer, by_day=self.by_day).save(self.place(table))

    def _write_iceberg(self, rows: DataFrame, table: str, *, by_day: bool) -> None:
        if self.mode is Mode.APPEND and self.exists(table):
            rows.writeTo(self.place(table)).append()
            return
        writer = rows.writeTo(self.place(table)).using("iceberg")
        if by_day:
            writer = writer.partitionedBy(F.col(DAY))
        if self.mode is Mode.OVERWRITE:
            writer.createOrReplace()
        else:
            writer.create()

    def _write_iceberg_batch(self, rows: DataFrame, application: str, number: int, table: str) -> None:
        place = self.place(table)
        if not self.exists(table):
            empty = rows.limit(0).writeTo(place).using("iceberg")
            (empty.partitionedBy(F.col(DAY)) if self.by_day else empty).create()
        rows.sparkSession.catalog.refreshTable(place)
        writer = rows.writeTo(place)
        properties: Mapping[str, str] = {_APPLICATION: application, _BATCH: str(number)}
        for name, value in properties.items():
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()


def _application(stream: str, table: str) -> str:
    """Return the name of a table's stream, by which the table numbers its batches."""
    return f"{stream}-{table}"


WHOLE: Final = {"partitionOverwriteMode": "static"}
"""Of writers that overwrite: a session may be set to replace only the partitions that have new rows (dynamic)."""


def in_days(writer: DataFrameWriter, *, by_day: bool) -> DataFrameWriter:
    """Return a writer of rows `with_day`, which writes the rows of each day on their own."""
    return writer.partitionBy(DAY) if by_day else writer


def with_day(frame: DataFrame) -> DataFrame:
    """Return the rows with the day (UTC) of their `timestamp`. Raises ConfigError: no such column, or one named day."""
    names = {name.lower() for name in frame.columns}
    if "timestamp" not in names:
        raise ConfigError("--by-day: the rows have no column 'timestamp'")
    if DAY in names:
        raise ConfigError(f"--by-day: the rows have a column {DAY!r} already: rename it")
    return frame.withColumn(DAY, F.to_date("timestamp"))
