"""kafka-authorizer.log by whole batches: times by Spark, each distinct text behind them read once a batch."""

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aclog.pipeline.accesses.access_table import (
    ACCESS_SCHEMA,
    DETAILS,
    LINE_LIMIT,
    REJECT_SCHEMA,
    TIMESTAMP,
    Reason,
    Split,
)
from aclog.pipeline.accesses.access_times import local_time
from aclog.pipeline.accesses.kafka_line import TIME, TIME_SIZE, ParsedLine, read_line, read_other

Array: TypeAlias = "pa.Array[Any]"
_HEAD = rf"^{TIME}\] [A-Z]+ Principal = "
_TOLD = pa.schema(
    [
        *(field for field in ACCESS_SCHEMA if field.name != TIMESTAMP),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
    ]
)
"""ParsedLine as columns."""


def lines_of_kafka(lines: DataFrame, timezone: str) -> DataFrame:
    """What `split_lines` takes, of lines with `value` and `file`: the time of each beside it, local to `timezone`."""
    time = F.substring("value", 2, TIME_SIZE - 1)
    return lines.select("value", "file", local_time(time, timezone).alias(TIMESTAMP))


def split_lines(batch: pa.RecordBatch) -> Split:
    """Split lines (`value`, `file`, and `timestamp`, null where there is none).

    Logs repeat themselves but for the time: a text is read once however often a batch has it.
    """
    lines, spoilt = _as_text(batch.column("value"))
    headed = pc.match_substring_regex(lines, _HEAD)
    texts = pc.if_else(headed, pc.utf8_slice_codeunits(lines, TIME_SIZE), pa.scalar(None, pa.string()))
    encoded = texts.dictionary_encode()
    # A row without a head has no text, and so nothing in any column.
    told = _told(encoded.dictionary).take(encoded.indices)
    reasons = _reasons(lines, headed, spoilt, batch.column(TIMESTAMP), told.column("reason"))
    good = pc.is_null(reasons)
    columns = [batch.column(TIMESTAMP) if name == TIMESTAMP else told.column(name) for name in ACCESS_SCHEMA.names]
    accesses = pa.RecordBatch.from_arrays(columns, schema=ACCESS_SCHEMA).filter(good)
    rejects = _rejects(
        pa.RecordBatch.from_pydict(
            {"file": batch.column("file"), "line": lines, "reason": reasons, "detail": told.column("detail")}
        ).filter(pc.not_equal(reasons, pa.scalar(Reason.BLANK.value)))
    )
    return Split(accesses=accesses, rejects=rejects, blanks=len(lines) - accesses.num_rows - rejects.num_rows)


def _as_text(values: Array) -> tuple[Array, list[int]]:
    """The lines as text, and the numbers of those that are none, which have signs in place of what is not UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:  # Spark lets any bytes through as text
        lines: list[Any] = values.cast(pa.binary()).to_pylist()
    else:
        return values, []
    texts = [line.decode(errors="replace") for line in lines]
    spoilt = [number for number, line in enumerate(lines) if texts[number].encode() != line]
    return pa.array(texts, pa.string()), spoilt


def _told(texts: Array) -> pa.RecordBatch:
    distinct: list[Any] = texts.to_pylist()
    rows = [read_line(text) for text in distinct]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(ParsedLine._fields)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _TOLD, strict=True)], schema=_TOLD
    )


def _reasons(lines: Array, headed: Array, spoilt: list[int], times: Array, told: Array) -> Array:
    """Why each line is no access; null where it is one."""
    others: list[Any] = lines.filter(pc.invert(headed)).to_pylist()
    read = pa.array([read_other(line) for line in others], pa.string())
    reasons: Array = pc.replace_with_mask(told, pc.invert(headed), read)
    timeless = pc.and_(pc.is_null(reasons), pc.is_null(times))
    reasons = pc.if_else(timeless, Reason.BAD_TIMESTAMP.value, reasons)
    if spoilt:
        mask = pc.is_in(pa.array(range(len(lines)), pa.int64()), pa.array(spoilt, pa.int64()))
        reasons = pc.if_else(mask, Reason.NOT_UTF8.value, reasons)
    return reasons


def _rejects(rows: pa.RecordBatch) -> pa.RecordBatch:
    found = [
        {
            "file": row["file"],
            "line": row["line"][:LINE_LIMIT],
            "reason": row["reason"],
            "detail": _detail(row["reason"], row["detail"], row["line"]),
        }
        for row in rows.to_pylist()
    ]
    return pa.RecordBatch.from_pylist(found, schema=REJECT_SCHEMA)


def _detail(reason: str, told: str | None, line: str) -> str:
    if reason == Reason.BAD_TIMESTAMP:
        return f"no such time: {line[1:TIME_SIZE]}"
    return DETAILS.get(Reason(reason)) or told or ""
