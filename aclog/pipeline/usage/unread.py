"""What of an access log could not be read or decided, counted by what lines and rows tell of accesses."""

from collections.abc import Iterator
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.unread_objects import note_text
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.undecided import undecided_rows
from aclog.usage.unread import UnreadAccesses, UnreadCounter, UnreadSpan

_COUNTED: Final = pa.schema(
    [(name, pa.string()) for name in ("principal", "decision", "reason")]
    + [(name, pa.int64()) for name in ("accesses", "first", "last")]
)


def unread_lines(lines: DataFrame, reason: str = Reason.MALFORMED) -> UnreadAccesses:
    """Return what some lines tell of accesses: their texts in the only column, or beside it the reason of each."""
    texts = lines.withColumn("reason", F.lit(reason)) if len(lines.columns) == 1 else lines
    return _added_up(texts.mapInArrow(_counted, from_arrow_schema(_COUNTED)))


def undecided_accesses(accesses: DataFrame, *, need_time: bool) -> UnreadAccesses:
    """Return the rows that no rules decide as they are written, or that have no time if they need one.

    `accesses` has REQUEST_COLUMNS, and perhaps `timestamp`.
    """
    names = {*REQUEST_COLUMNS, "timestamp"} & set(accesses.columns)
    missing = [F.lit(None).cast("timestamp").alias("timestamp")] if "timestamp" not in names else []
    rows = accesses.select(*sorted(names), *missing, F.lit(None).cast("string").alias("loggedDecision"))
    return _added_up(rows.mapInArrow(partial(_undecided, need_time), from_arrow_schema(_COUNTED)))


def rejected_lines(spark: SparkSession, requests: str) -> UnreadAccesses:
    """Return what the lines tell of accesses that `ingest` rejected, if this is the directory of its tables."""
    place = Path(requests)
    rejects = (place.parent if place.name == "accesses" else place) / "rejects"
    if not (rejects.parent / "accesses").is_dir() or next(rejects.rglob("*.parquet"), None) is None:
        return UnreadAccesses()
    return unread_lines(spark.read.parquet(str(rejects)).select("line", "reason"))


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counter = UnreadCounter()
    for batch in batches:
        for text, reason in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            known = Reason(reason) if reason in list(Reason) else Reason.UNREADABLE
            note_text(counter, known, str(text), UTC)
    yield _batch_of(counter.found)


def _undecided(need_time: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = (undecided_rows(batch, need_time=need_time, as_written=True) for batch in batches if batch.num_rows)
    yield _batch_of(UnreadAccesses.sum_of(parts))


def _batch_of(unread: UnreadAccesses) -> pa.RecordBatch:
    rows = [
        {"principal": key.principal, "decision": key.decision, "reason": key.reason, **span._asdict()}
        for key, span in unread.spans.items()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_COUNTED)


def _added_up(counted: DataFrame) -> UnreadAccesses:
    counter = UnreadCounter()
    for row in counted.toArrow().to_pylist():
        span = UnreadSpan(row["accesses"], row["first"], row["last"])
        counter.add(row["principal"], row["decision"], row["reason"], span)
    return counter.found
