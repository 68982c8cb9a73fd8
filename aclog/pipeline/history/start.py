"""Where the history of a log starts: at nothing, or at the oldest checkpoint that the log goes on from."""

from pathlib import Path

from attrs import frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import CheckpointError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.file_names import checkpoint_name, list_checkpoints
from aclog.pipeline.history.batch_times import ADD, has_unknown_code
from aclog.pipeline.history.rules import EVENT
from aclog.pipeline.source.schema import columns_of
from aclog.snapshots.moments import READ_BYTES
from aclog.snapshots.rule_history import first_image

_COLUMNS = from_arrow_schema(
    columns_of(("offset", "batch_offset", "leader_epoch", "timestamp", "record_type", "acl", "damage"))
)


@frozen(kw_only=True)
class Start:
    """The state that replay starts from: `offset` is its end, `epoch` and `timestamp` (ms) those of its last batch.

    `rules` are those that stand (columns EVENT), None without a checkpoint; `unknown_codes`: whether some of them have
    codes that this Kafka has no name for.
    """

    offset: int = 0
    epoch: int = 0
    timestamp: int = -1
    rules: DataFrame | None = None
    unknown_codes: bool = False


def read_log(spark: SparkSession, path: Path) -> DataFrame:
    """The table of a log directory, or of a checkpoint, as far as the history needs it: no more is decoded.

    Every query of it reads what was committed at the first one. Where spark.sql.python.filterPushdown.enabled is set,
    Spark 4.3.0 plans the reading anew for each filter on a column, though the source takes none, and a segment that
    retention removed meanwhile would be missed without a word. So what is filtered on is none of the source's columns.
    """
    log = spark.read.format("aclog").schema(_COLUMNS).load(str(path))
    offset, kind = F.coalesce("offset", F.lit(-1)), F.coalesce("record_type", F.lit(""))
    batch = F.coalesce("batch_offset", F.lit(-1))
    return log.withColumns({"offset": offset, "batch_offset": batch, "record_type": kind})


def start_of(spark: SparkSession, directory: Path) -> Start:
    """Where replay of a log directory starts.

    Raises:
        LogError: no log is there, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no whole checkpoint reaches its start.

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
        raise CheckpointError(f"{path}: {found} records of ACLs for {len(image.acls)} ACLs: expected no removals")
    return Start(
        offset=image.end_offset,
        epoch=image.epoch,
        timestamp=image.timestamp,
        rules=rules,
        unknown_codes=bool(counted.unknown),
    )


def known_from(directory: Path | str) -> int | None:
    """The ms from which on `--as-of TIME` finds a state in a log; None where the log begins at offset 0.

    That is the running maximum of timestamps at the end of the first checkpoint, that of its last batch included.

    Raises as `start_of`.
    """
    directory = Path(directory)
    with open_reader(directory) as reader:
        offset = reader.start_offset()
        if offset == 0:
            return None
        image = first_image(reader, list_checkpoints(directory))
        latest, end = image.timestamp, min(image.end_offset, reader.high_watermark())
        while offset < end:
            batches, _ = scan_batches(reader.read(offset, READ_BYTES))
            before = batches.base_offset < end
            latest = max(latest, int(batches.max_timestamp[before].max()))
            offset = int(batches.base_offset[-1] + batches.record_count[-1])
        return latest


def _rules(checkpoint: DataFrame, end_offset: int) -> DataFrame:
    """The rules of a checkpoint, as if each had been added just before its end."""
    return (
        checkpoint.where(F.col("record_type") == ADD)
        .select(
            "acl.*",
            F.lit(end_offset).cast("long").alias("first_seen_offset"),
            F.lit(end_offset - 1).cast("long").alias("offset"),
            F.lit(None).cast("timestamp").alias("at"),
            F.lit(None).cast("long").alias("shown"),
            F.lit(True).alias("adds"),
        )
        .select(*EVENT)
    )
