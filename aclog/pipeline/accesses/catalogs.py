"""Accesses in a table of a catalog of the session, and those that a query of SQL returns.

Only a catalog knows the current state of most tables of Iceberg, and it checks the permissions of its user. All jobs of
a command read the same rows: those of one version, where the format of the table has versions; otherwise the rows are
first copied to the disks of the executors.
"""

from pathlib import Path
from typing import TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.output_directory import TABLE_NAME
from aclog.pipeline.session import cause
from aclog.usage.accesses.table_formats import NEWEST, TableMoment


@frozen
class CatalogTable:
    """A table, or a view, by its name: CATALOG.DATABASE.TABLE, or DATABASE.TABLE in the catalog of the session."""

    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @property
    def quoted(self) -> str:
        """The name in SQL."""
        return ".".join(f"`{part}`" for part in self.name.split("."))

    def beside(self, ending: str, other: str) -> "CatalogTable | None":
        """Return the table whose name has another ending; None if the name has not the first one."""
        return CatalogTable(self.name.removesuffix(ending) + other) if self.name.endswith(ending) else None

    def exists(self, spark: SparkSession) -> bool:
        """Return whether the session has the table: no, if it has no such catalog or database."""
        try:
            return bool(spark.catalog.tableExists(self.quoted))
        except (PySparkException, Py4JError):
            return False


@frozen
class SqlQuery:
    """A query of SQL."""

    text: str

    def __str__(self) -> str:
        """Return what a message names it by."""
        return "--query"


CatalogRows: TypeAlias = CatalogTable | SqlQuery


def table_named(spark: SparkSession, name: str, *, is_path: bool | None = None) -> CatalogTable | None:
    """Return the table that a text names, or its accesses if `ingest` wrote NAME_accesses.

    None without one, and if a file of this machine has the name. `is_path` is whether there is such a file, False for
    a server of Spark Connect; by default, it is looked for.
    """
    if not TABLE_NAME.fullmatch(name) or (Path(name).exists() if is_path is None else is_path):
        return None
    candidates = CatalogTable(name), CatalogTable(f"{name}_accesses")
    return next((table for table in candidates if table.exists(spark)), None)


def catalog_rows(spark: SparkSession, source: CatalogRows, moment: TableMoment = NEWEST) -> DataFrame:
    """Return the rows of a table or a query, the same in all jobs.

    Raises:
        ConfigError: the query has an error or is another statement, a table cannot be read, or has no versions although
            one is stated.

    """
    try:
        if isinstance(source, SqlQuery):
            moment.check_used([str(source)], ())
            return _kept(_rows_of_query(spark, source.text))
        frame = _version(spark, source, moment)
        if frame is not None:
            return frame
        moment.check_used([str(source)], ())
        return _kept(spark.table(source.quoted))
    except (PySparkException, Py4JError) as error:
        raise ConfigError(f"{source}: {cause(str(error))}") from error


def _rows_of_query(spark: SparkSession, text: str) -> DataFrame:
    # in parentheses, so that no other statement is a query; the end of a line ends a comment
    return spark.sql(f"SELECT * FROM (\n{text.strip().removesuffix(';')}\n)")  # noqa: S608 - the query of the user


def _kept(frame: DataFrame) -> DataFrame:
    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)


def _version(spark: SparkSession, table: CatalogTable, moment: TableMoment) -> DataFrame | None:
    """Return one version of a table of Delta or Iceberg; None if another table, or a state that is no version."""
    # last: a column may have the same name
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table.quoted}").where(F.lower("col_name") == "provider").collect()
    provider = str(described[-1]["data_type"]).lower() if described else ""
    if provider not in {"delta", "iceberg"}:
        return None
    versions = f"SELECT * FROM {table.quoted} "  # noqa: S608 - no parameter can be a name
    if moment.timestamp is not None:
        return spark.sql(f"{versions} TIMESTAMP AS OF '{moment.timestamp:%Y-%m-%d %H:%M:%S.%f}'")
    version = _newest(spark, table, provider) if moment.version is None else moment.version
    if version is None:
        return None
    frame = spark.sql(f"{versions} VERSION AS OF {version}")
    # a snapshot of Iceberg has the columns of its time, which may have been renamed since
    is_current = moment.version is not None or frame.schema == spark.table(table.quoted).schema
    return frame if is_current else None


def _newest(spark: SparkSession, table: CatalogTable, provider: str) -> int | None:
    if provider == "delta":
        history = spark.sql(f"DESCRIBE HISTORY {table.quoted}")
        rows = history.select(F.max("version").alias("newest")).collect()
    else:
        branches = spark.table(f"{table.quoted}.refs").where(F.col("name") == "main")
        rows = branches.select(F.col("snapshot_id").alias("newest")).collect()
    return None if not rows or rows[0]["newest"] is None else int(rows[0]["newest"])
