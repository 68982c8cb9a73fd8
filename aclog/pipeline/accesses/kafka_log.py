"""Text files of accesses: lines, times, kafka-authorizer.log and audit events."""

import os
import re
import secrets
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, tzinfo
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, StringType, TimestampNTZType, TimestampType

from aclog.authorizer import audit
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.session import cause, own_error
from aclog.snapshots.moments import parse_zone
from aclog.usage.accesses.access_batch import FIRST_SECOND, LAST_SECOND, ReadLines, between, between_from
from aclog.usage.accesses.access_log import Part, is_compressed, opened
from aclog.usage.accesses.brokers import broker_of_line, broker_of_path
from aclog.usage.accesses.events import read_mixed
from aclog.usage.accesses.lines import DAMAGED, LONGEST_LINE, skip
from aclog.usage.accesses.parquet import EARLIEST_COLUMN, LATEST_COLUMN
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

# Times in access logs: local times of a named zone, ISO 8601, and milliseconds.


_YEAR_1, _YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999
"""The range of a TIMESTAMP, in ms since 1970: Spark's arithmetic and Parquet readers fail beyond it."""

_LOCAL = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?\z"
_WITH_ZONE = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}:?\d{2})\z"
_INTEGER = r"^-?\d{1,15}\z"


def check_timezone(spark: SparkSession, timezone: str) -> str:
    """Return the name of a zone that Spark knows (UTC, Europe/Berlin, +02:00).

    Raises:
        ConfigError: unknown zone.

    """
    sample = F.lit(f"2026-01-01 00:00:00 {timezone}").try_cast("timestamp")
    row = bool(timezone.strip()) and spark.range(1).select(sample.isNotNull().alias("known")).first()
    if not row or not row[0]:
        raise ConfigError(f"unknown timezone {timezone[:80]!r}: expected UTC, an offset such as +02:00, or a name "
                          "such as Europe/Berlin")  # fmt: skip
    return timezone.strip()


def local_time(text: Column, timezone: str) -> Column:
    """Return the TIMESTAMP of `2026-11-21 10:00:00,123` in this zone, null for an invalid date or time.

    The text must have no zone, and the session's zone must be UTC, as set by `open_session`.

    When clocks are set back, a repeated local time is the earlier one; when they are set forward, a skipped local time
    is read with the offset from before the change.
    """
    # Appending the zone to the text would make Spark look it up in every row, which doubles the cost.
    return F.to_utc_timestamp(F.translate(text, ",", ".").try_cast("timestamp"), timezone)


def any_time(value: Column, kind: DataType, timezone: str) -> Column:
    """Return the TIMESTAMP of a column of this type: TIMESTAMP, integer (ms since 1970), or text (ISO 8601 or ms).

    A text without an offset and a TIMESTAMP_NTZ are local to `timezone`. Null for any other text.

    Raises:
        ConfigError: the column has another type.

    """
    if isinstance(kind, TimestampType):
        return value
    if isinstance(kind, TimestampNTZType):
        return local_time(value.cast("string"), timezone)
    if isinstance(kind, IntegralType):
        return of_millis(value)
    if isinstance(kind, StringType):
        return (
            F.when(value.rlike(_LOCAL), local_time(value, timezone))
            .when(value.rlike(_WITH_ZONE), F.translate(value, ",", ".").try_cast("timestamp"))
            .when(value.rlike(_INTEGER), of_millis(value.try_cast("long")))
        )
    raise ConfigError(
        f"column timestamp is of type {kind.simpleString()}: expected a timestamp, ms as an integer, or text"
    )


def of_millis(value: Column) -> Column:
    """Return the TIMESTAMP of ms since 1970, null beyond the years 1 to 9999; some numbers count seconds."""
    millis = value.cast("long")
    seconds = value.between(FIRST_SECOND, LAST_SECOND)
    return F.when(seconds, F.timestamp_millis(millis * 1000)).when(
        value.between(_YEAR_1, _YEAR_9999), F.timestamp_millis(millis)
    )


