"""Lines of an access log that could not be read, counted by what they tell of accesses."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.unread_objects import note_text
from aclog.usage.unread import UnreadAccesses, UnreadCounter, UnreadSpan

_COUNTED: Final = pa.schema(
    [(name, pa.string()) for name in ("principal", "decision", "reason")]
    + [(name, pa.int64()) for name in ("accesses", "first", "last")]
)


def unread_lines(lines: DataFrame, reason: str = Reason.MALFORMED) -> UnreadAccesses:
    """Return what some lines tell of accesses: their texts in the only column, or beside it the reason of each."""
    texts = lines.withColumn("reason", F.lit(reason)) if len(lines.columns) == 1 else lines
    counter = UnreadCounter()
    for row in texts.mapInArrow(_counted, from_arrow_schema(_COUNTED)).toArrow().to_pylist():
        span = UnreadSpan(row["accesses"], row["first"], row["last"])
        counter.add(row["principal"], row["decision"], row["reason"], span)
    return counter.found


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
    rows = [
        {"principal": key.principal, "decision": key.decision, "reason": key.reason, **span._asdict()}
        for key, span in counter.spans.items()
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNTED)
