"""The history of ACLs on Spark: one row per ACL and interval in which it was in force, as the applier has it.

The table of the log (`spark.read.format("aclog")`) is read twice: once for what the driver must know (transaction
markers, and the running maximum of timestamps per range of offsets), once for the ACLs. What is collected on the driver
grows with the number of transactions and of ranges (65,536 offsets each), not of ACLs. Only if the log begins at a
checkpoint, the driver reads that checkpoint as a whole as well, to check that it is complete and valid.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aclog.metalog.errors import ReplayError
from aclog.pipeline.history.batch_times import has_unknown_code
from aclog.pipeline.history.events import timed_events
from aclog.pipeline.history.first_pass import first_pass
from aclog.pipeline.history.rules import COLUMNS, first_contradiction, rules_of
from aclog.pipeline.history.start import known_from
from aclog.snapshots.rule_history import history as replayed

__all__ = ["contradiction", "contradictions_raised", "history", "intervals", "known_from"]

_REFUSED = "[USER_RAISED_EXCEPTION]"
"""Spark's error class when raise_error() fails a job: here, a contradiction in the history."""


def history(spark: SparkSession, directory: Path | str) -> DataFrame:
    """Return one row per ACL and interval in which it was in force, including ACLs of the log's first checkpoint.

    Columns: those of `aclog acls list --format jsonl`, first_seen_offset, added_offset, added_at, removed_offset,
    removed_at. Offsets are those of records, times those of their batches; removed_* are null while in force. If the
    log begins at a checkpoint, the ACLs in it have its end as first_seen_offset, and added_* are null. Raises as
    `intervals`.
    """
    return intervals(spark, directory).select(*COLUMNS)


def intervals(spark: SparkSession, directory: Path | str) -> DataFrame:
    """Return the history with the columns visible_from and visible_to, in ms since 1970.

    The state as of a time T (--as-of) has the ACLs with visible_from <= T < visible_to. These are running maxima of
    batch timestamps, up to the batch that makes a change visible: the one in which its metadata transaction ends.
    visible_from is null for ACLs of the first checkpoint (see `known_from`), visible_to is null while in force.

    Actions on the result do not see what is appended to the log after this call. An action fails with the text of a
    ReplayError if the applier would stop at a contradiction, and of a LogError if retention has removed a segment.

    Raises:
        LogError: there is no log, it cannot be read, or retention has removed its start.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage that was set aside, or a ReplayError for a transaction marker out of place.

    """
    found = first_pass(spark, Path(directory))
    # names cannot tell ACLs with unknown codes apart: the driver replays such a log, and Spark does not compare them
    if found.unknown_codes:
        _replay(directory)
    checked = ~has_unknown_code() if found.unknown_codes else F.lit(True)
    events = timed_events(found)
    if found.failure is not None:
        # a contradiction before the misplaced marker is where the applier stops first
        raise first_contradiction(events, found.name, checked) or found.failure
    return rules_of(events, found.name, checked)


def contradiction(spark: SparkSession, directory: Path | str) -> ReplayError | None:
    """Return the error at which the applier would stop in a log, None if it would not; for a history that has failed.

    Raises as `intervals`.
    """
    found = first_pass(spark, Path(directory))
    return first_contradiction(timed_events(found), found.name, ~has_unknown_code())


@contextmanager
def contradictions_raised(spark: SparkSession, directory: Path | str) -> Iterator[None]:
    """Raise the ReplayError at which the applier would stop, if an action on a history in here fails at another.

    Spark reports whichever contradiction a task meets first.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        refused = contradiction(spark, directory) if _REFUSED in str(error) else None
        if refused is None:
            raise
        raise refused from error


def _replay(directory: Path | str) -> None:
    """Replay on the driver, to fail if two ACLs with unknown codes are the same."""
    for _ in replayed(directory):
        pass
