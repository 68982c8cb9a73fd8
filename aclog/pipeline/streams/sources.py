"""Streams of accesses: the files that appear in a directory of any store, and the records of a topic of Kafka."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.accesses.files import MALFORMED, listed_names, orc_frame, place_in, rows_of_table
from aclog.pipeline.accesses.ingestion import Kind, Layout
from aclog.pipeline.accesses.kafka_log import ACCESS_SCHEMA, NoFilesError, Splitter, readable_errors
from aclog.pipeline.accesses.table_formats import (
    check_loose,
    form_of_files,
    named_table,
    read_parquet,
    reader_settings,
)
from aclog.usage.accesses.access_batch import AccessForm
from aclog.usage.accesses.access_log import INCOMPLETE

TOPIC_SCHEME: Final = "kafka://"


def _names_without(beginning: str) -> str:
    """Return the glob of Hadoop for all names but those that begin so."""
    shorter = (beginning[:end] for end in range(1, len(beginning)))  # a name that ends before it differs
    others = (f"{beginning[:at]}[!{character}]*" for at, character in enumerate(beginning))
    return f"{{{','.join((*shorter, *others))}}}"


_FILES: Final = {
    "maxFileAge": "36500d",  # by default Spark skips files that are a week older than the newest one, without a notice
    "maxBytesPerTrigger": str(256 << 20),
    "pathGlobFilter": _names_without(f"{INCOMPLETE}."),  # not the marker of an incomplete output
}
_RECORDS: Final = {
    "kafka.isolation.level": "read_committed",
    "startingOffsets": "earliest",
    "failOnDataLoss": "true",
    "maxOffsetsPerTrigger": "1000000",
}
"""Defaults, which the caller's options override."""


@frozen(kw_only=True)
class AccessStream:
    """A stream of accesses, as its source returns them, and how their rows are read."""

    name: str
    """The path, the URI or the topic."""
    frame: DataFrame
    """The stream: lines (`value`, `file`), or the columns of files."""
    rows: Callable[[DataFrame], DataFrame]
    """Return the accesses of one batch, and the column MALFORMED, as `read_accesses` does."""
    layout: Layout | None = None
    """Of lines."""
    has_files: bool = True

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        place: str,
        *,
        kind: str | None = None,
        timezone: str = "UTC",
        columns: Mapping[str, str] = MappingProxyType({}),
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> "AccessStream":
        """Return the stream of a directory, a glob or a URI of files, or of `kafka://HOST:PORT[,...]/TOPIC`.

        `kind`, `timezone` and `columns` are as for `ingest`; without a kind, files of Parquet and ORC are detected, and
        lines are JSON. `options` are those of Spark's source, such as `kafka.security.protocol`.

        Raises:
            ConfigError: no file, a table of Delta or Iceberg, a kind that a stream cannot have, or the package of
                Kafka's source is missing.

        """
        if place.startswith(TOPIC_SCHEME):
            return _of_topic(spark, place, Layout.of(spark, _lines_kind(kind, place), timezone, columns), options)
        inner = place_in(spark, place)
        with readable_errors([inner]):
            if named_table(spark, inner) is not None:
                raise ConfigError(f"{inner}: a table of Delta, Iceberg or Hudi: expected files, or a topic of Kafka")
            form = _form(spark, inner) if kind is None else None
            if form in {AccessForm.PARQUET, AccessForm.ORC}:
                if timezone != "UTC" or columns:
                    raise ConfigError(
                        f"{inner}: --timezone and --column are of lines, and these are files of {form.value}: expected "
                        "times in UTC, and columns under their own names"
                    )
                return _of_tables(spark, inner, form, options)
            layout = Layout.of(spark, _lines_kind(kind, inner), timezone, columns)
            return _of_lines(spark, inner, layout, options)


def _lines_kind(kind: str | None, place: str) -> str:
    lines = (Kind.KAFKA_LOG, Kind.EVENTS_JSONL, Kind.JSONL)
    if kind is not None and kind not in set(Kind):
        raise ConfigError(f"unknown kind {kind!r}: expected one of {', '.join(lines)}")
    if kind is not None and kind not in lines:
        raise ConfigError(f"--kind {kind}: a stream of {place} has lines: expected {', '.join(lines)}, or no --kind")
    return kind or Kind.JSONL.value


