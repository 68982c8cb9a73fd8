"""Access logs of any store into a table of accesses and one of rejects, as files arrive: each line once."""

from collections.abc import Callable, Sequence
from functools import reduce

from attrs import field
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.pipeline.accesses.files import listed_names
from aclog.pipeline.accesses.ingestion import Counts, Layout, check_rejects, counts_of, split_rows
from aclog.pipeline.accesses.kafka_log import NoFilesError
from aclog.pipeline.accesses.tables import SCHEMAS
from aclog.pipeline.streams.batches import StreamOutput
from aclog.pipeline.streams.sources import file_lines


@define(kw_only=True)
class IngestedStream:
    """A stream of lines that are split into accesses and rejects, batch by batch."""

    spark: SparkSession
    paths: Sequence[str]
    layout: Layout
    output: StreamOutput
    report: Callable[[int, Counts], None]
    """Called after each batch; again if the batch is repeated after a kill."""
    max_reject_rate: float | None = None
    """Of one batch: a batch with more is not written, and ends the stream."""
    error: Exception | None = field(default=None, init=False)
    """Why a batch failed."""

    def start(self, *, interval: float = 10.0, to_end: bool = False) -> StreamingQuery:
        """Start or continue the stream; `to_end`: it ends once all present lines are written.

        Raises:
            ConfigError: files that are no lines, or a file that several paths name.

        """
        if not self.layout.is_lines:
            raise ConfigError(
                f"--kind {self.layout.kind.value}: a stream of another store has lines: expected kafka-log, "
                "events-jsonl or jsonl"
            )
        self._check_paths()
        lines = reduce(DataFrame.unionByName, [file_lines(self.spark, path) for path in self.paths])
        writer = lines.writeStream.foreachBatch(self._run).option("checkpointLocation", self.output.checkpoint)
        trigger = writer.trigger(availableNow=True) if to_end else writer.trigger(processingTime=f"{interval} seconds")
        return trigger.start()

    def _check_paths(self) -> None:
        """Refuse paths with the same file, which Spark would read once for each."""
        path_of: dict[str, str] = {}
        for at, path in enumerate(self.paths):
            if path in self.paths[:at]:
                raise ConfigError(f"{path}: named twice: its lines would be written twice")
            for name in self._files(path) if len(self.paths) > 1 else ():
                other = path_of.setdefault(name, path)
                if other != path:
                    raise ConfigError(
                        f"{name}: is in {other} and in {path}, so its lines would be written twice: expected paths "
                        "without common files"
                    )

    def _files(self, path: str) -> list[str]:
        try:
            return listed_names(self.spark, [path])
        except NoFilesError:
            return []

    def _run(self, batch: DataFrame, number: int) -> None:
        try:
            self.report(number, self._write(batch, number))
        except Exception as error:
            self.error = error  # what Spark reports has its text, and the traceback of two languages
            raise

    def _write(self, batch: DataFrame, number: int) -> Counts:
        rows = split_rows(self.layout.of_lines(batch, files=True), self.layout.split).persist(StorageLevel.DISK_ONLY)
        try:
            counts = counts_of(rows)
            check_rejects(counts, self.max_reject_rate)
            for table in SCHEMAS:
                with self.output.published(rows.where(F.col(table).isNotNull()).select(f"{table}.*"), number, table):
                    pass
        finally:
            rows.unpersist()
        return counts
