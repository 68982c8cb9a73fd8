"""Tables of Delta and Iceberg on Spark, by their packages, and the forms of files by their content."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType

from aclog.metalog.errors import ConfigError
from aclog.pipeline import server_files
from aclog.pipeline.output_directory import GLOB, place_of
from aclog.pipeline.session import is_connect
from aclog.pipeline.storage import local_path, names_in, path_here, read_bytes
from aclog.pipeline.table_outputs import PACKAGES, missing_package
from aclog.usage.accesses.access_batch import BEGINNING, AccessForm, form_of
from aclog.usage.accesses.lines import packing_of
from aclog.usage.accesses.table_formats import (
    LOCAL,
    MARKERS,
    Places,
    TableFormat,
    TableMoment,
    TableRoot,
    check_loose_files,
    iceberg_metadata,
    iceberg_snapshot,
    read_metadata,
    unreadable,
)
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

# Where tables are: local directories are looked at as without Spark, others by one listing each.


def places_of(spark: SparkSession) -> Places:
    """Return how the directories of any store are looked at."""
    return Places(partial(_markers, spark), partial(_names, spark))


def _markers(spark: SparkSession, directory: str) -> Collection[str]:
    if is_connect(spark):
        return server_files.directories_in(spark, directory, MARKERS)
    local = local_path(directory)
    return LOCAL.markers(local) if local is not None else names_in(spark, directory, f"{{{','.join(MARKERS)}}}")


def _names(spark: SparkSession, directory: str) -> Collection[str]:
    if is_connect(spark):
        return server_files.names_in(spark, directory)
    local = local_path(directory)
    return LOCAL.names(local) if local is not None else names_in(spark, directory)


def named_table(spark: SparkSession, path: str) -> TableRoot | None:
    """Return the table that a path or URI names."""
    table = places_of(spark).named(path)
    local = None if table is None else path_here(spark, table.path)
    return table if table is None or local is None else TableRoot(table.format, local)


def check_loose(spark: SparkSession, files: Sequence[str]) -> None:
    """Check that no file, by its URI, belongs to a table. Raises ConfigError: one does.

    Links are followed on this machine alone.
    """
    if is_connect(spark):
        places_of(spark).check_loose(map(unquote, files))
        return
    local = [path for path in map(local_path, files) if path is not None]
    check_loose_files(local)
    places_of(spark).check_loose(unquote(file) for file in files if local_path(file) is None)


# Their rows.


def table_frame(spark: SparkSession, table: TableRoot, moment: TableMoment) -> DataFrame:
    """Return the rows of one version of a table: all jobs over the frame read the same.

    Raises:
        ConfigError: its package is not on Spark's classpath, an unsupported format, or no such version.

    """
    if table.format not in PACKAGES:
        raise ConfigError(unreadable(table))
    _need_package(spark, table)
    reader = _delta if table.format is TableFormat.DELTA else _iceberg
    try:
        return reader(spark, table, moment)
    except (AnalysisException, Py4JError) as error:
        what = str(error.getCondition()) if isinstance(error, AnalysisException) else ""
        text = " ".join(str(error).split("\n\tat", 1)[0].split())[:300]
        raise ConfigError(f"{table.path}: the {table.format} table cannot be read: {what} {text}") from error


def _need_package(spark: SparkSession, table: TableRoot) -> None:
    missing = missing_package(spark, table.format)
    if missing is not None:
        package, minor = missing
        raise ConfigError(
            f"{table.path}: a {table.format} table, which Spark reads by a package: expected --packages "
            f"{package}, with its newest version for Spark {minor} (docs/spark.md: Delta and Iceberg)"
        )


def _delta(spark: SparkSession, table: TableRoot, moment: TableMoment) -> DataFrame:
    reader = spark.read.format("delta")
    if moment.timestamp is not None:
        zone = spark.conf.get("spark.sql.session.timeZone")
        if zone != "UTC":
            raise ConfigError(f"--timestamp-as-of: the session's zone is {zone}: expected UTC, or a version")
        at = moment.timestamp.strftime("%Y-%m-%d %H:%M:%S.%f")
        return reader.option("timestampAsOf", at).load(table.path)
    version = moment.version
    if version is None and is_connect(spark):
        history = spark.sql("DESCRIBE HISTORY delta.`" + table.path.replace("`", "``") + "`")
        version = history.agg(F.max("version").alias("newest")).collect()[0]["newest"]
    elif version is None:  # a frame without a version would read a newer one in each job
        jvm: Any = spark.sparkContext._jvm
        newest = jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, table.path).history(1)
        version = newest.collectAsList().get(0).getLong(0)
    return reader.option("versionAsOf", version).load(table.path)


def _iceberg(spark: SparkSession, table: TableRoot, moment: TableMoment) -> DataFrame:
    path = iceberg_metadata(table, places_of(spark))
    snapshot = iceberg_snapshot(table, moment, read_metadata(read_bytes(spark, path), path))
    reader = spark.read.format("iceberg")
    # the file of a state, not the directory: the catalog may have a newer state in each job
    return (reader if snapshot is None else reader.option("versionAsOf", snapshot)).load(path)


# The form of files, by their content: by a file of each ending.


_LINES: Final = AccessForm.JSONL


def form_of_files(spark: SparkSession, files: Sequence[str], place: str) -> AccessForm:
    """Return PARQUET, ORC or JSONL, for any lines: the form of files, of which there is at least one.

    Raises:
        ConfigError: the files have several forms, or one that Spark's jobs do not read.

    """
    by_ending: dict[str, str] = {}
    for file in files:
        name = file.rsplit("/", 1)[-1].lower()
        by_ending.setdefault(name.rpartition(".")[2] if "." in name else "", file)
    forms = {_form(spark, file): file for file in by_ending.values()}
    if len(forms) > 1:
        listed = ", ".join(f"{form.value} ({file.rsplit('/', 1)[-1]})" for form, file in forms.items())
        raise ConfigError(f"{place}: files of several forms: {listed}: expected one form")
    return next(iter(forms))


def _form(spark: SparkSession, file: str) -> AccessForm:
    local = path_here(spark, file)
    if local is not None and packing_of(local) is not None:
        return _LINES
    if is_connect(spark):
        beginning = server_files.first_lines(spark, unquote(file), BEGINNING)
    else:
        beginning = read_bytes(spark, file if local is not None else unquote(file), BEGINNING)
    if beginning[:4] == b"PAR1":
        return AccessForm.PARQUET
    if beginning[:3] == b"ORC" and form_of(beginning, file) is AccessForm.ORC:
        return AccessForm.ORC
    if beginning[:4] == b"Obj\x01":
        raise ConfigError(f"{local or file}: Avro: expected Parquet, ORC or JSON lines: first run aclog spark ingest")
    return _LINES


# Files in directories: Spark reads those below `NAME=VALUE`, or those in the named directory, and no others.


def reader_settings(spark: SparkSession, paths: Sequence[str], *, grows: bool = False) -> dict[str, str]:
    """Return the options by which Spark's reader of Parquet or ORC reads all files below these paths.

    `grows`: directories may be added, which have the same columns in their names as those that exist.

    Raises:
        ConfigError: some files are in directories whose names have columns (NAME=VALUE), and others are not; or as
            check_loose.

    """
    places: dict[tuple[tuple[str, ...], bool], str] = {}
    for directories, file in _directories_of(spark, paths):
        columns = tuple(name.partition("=")[0].lower() for name in directories if "=" in name)
        places.setdefault((columns, len(columns) < len(directories)), file)
    if any(columns for columns, _ in places) and (len(places) > 1 or any(is_other for _, is_other in places)):
        check_loose(spark, sorted(places.values()))  # names the table instead
        some = " and ".join(sorted(places.values())[:2])
        raise ConfigError(
            f"{some}: expected the same columns in the names of the directories of all files (NAME=VALUE), and no "
            "other directories: Spark does not read the other files"
        )
    is_deep = any(is_other for _, is_other in places) or (grows and not any(columns for columns, _ in places))
    return {"recursiveFileLookup": "true"} if is_deep else {}


_Directories: TypeAlias = tuple[str, ...]
"""The directories between a path that is read and a file below it."""


def _directories_of(spark: SparkSession, paths: Sequence[str]) -> Iterator[tuple[_Directories, str]]:
    """Yield the directories of the files below each path, each at least once, and a file in them.

    Directories of this machine are walked; of other stores, and of globs, Spark lists all files.
    """
    named: dict[_Directories, str] = {}
    for path in paths:
        if any(character in GLOB for character in _ESCAPED.sub("", path)):
            depth = len(_parts(path))
            yield from ((_parts_of_file(file)[depth:-1], unquote(file)) for file in _files_below(spark, [path]))
        elif (local := path_here(spark, _ESCAPED.sub(r"\1", path))) is not None:
            yield from _walked(local)
        else:
            named[_parts(_ESCAPED.sub(r"\1", path))] = path
    for file in _files_below(spark, list(named.values())) if named else ():
        parts = _parts_of_file(file)
        depth = next((end for end in range(len(parts), 0, -1) if parts[:end] in named), len(parts))
        yield parts[depth:-1], unquote(file)


_ESCAPED: Final = re.compile(r"\\(.)")


def _files_below(spark: SparkSession, paths: Sequence[str]) -> Sequence[str]:
    return spark.read.format("binaryFile").option("recursiveFileLookup", value=True).load(list(paths)).inputFiles()


def _parts(path: str) -> _Directories:
    """Return the parts of a path, or of the path in a URI, as they were given."""
    place = place_of(path)
    return PurePosixPath(str(place.absolute()) if isinstance(place, Path) else urlsplit(place).path).parts


def _parts_of_file(uri: str) -> _Directories:
    """Return the parts of a file's path, by its URI as Spark has it."""
    return PurePosixPath(unquote(urlsplit(uri).path)).parts