def _form(spark: SparkSession, place: str) -> AccessForm:
    try:
        names = listed_names(spark, [place])
    except NoFilesError as error:
        raise ConfigError(
            f"{error}: a stream takes its columns from a file: expected one that exists, or lines and their --kind"
        ) from error
    form = form_of_files(spark, names, place)
    if form is not AccessForm.JSONL:
        check_loose(spark, names)
    return form


def _of_tables(spark: SparkSession, place: str, form: AccessForm | None, options: Mapping[str, str]) -> AccessStream:
    nanos: Mapping[str, bool] = {}
    if form is AccessForm.PARQUET:
        present, nanos = read_parquet(spark, [place])
    else:
        present = orc_frame(spark, place)
    depth = reader_settings(spark, [place], grows=True)
    reader = spark.readStream.format("parquet" if form is AccessForm.PARQUET else "orc")
    frame = reader.schema(present.schema).options(**{**_FILES, **depth, **options}).load(place)
    return AccessStream(name=place, frame=frame, rows=lambda batch: rows_of_table(batch, place, nanos))


def file_lines(spark: SparkSession, place: str, options: Mapping[str, str] = MappingProxyType({})) -> DataFrame:
    """Return the stream of the lines (`value`, `file`) of the files of a directory or a glob, in any store."""
    settings = {"lineSep": "\n", "recursiveFileLookup": "true", **_FILES, **options}
    frame = spark.readStream.options(**settings).text(place)
    return frame.select("value", F.col("_metadata.file_path").alias("file"))


def _of_lines(spark: SparkSession, place: str, layout: Layout, options: Mapping[str, str]) -> AccessStream:
    lines = file_lines(spark, place, options)
    return AccessStream(name=place, frame=lines, rows=partial(accesses_of, layout), layout=layout)


def _of_topic(spark: SparkSession, place: str, layout: Layout, options: Mapping[str, str]) -> AccessStream:
    servers, slash, topic = place.removeprefix(TOPIC_SCHEME).partition("/")
    if not slash or not topic or "/" in topic or not servers:
        raise ConfigError(f"{place}: expected {TOPIC_SCHEME}HOST:PORT[,HOST:PORT...]/TOPIC")
    stated = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    try:
        records = spark.readStream.format("kafka").options(**{**_RECORDS, **options, **stated}).load()
    except AnalysisException as error:
        if "data source: kafka" not in str(error).replace("`", ""):
            raise
        raise ConfigError(
            f"{place}: Spark reads a topic by a package: expected --packages "
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, with its newest version up to {spark.version} "
            "(docs/spark.md: Streams)"
        ) from error
    text = F.rtrim(F.coalesce(F.col("value").cast("string"), F.lit("")), F.lit("\n"))
    lines = records.select(text.alias("value"), F.concat_ws("/", F.lit(topic), "partition").alias("file"))
    return AccessStream(name=place, frame=lines, rows=partial(accesses_of, layout), layout=layout, has_files=False)


def accesses_of(layout: Layout, lines: DataFrame) -> DataFrame:
    """Return the accesses of lines, and for each unreadable line its text in the column MALFORMED."""
    split = layout.split

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Split one partition, on a worker."""
        for batch in batches:
            yield _with_malformed(split, batch)

    schema = from_arrow_schema(_SCHEMA)
    return layout.of_lines(lines).mapInArrow(run, schema)


_SCHEMA: Final = pa.schema([*ACCESS_SCHEMA, pa.field(MALFORMED, pa.string())])


def _with_malformed(split: Splitter, batch: pa.RecordBatch) -> pa.RecordBatch:
    parts = split(batch)
    good, bad = parts.accesses, parts.rejects.column("line")
    columns = [
        pa.concat_arrays([good.column(each.name), pa.nulls(len(bad), each.type)]).cast(each.type)
        for each in ACCESS_SCHEMA
    ]
    return pa.record_batch([*columns, pa.concat_arrays([pa.nulls(good.num_rows, pa.string()), bad])], schema=_SCHEMA)
