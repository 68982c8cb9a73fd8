"""The start of a log's history: the empty state, or the oldest checkpoint that the log continues from."""

from pathlib import Path

import numpy as np
from attrs import frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import CheckpointError, LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.file_names import checkpoint_name, list_checkpoints
from aclog.metalog.log import LogReader
from aclog.pipeline.history.batch_times import ADD, has_unknown_code
from aclog.pipeline.history.rules import EVENT
from aclog.pipeline.source.schema import columns_of
from aclog.snapshots.image import Image
from aclog.snapshots.moments import READ_BYTES
from aclog.snapshots.rule_history import first_image

_COLUMNS = from_arrow_schema(
    columns_of(
        ("offset", "batch_offset", "batch_end_offset", "leader_epoch", "timestamp", "record_type", "acl", "damage")
    )
)


@frozen(kw_only=True)
class Start:
    """The state that replay starts from.

    `rules` are its ACLs (columns EVENT), None without a checkpoint; `unknown_codes`: whether some of them have codes
    without a name.
    """

    image: Image = Image.EMPTY
    rules: DataFrame | None = None
    unknown_codes: bool = False

    @property
    def offset(self) -> int:
        """Its end."""
        return self.image.end_offset

    @property
    def epoch(self) -> int:
        """That of its last batch."""
        return self.image.epoch

    @property
    def timestamp(self) -> int:
        """That of its last batch, in ms."""
        return self.image.timestamp


def read_log(spark: SparkSession, path: Path) -> DataFrame:
    """Return the table of a log directory or a checkpoint with the columns that a history needs: no others are decoded.

    All queries on it read what was committed when the first one was planned.
    """
    # With spark.sql.python.filterPushdown.enabled, Spark 4.3.0 plans a new read for each filter on a column of the
    # source, even though the source takes no filters: a segment removed by retention in between would go unnoticed.
    # So the columns that queries filter on are expressions over the source's.
    log = spark.read.format("aclog").schema(_COLUMNS).load(str(path))
    offset, kind = F.coalesce("offset", F.lit(-1)), F.coalesce("record_type", F.lit(""))
    batch = F.coalesce("batch_offset", F.lit(-1))
    return log.withColumns({"offset": offset, "batch_offset": batch, "record_type": kind})


def start_of(spark: SparkSession, directory: Path) -> Start:
    """Return where replay of a log directory starts.

    Raises:
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.

    """
    with open_reader(directory) as reader:
        if reader.start_offset() == 0:
            return Start()
        image = first_image(reader, list_checkpoints(directory))
    path = directory / checkpoint_name(image.end_offset, image.epoch)
    rules = _rules(read_log(spark, path), image.end_offset)
    counted = rules.agg(F.count("id").alias("rules"), F.max(has_unknown_code()).alias("unknown")).first()
    if counted is None or counted.rules != len(image.acls):
        found = 0 if counted is None else counted.rules
        raise CheckpointError(f"{path}: {found} ACL records for {len(image.acls)} ACLs: expected no removals")
    return Start(image=image, rules=rules, unknown_codes=bool(counted.unknown))


def known_from(directory: Path | str) -> int:
    """Return the earliest time (ms) for which --as-of finds a state in a log: that of its first record.

    If the log begins at a checkpoint, it is the running maximum of timestamps at the checkpoint's end, including that
    of its last batch.

    Raises as `start_of`; also a LogError if the log has no record.
    """
    directory = Path(directory)
    with open_reader(directory) as reader:
        offset = reader.start_offset()
        if offset == 0:
            return _first_time(reader)
        image = first_image(reader, list_checkpoints(directory))
        latest, end = image.timestamp, min(image.end_offset, reader.high_watermark())
        while offset < end:
            batches, _ = scan_batches(reader.read(offset, READ_BYTES))
            before = batches.base_offset < end
            latest = max(latest, int(np.max(batches.max_timestamp[before])))
            offset = int(batches.base_offset[-1] + batches.record_count[-1])
        return latest


def _first_time(reader: LogReader) -> int:
    if reader.high_watermark() <= 0:
        raise LogError(f"{reader.name}: the log has no record: no access can be decided by the ACLs of its own time")
    batches, _ = scan_batches(reader.read(0, 1))  # a read returns at least one whole batch
    return int(batches.max_timestamp[0])


def _rules(checkpoint: DataFrame, end_offset: int) -> DataFrame:
    """Return the ACLs of a checkpoint as events, as if each had been added at the offset before its end."""
    return (
        checkpoint.where(F.col("record_type") == ADD)
        .select(
            "acl.*",
            F.lit(end_offset).cast("long").alias("first_seen_offset"),
            F.lit(end_offset - 1).cast("long").alias("offset"),
            F.lit(None).cast("timestamp").alias("at"),
            F.lit(None).cast("long").alias("visible_at"),
            F.lit(True).alias("adds"),
        )
        .select(*EVENT)
    )