def of_nanos(value: Column, timezone: str, *, adjusted: bool) -> Column:
    """Return the TIMESTAMP of ns since 1970, which are local to a zone unless they are `adjusted` to UTC.

    Smaller numbers, which would be ns of the years before Kafka, are of files with another schema than the first one,
    whose columns of times Spark reads as numbers too: in ms, or in us.
    """
    # decimals: a double cannot hold every number of ns
    micros = (value.cast("decimal(20,0)") / F.lit(1000).cast("decimal(4,0)")).cast("long")
    is_micros = value.between(_YEAR_1 * 1000, _YEAR_9999 * 1000 + 999)
    time = F.timestamp_micros(F.when(is_micros, value).otherwise(micros))
    time = time if adjusted else F.to_utc_timestamp(time, timezone)
    return F.when(value.between(_YEAR_1, _YEAR_9999), of_millis(value)).otherwise(time)


# Lines of byte ranges of files: exactly these, even if lines are appended meanwhile.


_TASK_BYTES: Final = 32 << 20
_BATCH_BYTES: Final = 4 << 20
_BLOCK: Final = 1 << 16


@frozen(kw_only=True)
class LineRange:
    """Bytes of a file (decompressed) that are whole lines."""

    path: str
    name: str
    """The file's URI."""
    start: int
    end: int


def lines_of(spark: SparkSession, parts: Iterable[Part]) -> DataFrame:
    """Return `value` and `file` of every new line, as `read_lines` does of whole files."""
    return _lines_of_ranges(spark, [each for part in parts for each in _ranges(part)])


def lines_of_files(spark: SparkSession, files: Mapping[str, tuple[str, int]]) -> DataFrame | None:
    """Return the same of whole files by name, with their paths and sizes, each to the end of the line that ends there.

    None if only Spark can read one: this process has no right to, or does not know its packing.

    Raises:
        FileNotFoundError: one was removed.

    """
    try:
        ranges = [each for name, (path, size) in files.items() for each in _ranges_of_file(path, name, size)]
    except (ConfigError, PermissionError):
        return None
    return _lines_of_ranges(spark, ranges)


def _lines_of_ranges(spark: SparkSession, ranges: Sequence[LineRange]) -> DataFrame:
    tasks = _tasks(ranges)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for number in numbers:
                for each in tasks[number]:
                    yield from _batches(each)

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, "value string, file string")


def _ranges(part: Part) -> Iterator[LineRange]:
    content = part.content
    if is_compressed(content.path):
        yield LineRange(path=content.path, name=content.name, start=part.start, end=content.length)
    else:
        with Path(content.path).open("rb") as file:
            yield from _cut(file, LineRange(path=content.path, name=content.name, start=part.start, end=content.length))


def _ranges_of_file(path: str, name: str, size: int) -> Iterator[LineRange]:
    if is_compressed(path):
        yield LineRange(path=path, name=name, start=0, end=sys.maxsize)
    elif size:
        with Path(path).open("rb") as file:
            end = _line_end(file, size, os.fstat(file.fileno()).st_size)
            yield from _cut(file, LineRange(path=path, name=name, start=0, end=end))


def _cut(file: BinaryIO, whole: LineRange) -> Iterator[LineRange]:
    """Cut a range at line ends; a compressed file can only be read from its start, so it stays whole."""
    start = whole.start
    while start < whole.end:
        end = _line_end(file, min(start + _TASK_BYTES, whole.end), whole.end)
        yield evolve(whole, start=start, end=end)
        start = end


def _line_end(file: BinaryIO, position: int, end: int) -> int:
    """Return the end of the line that the byte before `position` is in."""
    at = position - 1
    while at < end:
        block = os.pread(file.fileno(), _BLOCK, at)
        position_in_block = block.find(b"\n")
        if position_in_block >= 0 or not block:
            return min(at + position_in_block + 1, end) if block else end
        at += len(block)
    return end


def _tasks(ranges: Sequence[LineRange]) -> list[list[LineRange]]:
    """Return the ranges of each task: small ones share a task."""
    tasks: list[list[LineRange]] = []
    size = _TASK_BYTES
    for each in ranges:
        if size + each.end - each.start > _TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(each)
        size += each.end - each.start
    return tasks


