"""The input of jobs: accesses or requests as Parquet, from `ingest` or elsewhere, or as JSON lines."""

import re
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from aclog.authorizer.access_reject import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import TIMESTAMP, quoted
from aclog.pipeline.accesses.access_times import any_time, of_millis
from aclog.pipeline.accesses.json_lines import number, parse_lines, text, within
from aclog.pipeline.accesses.line_files import check_found, read_lines, readable_errors
from aclog.pipeline.accesses.pinned_files import PinnedFiles, listed, pinned
from aclog.usage.accesses.append_state import check_whole
from aclog.usage.accesses.parquet_parts import ParquetPart, plain_parts
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

MALFORMED: Final = "_malformed"
"""The column with the text of an unreadable line or row, whose other columns are null; null in readable rows."""

_SCALARS = {"string", "bigint", "double", "boolean", "timestamp", "date"}


def read_accesses(spark: SparkSession, path: str | Path) -> DataFrame:
    """Return the accesses of a Parquet file or directory, or of JSON lines (plain or `.gz`), and column `_malformed`.

    `path` may be the output directory of `ingest`. The columns of a request are STRING; `timestamp`, if present, is a
    TIMESTAMP (in the input: a TIMESTAMP, ms as an integer, or ISO 8601 text, in UTC unless it has an offset). Other
    columns are kept. Only blank lines are dropped: an unreadable line has its text in `_malformed`.

    Raises:
        ConfigError: no file is found, a column is missing, or an append to the directory has not been finished.

    """
    place = _place(path)
    with readable_errors([place]):
        return _from_lines(spark, place) if _is_json(spark, place) else _from_parquet(spark, place)


def pinned_accesses(spark: SparkSession, path: str | Path) -> tuple[DataFrame, PinnedFiles]:
    """Return the same with its files, so that a job can check at its end that all rows came from them."""
    return pinned(spark, [str(path)], lambda: read_accesses(spark, path))


def plain_accesses(spark: SparkSession, path: str | Path, most: int) -> tuple[list[ParquetPart], PinnedFiles] | None:
    """Return a table of accesses as parts of local Parquet files that workers can read on their own, and its files.

    None if the input is anything else, which `read_accesses` may still be able to read.
    """
    files = listed(spark, [_place(path)])
    if not all(map(_is_parquet, files.pins)) or not files.are_local:
        return None
    parts = plain_parts([place for place, _ in files.paths().values()], most)
    return None if parts is None else (parts, files)


def _place(path: str | Path) -> str:
    """Return where the table is. Raises ConfigError: an append to it has not been finished."""
    place = Path(path)
    check_whole(place.parent if place.name == "accesses" else place)
    return str(place / "accesses") if (place / "accesses").is_dir() else str(path)


def _is_parquet(name: str) -> bool:
    return name.endswith((".parquet", ".parq", ".pq"))


def _is_json(spark: SparkSession, place: str) -> bool:
    """Return whether no file has a name of a Parquet file."""
    # binaryFile lists the files as Spark would read them (globs, object stores), without opening any
    files = spark.read.format("binaryFile").option("recursiveFileLookup", value=True).load(place)
    check_found(files, [place])
    names = files.inputFiles()
    return not any(map(_is_parquet, names))


def _from_parquet(spark: SparkSession, place: str) -> DataFrame:
    frame = spark.read.parquet(place)
    if missing := [name for name in REQUEST_COLUMNS if name not in frame.columns]:
        raise ConfigError(f"{place}: no column {missing[0]!r}: expected {', '.join(REQUEST_COLUMNS)}")
    columns = {name: F.col(quoted(name)) for name in frame.columns if name != MALFORMED}
    columns |= {name: columns[name].cast("string") for name in REQUEST_COLUMNS}
    malformed = F.col(MALFORMED) if MALFORMED in frame.columns else F.lit(None).cast("string")
    kinds: dict[str, DataType] = {field.name: field.dataType for field in frame.schema.fields}
    if TIMESTAMP in columns:
        time = any_time(columns[TIMESTAMP], kinds[TIMESTAMP], "UTC")
        unread = columns[TIMESTAMP].isNotNull() & time.isNull()
        malformed = F.coalesce(
            malformed, F.when(unread, F.to_json(F.struct(*(each.alias(name) for name, each in columns.items()))))
        )
        columns[TIMESTAMP] = time
    return _blanked(frame.select(*(column.alias(name) for name, column in columns.items()), malformed.alias(MALFORMED)))


def _from_lines(spark: SparkSession, place: str) -> DataFrame:
    parsed = parse_lines(read_lines(spark, [place]))
    objects = parsed.filter(F.coalesce(F.col("reason") != Reason.BLANK.value, F.lit(True)))
    kinds = _columns(objects, place)
    values: dict[str, Column] = {name: text("object", name) for name in REQUEST_COLUMNS}
    bad = F.col("reason").isNotNull()
    for name in REQUEST_COLUMNS:
        bad |= values[name].isNull()
    if TIMESTAMP in kinds:
        given = F.nullif(F.expr("schema_of_variant(object:timestamp)"), F.lit("VOID"))
        values[TIMESTAMP] = F.coalesce(
            any_time(text("object", TIMESTAMP), StringType(), "UTC"), of_millis(number("object", TIMESTAMP))
        )
        bad |= given.isNotNull() & values[TIMESTAMP].isNull()
    for name, kind in kinds.items():
        values.setdefault(name, _other(name, kind))
    malformed = F.when(bad, F.make_valid_utf8("line")).alias(MALFORMED)
    return _blanked(objects.select(*(value.alias(name) for name, value in values.items()), malformed))


def _columns(objects: DataFrame, place: str) -> dict[str, DataType]:
    """Return the keys of all objects, and the narrowest type that holds all their values.

    A pass over the input of its own: types must be known when the query is planned.
    """
    row = objects.select(F.schema_of_variant_agg("object").alias("schema")).first()
    schema_text = str(row["schema"]) if row else "VOID"
    if not schema_text.startswith("OBJECT<"):
        return {}
    ddl = re.sub(r"\bOBJECT<", "STRUCT<", schema_text)
    schema = DataType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        return {}
    names = [field.name for field in schema.fields]
    if len({name.lower() for name in names}) != len(names):
        raise ConfigError(f"{place}: keys that differ in case only: {', '.join(sorted(names))[:300]}")
    return {field.name: field.dataType for field in schema.fields if field.name != MALFORMED}


def _other(name: str, kind: DataType) -> Column:
    """Return the value of a further key: with its type if that is a scalar, else as JSON."""
    value = within("object", name)
    simple = kind.simpleString()
    if simple in _SCALARS or simple.startswith("decimal"):
        return F.try_variant_get(value, "$", simple)
    return F.to_json(value)


def _blanked(frame: DataFrame) -> DataFrame:
    """Return the frame with nulls in malformed rows."""
    good = F.col(MALFORMED).isNull()
    names = [name for name in frame.columns if name != MALFORMED]
    return frame.select(*(F.when(good, F.col(quoted(name))).alias(name) for name in names), MALFORMED)
