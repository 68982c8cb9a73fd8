"""Reading a log as a Spark table vs. a data source that returns prebuilt Arrow batches of the same rows."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.pipeline.source import register
from aclog.pipeline.source.directory import Query, plan, read_options, read_range
from aclog.pipeline.source.rows import LOG_SCHEMA
from benchmarks import shapes
from benchmarks.report import Row

LEAST_RATIO = 0.5
"""Target: half the rows/s of the prebuilt batches."""

_RECORDS_A_BATCH = 500
_ROUNDS = 3


class PrebuiltSource(DataSource):
    """The baseline: the same rows, batches and partitions as the log's, from memory-mapped Arrow files.

    A task only reads an Arrow stream; nothing is decoded.
    """

    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> StructType:
        return from_arrow_schema(LOG_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - all columns
        return _PrebuiltReader(sorted(Path(self.options["path"]).glob("*.arrow")))


class _PrebuiltReader(DataSourceReader):
    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(path) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(partition.value)) as file, pa.ipc.open_file(file) as stream:
            for number in range(stream.num_record_batches):
                yield stream.get_batch(number)


def make_log(directory: Path, records: int) -> None:
    """Write a log with this many ACLs."""
    with open_log(directory, create=True) as log:
        pending = []
        values: list[bytes] = []
        for number, rule in enumerate(shapes.million(records)):
            values.append(encode_record(shapes.record(shapes.with_id(number, rule))))
            if len(values) == _RECORDS_A_BATCH:
                pending.append(log.append(values, timestamp=1_700_000_000_000 + len(pending)))
                values = []
        if values:
            pending.append(log.append(values, timestamp=1_700_000_000_000))
        pending[-1].result(120)


def prebuild(log: Path, directory: Path) -> int:
    """Write the rows of a log as Arrow files, one per partition; return the number of rows."""
    directory.mkdir()
    query, rows = Query(), 0
    for number, place in enumerate(plan(read_options({"path": str(log)}), query.selection)):
        with pa.ipc.new_file(directory / f"{number:06d}.arrow", LOG_SCHEMA) as sink:
            for batch in read_range(place, query):
                sink.write_batch(batch)
                rows += len(batch)
    return rows


def run(spark: SparkSession, scratch: Path, records: int) -> Iterator[Row]:
    """Read both alternately into the noop sink; the best of three rounds counts, after one warm-up."""
    log, prebuilt = scratch / "log", scratch / "prebuilt"
    make_log(log, records)
    rows = prebuild(log, prebuilt)
    register(spark)
    spark.dataSource.register(PrebuiltSource)
    reads: dict[str, Callable[[], DataFrame]] = {
        "aclog": lambda: spark.read.format("aclog").load(str(log)),
        "prebuilt": lambda: spark.read.format("prebuilt").load(str(prebuilt)),
    }
    best = dict.fromkeys(reads, float("inf"))
    for number in range(_ROUNDS + 1):
        for name, read in reads.items():
            began = time.perf_counter()
            read().write.format("noop").mode("overwrite").save()
            if number:
                best[name] = min(best[name], time.perf_counter() - began)
    yield Row(
        what=f"read a log of {rows:,} records into Spark vs. prebuilt Arrow batches",
        ours=rows / best["aclog"],
        theirs=rows / best["prebuilt"],
        unit="rows/s",
        target=LEAST_RATIO,
        more_is_better=True,
    )