def _batches(part: LineRange) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a range in bounded memory. Raises ConfigError: a packed file is damaged."""
    rest = b""
    for block in _blocks(part):
        lines = (rest + block).split(b"\n")
        # of a line that is too long a beginning is kept by which it is known as such
        rest = lines.pop()[: LONGEST_LINE + 1]
        yield from _as_batches(lines, part.name)
    if rest:
        yield from _as_batches([rest], part.name)


def _blocks(part: LineRange) -> Iterator[bytes]:
    """Yield the bytes of a range, without a byte order mark; fewer if the file was truncated, as its pin shows."""
    remaining, at_start = part.end - part.start, not part.start
    try:
        with opened(part.path) as file:
            if file.seekable():
                file.seek(part.start)
            else:
                skip(file, part.start)
            while remaining and (block := file.read(min(_BATCH_BYTES, remaining))):
                remaining -= len(block)
                yield block.removeprefix(BOM_UTF8) if at_start else block
                at_start = False
    except (FileNotFoundError, PermissionError):
        raise
    except DAMAGED as error:
        raise ConfigError(f"{part.path}: not a complete packed file: {error}") from error


def _as_batches(lines: Iterable[bytes], name: str) -> Iterator[pa.RecordBatch]:
    rest = iter(lines)
    while some := list(islice(rest, _BLOCK)):
        data = pa.array(some, pa.binary())
        # text in Spark need not be UTF-8, and the reader of the lines reports invalid text: no check here
        buffers: list[Any] = data.buffers()
        values: Any = pa.StringArray.from_buffers(len(some), buffers[1], buffers[2])
        yield pa.RecordBatch.from_arrays([values, pa.repeat(pa.scalar(name), len(some))], names=["value", "file"])


# Text files as input: their lines, and Spark's errors about them in one line.


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return `value` and `file` of every line of files, directories (recursively) and globs; `.gz` is decompressed.

    Like everywhere in Spark, files in directories are skipped if their names begin with `.` or `_`.

    Raises:
        ConfigError: no file is found, or a directory cannot be listed.

    """
    with readable_errors(paths):
        # by default Spark also splits lines at a carriage return, which a client may put into a resource name
        reader = spark.read.option("lineSep", "\n").option("recursiveFileLookup", value=True)
        frame = reader.text(list(paths))
        check_found(frame, paths)
        return frame.select("value", F.col("_metadata.file_path").alias("file"))


class NoFilesError(ConfigError):
    """There is nothing to read: a path that does not exist, or a directory without files."""


def check_found(frame: DataFrame, paths: Sequence[str]) -> None:
    """Raise NoFilesError if there is no file at all."""
    if not frame.inputFiles():
        raise NoFilesError(f"{', '.join(paths)}: no files to read (names that begin with `.` or `_` are skipped)")


