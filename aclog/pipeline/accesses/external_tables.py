"""Tables of accesses from elsewhere: Parquet, CSV with a header, JSON lines; columns are found by name or mapping."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType

from aclog.authorizer.access_reject import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import ACCESS_COLUMNS, KNOWN, TIMESTAMP, quoted
from aclog.pipeline.accesses.access_times import any_time, of_millis
from aclog.pipeline.accesses.json_lines import number, parse_lines, text
from aclog.pipeline.accesses.line_files import check_found, readable_errors
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

_TORN: Final = "_torn"
"""The column for a line whose number of values differs from the header's (Spark's corrupt record)."""


def rows_of_parquet(spark: SparkSession, paths: Sequence[str], columns: Mapping[str, str], timezone: str) -> DataFrame:
    """Rows for `validate_rows` from Parquet files.

    Raises:
        ConfigError: no file is found, a file is not Parquet, or a column is missing.

    """
    with readable_errors(paths):
        frame = spark.read.parquet(*paths)
        check_found(frame, paths)
    line = F.to_json(F.struct(*map(quoted, frame.columns)))
    return _of_frame(frame, columns, line=line, timezone=timezone)


def rows_of_csv(spark: SparkSession, paths: Sequence[str], columns: Mapping[str, str], timezone: str) -> DataFrame:
    """Rows for `validate_rows` from CSV files with the same header; empty lines are skipped.

    Values may be in double quotes, but may not contain line ends. Raises as `rows_of_parquet`; a file with another
    header fails the job.
    """
    with readable_errors(paths):
        reader = spark.read.option("header", value=True).option("recursiveFileLookup", value=True)
        schema = reader.csv(list(paths)).schema
        whole = (
            reader.schema(deepcopy(schema).add(_TORN, "string"))
            .option("columnNameOfCorruptRecord", _TORN)
            .option("columnPruning", value=False)  # otherwise Spark does not check the number of values
            .option("enforceSchema", value=False)  # check the header of every file
        )
        frame = whole.csv(list(paths))
        check_found(frame, paths)
    line = F.coalesce(F.col(_TORN), F.to_json(F.struct(*map(quoted, schema.names))))
    reason = F.when(F.col(_TORN).isNotNull(), Reason.MALFORMED)
    return _of_frame(frame, columns, line=line, timezone=timezone, reason=reason)


def rows_of_json(lines: DataFrame, columns: Mapping[str, str], timezone: str) -> DataFrame:
    """Rows for `validate_rows` from JSON lines; a missing key is only known line by line."""
    theirs = {ours: columns.get(ours, ours) for ours in ACCESS_COLUMNS}
    _check_names(columns)
    objects = parse_lines(lines)
    texts = {ours: text("object", theirs[ours]) for ours in ACCESS_COLUMNS if ours != "resourceReferenceCount"}
    there = F.expr(f"try_variant_get(object, '$[\"{_escaped(theirs[TIMESTAMP])}\"]', 'variant')").isNotNull()
    found = objects.select(
        "file",
        "line",
        "reason",
        *(column.alias(ours) for ours, column in texts.items() if ours != TIMESTAMP),
        number("object", theirs["resourceReferenceCount"]).try_cast("int").alias("resourceReferenceCount"),
        F.coalesce(
            any_time(texts[TIMESTAMP], StringType(), timezone), of_millis(number("object", theirs[TIMESTAMP]))
        ).alias(TIMESTAMP),
        there.alias("_timed"),
    )
    return found.select(
        *ACCESS_COLUMNS,
        "file",
        "line",
        F.coalesce("reason", F.when(F.col("_timed") & F.col(TIMESTAMP).isNull(), Reason.BAD_TIMESTAMP)).alias("reason"),
        F.lit(None).cast("string").alias("detail"),
    )


def _of_frame(
    frame: DataFrame, columns: Mapping[str, str], *, line: Column, timezone: str, reason: Column | None = None
) -> DataFrame:
    places = _places(frame, columns)
    given = {ours: F.col(quoted(theirs)) for ours, theirs in places.items()}
    kinds: dict[str, DataType] = {field.name: field.dataType for field in frame.schema.fields}
    nothing = F.lit(None).cast("string")
    time = F.lit(None).cast("timestamp")
    if TIMESTAMP in places:
        time = any_time(given[TIMESTAMP], kinds[places[TIMESTAMP]], timezone)
    values = {name: given[name].cast("string") if name in given else nothing for name in (*REQUEST_COLUMNS, *KNOWN)}
    values["resourceReferenceCount"] = values["resourceReferenceCount"].try_cast("int")
    timed = given[TIMESTAMP].isNotNull() if TIMESTAMP in given else F.lit(False)
    found = frame.select(
        *(values[name].alias(name) for name in values),
        time.alias(TIMESTAMP),
        timed.alias("_timed"),
        F.col("_metadata.file_path").alias("file"),
        line.alias("line"),
        (nothing if reason is None else reason).alias("reason"),
    )
    bad_time = F.when(F.col("_timed") & F.col(TIMESTAMP).isNull(), Reason.BAD_TIMESTAMP)
    return found.select(
        *ACCESS_COLUMNS, "file", "line", F.coalesce("reason", bad_time).alias("reason"), nothing.alias("detail")
    )


def _places(frame: DataFrame, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the frame's columns by ours."""
    _check_names(columns)
    there = [name for name in frame.columns if name != _TORN]
    places = {ours: columns.get(ours, ours) for ours in ACCESS_COLUMNS if ours in columns or ours in there}
    wanted = {ours: columns.get(ours, ours) for ours in REQUEST_COLUMNS} | places
    if missing := [theirs for theirs in wanted.values() if theirs not in there]:
        raise ConfigError(f"no column {missing[0]!r} in the table, which has {', '.join(there)[:300]}")
    return places


def _check_names(columns: Mapping[str, str]) -> None:
    if unknown := [ours for ours in columns if ours not in ACCESS_COLUMNS]:
        raise ConfigError(
            f"no column {unknown[0]!r} in the table of accesses: expected one of {', '.join(ACCESS_COLUMNS)}"
        )


def _escaped(key: str) -> str:
    return key.replace("\\", "\\\\").replace("'", "\\'")