def _walked(local: str) -> Iterator[tuple[_Directories, str]]:
    if not os.path.isdir(local):  # noqa: PTH112 - as text
        yield (), local
        return
    walked = set[str]()
    for directory, below, files in os.walk(local, followlinks=True):
        real = os.path.realpath(directory)
        below[:] = [] if real in walked else [name for name in below if not _is_hidden(name)]
        file = next((name for name in files if not _is_hidden(name)), None)
        if file is not None and real not in walked:
            yield PurePosixPath(os.path.relpath(directory, local)).parts, os.path.join(directory, file)  # noqa: PTH118
        walked.add(real)


def _is_hidden(name: str) -> bool:
    """Return whether Spark skips a name in a directory."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


# Columns of Parquet that Spark has no type for: TIMESTAMP(NANOS), the default of pandas and pyarrow.


_NANOS: Final = re.compile(r"TIMESTAMP\(NANOS,(true|false)\)")
_AS_LONG: Final = "spark.sql.legacy.parquet.nanosAsLong"


def read_parquet(
    spark: SparkSession, paths: Sequence[str], texts: Collection[str] = REQUEST_COLUMNS
) -> tuple[DataFrame, dict[str, bool]]:
    """Return the rows of Parquet files, and the columns of times in ns, which are BIGINT; True: in UTC.

    `texts`: columns that are text, also those in names of directories. If there are columns of times in ns, the
    session is set to read them. Errors are Spark's.
    """
    settings = reader_settings(spark, paths)

    def read() -> DataFrame:
        return spark.read.options(**settings).parquet(*paths)

    frame, nanos = _read_parquet(spark, read)
    return names_as_text(spark, frame, read, texts), nanos


def _read_parquet(spark: SparkSession, read: Callable[[], DataFrame]) -> tuple[DataFrame, dict[str, bool]]:
    try:
        frame = read()
        frame.schema  # noqa: B018 - with Spark Connect, it is analyzed only now
    except AnalysisException as error:
        if _NANOS.search(str(error)) is None:
            raise
        spark.conf.set(_AS_LONG, value=True)
        frame = read()
    is_set = spark.conf.get(_AS_LONG, "false") == "true"  # by this, or by the user
    has_longs = any(isinstance(field.dataType, LongType) for field in frame.schema.fields)
    return frame, _nanos_columns(spark, frame.inputFiles()) if is_set and has_longs else {}


_INFER_PARTITIONS: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"


def names_as_text(
    spark: SparkSession, frame: DataFrame, read: Callable[[], DataFrame], texts: Collection[str] = REQUEST_COLUMNS
) -> DataFrame:
    """Return the frame, or, if one of these columns is no text, `read` it with names of directories as text.

    Spark would take the topic of `resourceName=007` for the number 7.
    """
    kinds = {field.name.lower(): field.dataType for field in frame.schema.fields}
    if all(isinstance(kinds.get(name.lower(), StringType()), StringType) for name in texts):
        return frame
    before = spark.conf.get(_INFER_PARTITIONS)
    spark.conf.set(_INFER_PARTITIONS, value=False)
    if is_connect(spark):  # each job plans the frame anew: the setting stays
        return read()
    try:
        return read()
    finally:
        spark.conf.set(_INFER_PARTITIONS, str(before))


def _nanos_columns(spark: SparkSession, files: Sequence[str]) -> dict[str, bool]:
    """Return the columns in ns of the first file by its path, from which Spark takes the schema of all."""
    columns: dict[str, bool] = {}
    first = sorted(files, key=unquote)[:1]  # in no order
    if is_connect(spark):
        for file in first:
            schema = _footer_schema(spark, unquote(file))
            nanos = (field for field in schema if pa.types.is_timestamp(field.type) and field.type.unit == "ns")
            columns |= {field.name: field.type.tz is not None for field in nanos}
        return columns
    jvm: Any = spark.sparkContext._jvm
    for file in first:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        source = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, configuration)
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(source)
        try:
            schema = reader.getFileMetaData().getSchema()
            for at in range(schema.getFieldCount()):
                field = schema.getType(at)
                if match := _NANOS.search(str(field.toString())):
                    columns[str(field.getName())] = match[1] == "true"
        finally:
            reader.close()
    return columns


_FOOTER_END: Final = 8
"""Bytes of the length of a footer, and of the magic that ends a file."""


def _footer_schema(spark: SparkSession, file: str) -> pa.Schema:
    """Return the schema in the footer of a Parquet file of a server of Spark Connect."""
    length = int.from_bytes(server_files.read_end(spark, file, _FOOTER_END)[:4], "little")
    end = server_files.read_end(spark, file, length + _FOOTER_END)
    return pq.read_schema(pa.BufferReader(end[-4:] + end))