@contextmanager
def readable_errors(paths: Sequence[str]) -> Iterator[None]:
    """Turn Spark's errors about input into ConfigErrors of one line that name the file."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise NoFilesError(f"{_path_in(str(error)) or ', '.join(paths)}: no such file or directory") from error
        raise ConfigError(f"{', '.join(paths)}: {cause(str(error))}") from error
    except (PySparkException, Py4JJavaError) as error:
        own = own_error(str(error))
        if own is not None:
            raise ConfigError(own) from error
        match = re.search(r"reading file (\S+?)\.?(?:\s|$)", str(error))
        where = match[1] if match else ", ".join(paths)
        raise ConfigError(f"{where}: {cause(str(error))}") from error


def _path_in(text: str) -> str | None:
    match = re.search(r"does not exist: (?:file:)?(\S+?)\.(?:\s|$)", text)
    return match[1] if match else None


# JSON lines, parsed strictly by Spark: one object per line, no duplicate keys, nothing after the object.


def parse_lines(lines: DataFrame) -> DataFrame:
    """Return `file`, `line`, `object` (VARIANT, null if not one JSON object) and `reason` of each line."""
    # Spark's parser ignores text after the first value. So each line is parsed as the first item of a list whose
    # second item is a random mark, which the line cannot contain: if the mark is there, nothing follows the object.
    mark = secrets.token_hex(16)
    wrapped = F.concat(F.lit("["), F.col("value"), F.lit(f',"{mark}"]'))
    valid = F.is_valid_utf8("value")
    listed = lines.select("file", F.col("value").alias("line"), F.when(valid, F.try_parse_json(wrapped)).alias("list"))
    fits = F.octet_length("line") <= LONGEST_LINE
    whole = fits & (F.expr("try_variant_get(list, '$[1]', 'string')") == mark) & F.col("line").rlike(r"^\s*\{")
    return listed.select(
        "file",
        "line",
        F.when(whole, F.expr("try_variant_get(list, '$[0]', 'variant')")).alias("object"),
        F.when(~fits, audit.Reason.TOO_LONG)
        .when(F.col("line").rlike(r"^\s*\z"), audit.Reason.BLANK)
        .when(~F.is_valid_utf8("line"), audit.Reason.NOT_UTF8)
        .when(~F.coalesce(whole, F.lit(False)), audit.Reason.MALFORMED)
        .alias("reason"),
    )


def within(variant: str, key: str) -> Column:
    """Return the value of a key of an object as VARIANT, or null."""
    return F.expr(f"try_variant_get({variant}, '{_path(key)}', 'variant')")


def text(variant: str, key: str, *, under: str | None = None) -> Column:
    """Return the value of a key if it is a string, else null."""
    path = _path(key) if under is None else f"$.{under}.{key}"
    kind = f"schema_of_variant(try_variant_get({variant}, '{path}', 'variant'))"
    return F.when(F.expr(kind) == "STRING", F.expr(f"try_variant_get({variant}, '{path}', 'string')"))


def number(variant: str, key: str) -> Column:
    """Return the value of a key as LONG if it is an integer, else null."""
    path = _path(key)
    kind = f"schema_of_variant(try_variant_get({variant}, '{path}', 'variant'))"
    return F.when(F.expr(kind) == "BIGINT", F.expr(f"try_variant_get({variant}, '{path}', 'bigint')"))


def _path(key: str) -> str:
    r"""Return the JSON path of one key, escaped for a SQL string literal."""
    quoted = key.replace("\\", "\\\\").replace("'", "\\'")
    return f'$["{quoted}"]'


# Audit events of aclog's authorizer (aclog/authorizer/audit_event.avsc): Avro files, and JSON lines.


_AVRO: Final = "org.apache.spark.sql.avro.AvroFileFormat"
"""Spark includes the class, but only knows the short name `avro` if the Avro connector's jar is present."""


def event_schema() -> str:
    """Return the Avro schema of an event, as JSON."""
    return files("aclog.authorizer").joinpath("audit_event.avsc").read_text(encoding="utf-8")


def events_of_avro(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Rows for `validate_rows` from Avro files written with this version of the schema, or another compatible one.

    Raises:
        ConfigError: no file is found. A file that is not Avro fails the job.

    """
    with readable_errors(paths):
        reader = spark.read.format(_AVRO).option("avroSchema", event_schema()).option("recursiveFileLookup", value=True)
        events = reader.load(list(paths))
        check_found(events, paths)
    rule = {name: F.col(f"rule.{name}") for name in ACL_FIELDS}
    return events.select(
        *REQUEST_COLUMNS,
        "timestamp",
        "patternType",
        F.col("result").alias("loggedDecision"),
        _rule_text(F.col("basis"), F.col("rule").isNotNull(), rule).alias("loggedRule"),
        F.nullif(F.col("request"), F.lit("")).alias("request"),
        F.col("resourceReferenceCount"),
        _level(F.col("logged"), F.col("result")).alias("logLevel"),
        F.col("_metadata.file_path").alias("file"),
        F.to_json(F.struct(*events.columns)).alias("line"),
        F.lit(None).cast("string").alias("reason"),
        F.lit(None).cast("string").alias("detail"),
    )


def events_of_json(lines: DataFrame) -> DataFrame:
    """Rows for `validate_rows` from JSON lines: bare, or under the key `audit` as in a node's JSON log."""
    whole = parse_lines(lines)
    own = F.coalesce(within("object", "audit"), F.when(within("object", "logger").isNull(), F.col("object")))
    rows = whole.select("*", own.alias("event"))
    stated = rows.select(
        "*",
        text("event", "result").alias("loggedDecision"),
        of_millis(number("event", "timestamp")).alias("timestamp"),
        F.coalesce(F.expr("try_variant_get(event, '$.logged', 'boolean')"), F.lit(True)).alias("logged"),
    )
    rule = {name: text("event", name, under="rule") for name in ACL_FIELDS}
    return stated.select(
        *(text("event", name).alias(name) for name in REQUEST_COLUMNS),
        "timestamp",
        text("event", "patternType").alias("patternType"),
        "loggedDecision",
        _rule_text(text("event", "basis"), rule["resourceType"].isNotNull(), rule).alias("loggedRule"),
        F.nullif(text("event", "request"), F.lit("")).alias("request"),
        number("event", "resourceReferenceCount").try_cast("int").alias("resourceReferenceCount"),
        _level(F.col("logged"), F.col("loggedDecision")).alias("logLevel"),
        "file",
        "line",
        F.coalesce(
            F.col("reason"),
            F.when(F.col("event").isNull(), audit.Reason.OTHER_LOGGER),
            F.when(F.col("loggedDecision").isNull(), audit.Reason.BAD_DECISION),
            F.when(F.col("timestamp").isNull(), audit.Reason.BAD_TIMESTAMP),
        ).alias("reason"),
        F.when(F.col("event").isNotNull() & F.col("timestamp").isNull(), "no timestamp in ms since 1970").alias(
            "detail"
        ),
    )


def _rule_text(basis: Column, has_rule: Column, rule: dict[str, Column]) -> Column:
    """Return the rule as in the audit line."""
    inside: list[Column] = []
    for place, name in enumerate(ACL_FIELDS):
        inside += [F.lit(f"{', ' if place else ''}{name}="), rule[name]]
    return F.when(has_rule, F.concat(F.lit("MatchingAcl(acl=StandardAcl["), *inside, F.lit("])"))).otherwise(basis)


def _level(logged: Column, decision: Column) -> Column:
    """Return the level of the audit line (aclog.authorizer.audit.audit_level)."""
    return F.when(~logged, "TRACE").when(decision == "ALLOWED", "DEBUG").otherwise("INFO")


# The table of accesses and the table of rejects: columns, validation of rows, reasons for rejection.


TIMESTAMP: Final = "timestamp"
OPTIONAL_COLUMNS: Final = (
    "patternType",
    "loggedDecision",
    "loggedRule",
    "request",
    "resourceReferenceCount",
    "logLevel",
)
"""Columns that only some sources have, null for others. STRING, but resourceReferenceCount INT.

The logged decision and rule are those of the authorizer that logged the access; jobs add a `decision` and `rule`.
"""

ACCESS_COLUMNS: Final = (*REQUEST_COLUMNS, TIMESTAMP, *OPTIONAL_COLUMNS)
REJECT_COLUMNS: Final = ("file", "line", "reason", "detail")
"""The file of a reject, its text (up to LINE_LIMIT characters), a Reason, and a sentence."""
_PLACE_COLUMNS: Final = ("broker", EARLIEST_COLUMN, LATEST_COLUMN)
"""The broker that logged a reject, as its text or the path of its file names it, and the times between which it was
logged: null if unknown.
"""

_INTEGER_COLUMN = "resourceReferenceCount"
_TIME: Final = pa.timestamp("us", tz="UTC")
_TYPES: Final = {**dict.fromkeys((TIMESTAMP, EARLIEST_COLUMN, LATEST_COLUMN), _TIME), _INTEGER_COLUMN: pa.int32()}

ACCESS_SCHEMA: Final = pa.schema([(name, _TYPES.get(name, pa.string())) for name in ACCESS_COLUMNS])
REJECT_SCHEMA: Final = pa.schema([(name, _TYPES.get(name, pa.string())) for name in (*REJECT_COLUMNS, *_PLACE_COLUMNS)])

LINE_LIMIT: Final = 2000


DETAILS: Final = {
    audit.Reason.NOT_UTF8: "not UTF-8",
    audit.Reason.NO_HEAD: "no time and message of Kafka's authorizer: a stack trace, or the rest of a torn line",
    audit.Reason.TORN: "truncated: does not end with the logger's name in parentheses",
    audit.Reason.OTHER_LOGGER: "not from kafka.authorizer.logger",
    audit.Reason.OTHER_MESSAGE: "from kafka.authorizer.logger, but not about an access",
    audit.Reason.AMBIGUOUS: "can be read in more than one way: a part of the layout occurs in it twice",
    audit.Reason.UNREADABLE: "not in a format that an authorizer of Kafka writes",
    audit.Reason.BAD_TIMESTAMP: "not a time: expected ISO 8601, or ms since 1970",
    audit.Reason.MALFORMED: "malformed, or with a different number of columns",
    audit.Reason.TOO_LONG: f"longer than {LONGEST_LINE >> 20} MiB: not read",
}


def quoted(name: str) -> str:
    """Return a column's name for Spark's SQL: it may have dots and backticks."""
    return f"`{name.replace('`', '``')}`"


def enum_name(text: Column, names: Iterable[str]) -> Column:
    """Return AlterConfigs, alter_configs and ALTER_CONFIGS as ALTER_CONFIGS, null for an unknown name."""
    all_names = list(names)
    pairs = [F.lit(word) for name in all_names for word in (name.replace("_", ""), name)]
    other = F.try_element_at(F.create_map(*pairs), F.upper(F.translate(text, "_", "")))
    return F.when(text.isin(all_names), text).otherwise(other)  # the common case first: Spark searches maps linearly


def validate_rows(raw: DataFrame, *, files: bool = False) -> DataFrame:
    """Return rows with ACCESS_COLUMNS and REJECT_COLUMNS; `reason` is null if the row is an access.

    With `files`, `file` is also set for accesses.

    `raw` has ACCESS_COLUMNS as in the source (strings, a TIMESTAMP and an INT; enum names in any form), `file`, `line`,
    and `reason` and `detail`, which are null unless the source's reader has rejected the row.
    """
    named = raw.select(
        "*",
        enum_name(F.col("operation"), audit.known_names(AclOperation)).alias("_operation"),
        enum_name(F.col("resourceType"), audit.known_names(ResourceType)).alias("_type"),
        enum_name(F.col("patternType"), [PatternType.LITERAL.name]).alias("_pattern"),
        enum_name(F.col("loggedDecision"), ["ALLOWED", "DENIED"]).alias("_decision"),
    )
    checked = named.select("*", F.coalesce(F.col("reason"), _fault()).alias("_reason"))
    rejected = F.col("_reason").isNotNull() & (F.col("_reason") != audit.Reason.BLANK.value)
    return checked.select(
        *(F.col(name).cast("string") for name in ("principal", "host")),
        F.col("_operation").alias("operation"),
        F.col("_type").alias("resourceType"),
        F.col("resourceName").cast("string"),
        F.col(TIMESTAMP).cast("timestamp"),
        F.col("_pattern").alias("patternType"),
        F.col("_decision").alias("loggedDecision"),
        *(F.col(name).cast("string") for name in ("loggedRule", "request")),
        F.col("resourceReferenceCount").cast("int"),
        F.col("logLevel").cast("string"),
        F.col("file") if files else F.when(rejected, F.col("file")).alias("file"),
        F.when(rejected, F.substring(F.make_valid_utf8("line"), 1, LINE_LIMIT)).alias("line"),
        F.col("_reason").alias("reason"),
        F.when(rejected, F.coalesce(F.col("detail"), _detail())).alias("detail"),
    )


@frozen(kw_only=True)
class Split:
    """The rows of a batch, split; the three parts add up to all rows."""

    accesses: pa.RecordBatch
    """Rows of ACCESS_SCHEMA."""
    rejects: pa.RecordBatch
    """Rows of REJECT_SCHEMA."""
    files: "pa.Array[Any]"
    """The file of each access; null unless the source's reader adds it."""
    blanks: int


Splitter = Callable[[pa.RecordBatch], Split]
"""A function that splits the rows of a source; it is pickled to workers."""


def split_validated(batch: pa.RecordBatch) -> Split:
    """Split rows from `validate_rows` by their reason."""
    reasons = batch.column("reason")
    accesses = batch.filter(pc.is_null(reasons)).select(list(ACCESS_COLUMNS)).cast(ACCESS_SCHEMA)
    rejected = batch.filter(pc.not_equal(reasons, pa.scalar(audit.Reason.BLANK.value)))
    times = rejected.column(TIMESTAMP)
    rejects = _with_places(rejected.select(list(REJECT_COLUMNS)), times, times)
    blanks = batch.num_rows - accesses.num_rows - rejects.num_rows
    files = batch.column("file").filter(pc.is_null(reasons))
    return Split(accesses=accesses, rejects=rejects, files=files, blanks=blanks)


def _fault() -> Column:
    """Return the reason to reject the values of a row, or null."""
    missing = _empty("principal") | _empty("host") | _empty("operation") | _empty("resourceType")
    return (
        F.when(missing | F.col("resourceName").isNull(), audit.Reason.MISSING_VALUE)
        .when(F.col("_operation").isNull(), audit.Reason.BAD_OPERATION)
        .when(F.col("_type").isNull(), audit.Reason.BAD_RESOURCE_TYPE)
        .when(F.col("patternType").isNotNull() & F.col("_pattern").isNull(), audit.Reason.BAD_PATTERN_TYPE)
        .when(F.col("loggedDecision").isNotNull() & F.col("_decision").isNull(), audit.Reason.BAD_DECISION)
    )


def _empty(name: str) -> Column:
    return F.col(name).isNull() | (F.col(name) == "")


def _detail() -> Column:
    """Return the detail for a reason."""
    reason = F.col("_reason")
    detail = F.when(reason == audit.Reason.MISSING_VALUE, F.concat(F.lit("no "), _missing_names()))
    for bad, (name, expected) in audit.EXPECTED_VALUES.items():
        excerpt = F.substring(name, 1, audit.MAX_EXCERPT)
        detail = detail.when(reason == bad, F.concat(F.lit(f"{name} `"), excerpt, F.lit(f"`: expected {expected}")))
    for other, text in DETAILS.items():
        detail = detail.when(reason == other, F.lit(text))
    return detail


def _missing_names() -> Column:
    absent = [F.when(_empty(name), F.lit(name)) for name in REQUEST_COLUMNS if name != "resourceName"]
    absent.append(F.when(F.col("resourceName").isNull(), F.lit("resourceName")))
    return F.concat_ws(", ", *absent)


# Text logs in whole batches, by the reader of aclog.usage: lines of any layout, and objects with messages of Kafka.


Array: TypeAlias = "pa.Array[Any]"
_NAMES: Final = audit.ParsedLine._fields[:11]
"""The fields of ParsedLine that are columns of ACCESS_SCHEMA, in its order without the time."""


def lines_of_kafka(lines: DataFrame) -> DataFrame:
    """Return the input of `split_lines`: lines (`value`, `file`)."""
    return lines.select("value", "file")


def zone_of(timezone: str) -> tzinfo:
    """Return the zone of a name that Spark knows. Raises ConfigError: this system has no such zone."""
    try:
        return parse_zone(timezone)
    except ConfigError:
        try:
            return ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(f"timezone {timezone[:80]!r}: expected UTC, an offset such as +02:00, or a name such as "
                              "Europe/Berlin") from None  # fmt: skip


def split_lines(batch: pa.RecordBatch, zone: tzinfo = UTC) -> Split:
    """Split lines (`value`, `file`); `zone` applies to times without an offset.

    The layouts of a file are detected in each batch: lines in other layouts are read one by one.
    """
    texts: Any = batch.column("value").cast(pa.binary())
    is_long: Any = pc.greater(pc.binary_length(texts), pa.scalar(LONGEST_LINE))
    lines: Any = pc.binary_join_element_wise(pc.if_else(is_long, pa.scalar(b""), texts), b"", b"\n")
    columns, times = _read_lines(lines, batch.column("file"), zone)
    columns = _with_reason(columns, is_long, audit.Reason.TOO_LONG)
    reasons: Any = columns.column("reason")
    good = pc.is_null(reasons)
    fields = dict(zip((name for name in ACCESS_SCHEMA.names if name != TIMESTAMP), _NAMES, strict=True))
    arrays = [times if name == TIMESTAMP else columns.column(fields[name]) for name in ACCESS_SCHEMA.names]
    accesses = pa.RecordBatch.from_arrays(arrays, names=ACCESS_SCHEMA.names).filter(good).cast(ACCESS_SCHEMA)
    bad = pc.not_equal(reasons, pa.scalar(audit.Reason.BLANK.value))
    rejects = _rejects(
        [line.decode(errors="replace") for line in texts.filter(bad).to_pylist()],
        batch.column("file").filter(bad).to_pylist(),
        columns.filter(bad),
        _spans(times, batch.column("file"), bad) if pc.any(bad).as_py() else [],
    )
    blanks = len(lines) - accesses.num_rows - rejects.num_rows
    return Split(accesses=accesses, rejects=rejects, files=batch.column("file").filter(good), blanks=blanks)


def _with_reason(columns: pa.RecordBatch, where: Array, reason: audit.Reason) -> pa.RecordBatch:
    """Return the fields of lines with another `reason` for some."""
    reasons: Any = pc.if_else(where, pa.scalar(reason.value), columns.column("reason"))
    return columns.set_column(columns.schema.get_field_index("reason"), "reason", reasons)


def _read_lines(lines: Array, files: Array, zone: tzinfo) -> tuple[pa.RecordBatch, Array]:
    """Return the fields of each line, with `reason` and `detail`, and its time."""
    names = (*_NAMES, "detail")
    file_of: Any = files.dictionary_encode()
    reads = list[tuple[Array, ReadLines]]()
    for number in range(len(file_of.dictionary)):
        places: Any = pc.indices_nonzero(pc.equal(file_of.indices, pa.scalar(number)))
        some = lines if len(places) == len(lines) else lines.take(places)
        reads.append((places, read_mixed(some, zone, names)))
    if len(reads) == 1:
        return reads[0][1].columns, reads[0][1].times
    if not reads:
        read = read_mixed(lines, zone, names)
        return read.columns, read.times
    order = pc.array_sort_indices(pa.concat_arrays([places for places, _ in reads]))
    table = pa.Table.from_batches([read.columns for _, read in reads]).combine_chunks().take(order).combine_chunks()
    times = pa.concat_arrays([read.times for _, read in reads]).take(order)
    return table.to_batches()[0], times


def _spans(times: Array, files: Array, bad: Array) -> list[tuple[int | None, int | None]]:
    """Return the times between which rejects were logged: from their own or that of the line before to the next one."""
    micros, is_timed = np.asarray(times.cast(pa.int64()).fill_null(0)), np.asarray(pc.is_valid(times))
    codes: Any = files.dictionary_encode().indices
    of_file, spans = np.asarray(codes.fill_null(-1)), list[tuple[int | None, int | None]]()
    timed_places = {code: np.flatnonzero(is_timed & (of_file == code)) for code in np.unique(of_file).tolist()}
    for place in np.flatnonzero(np.asarray(bad.fill_null(False))).tolist():
        places = timed_places[int(of_file[place])]
        span_of = between_from if is_timed[place] else between
        spans.append(span_of(micros[places], int(np.searchsorted(places, place)))[1:])
    return spans


def _rejects(
    lines: Sequence[str], files: Sequence[Any], columns: pa.RecordBatch, spans: Sequence[tuple[int | None, int | None]]
) -> pa.RecordBatch:
    reasons, details = columns.column("reason").to_pylist(), columns.column("detail").to_pylist()
    texts = [
        _line_detail(str(reason), detail, line) for line, reason, detail in zip(lines, reasons, details, strict=True)
    ]
    values = [files, [line[:LINE_LIMIT] for line in lines], reasons, texts]
    arrays = [pa.array(each, pa.string()) for each in values]
    earliest, latest = (pa.array([span[at] for span in spans], pa.int64()).cast(_TIME) for at in (0, 1))
    return _with_places(pa.RecordBatch.from_arrays(arrays, names=list(REJECT_COLUMNS)), earliest, latest)


def _with_places(rejects: pa.RecordBatch, earliest: Array, latest: Array) -> pa.RecordBatch:
    """Return rejects (REJECT_COLUMNS) with their brokers and times: rows of REJECT_SCHEMA."""
    names: Any = zip(rejects.column("line").to_pylist(), rejects.column("file").to_pylist(), strict=True)
    brokers = [broker_of_line(line or "") or (None if file is None else broker_of_path(file)) for line, file in names]
    arrays: list[Any] = [*rejects.columns, pa.array(brokers, pa.string()), earliest, latest]
    return pa.RecordBatch.from_arrays(arrays, names=REJECT_SCHEMA.names).cast(REJECT_SCHEMA)


def _line_detail(reason: str, parsed: str | None, line: str) -> str:
    if reason == audit.Reason.BAD_TIMESTAMP and audit.is_headed(line):
        return f"no such time: {line[1 : audit.TIME_SIZE]}"
    return DETAILS.get(audit.Reason(reason)) or parsed or ""
