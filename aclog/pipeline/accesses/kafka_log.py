"""kafka-authorizer.log in whole batches: Spark parses the times, and each distinct rest of a line is read once."""

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.audit_line_reader import TIME, TIME_SIZE, ParsedLine, read_line, read_other
from aclog.pipeline.accesses.access_table import (
    ACCESS_SCHEMA,
    DETAILS,
    LINE_LIMIT,
    REJECT_SCHEMA,
    TIMESTAMP,
    Split,
)
from aclog.pipeline.accesses.access_times import local_time

Array: TypeAlias = "pa.Array[Any]"
_HEAD = rf"^{TIME}\] [A-Z]+ Principal = "
_PARSED = pa.schema(
    [
        *(field for field in ACCESS_SCHEMA if field.name != TIMESTAMP),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
    ]
)
"""The fields of ParsedLine as columns."""


def lines_of_kafka(lines: DataFrame, timezone: str) -> DataFrame:
    """Return the input of `split_lines`: lines (`value`, `file`) with their `timestamp`, local to `timezone`."""
    time = F.substring("value", 2, TIME_SIZE - 1)
    return lines.select("value", "file", local_time(time, timezone).alias(TIMESTAMP))


def split_lines(batch: pa.RecordBatch) -> Split:
    """Split lines (`value`, `file` and `timestamp`, null if there is none).

    Most lines of a log differ in their time only: equal texts after the time are read once per batch.
    """
    lines, not_utf8 = _as_text(batch.column("value"))
    headed = pc.match_substring_regex(lines, _HEAD)
    texts = pc.if_else(headed, pc.utf8_slice_codeunits(lines, TIME_SIZE), pa.scalar(None, pa.string()))
    encoded = texts.dictionary_encode()
    # a row without a head has a null text, and so takes nulls for all columns
    parsed = _parsed(encoded.dictionary).take(encoded.indices)
    times, parsed_reasons = batch.column(TIMESTAMP), parsed.column("reason")
    reasons = _reasons(lines, headed, not_utf8, times=times, parsed=parsed_reasons)
    good = pc.is_null(reasons)
    columns = [batch.column(TIMESTAMP) if name == TIMESTAMP else parsed.column(name) for name in ACCESS_SCHEMA.names]
    accesses = pa.RecordBatch.from_arrays(columns, schema=ACCESS_SCHEMA).filter(good)
    rejects = _rejects(
        pa.RecordBatch.from_pydict(
            {"file": batch.column("file"), "line": lines, "reason": reasons, "detail": parsed.column("detail")}
        ).filter(pc.not_equal(reasons, pa.scalar(Reason.BLANK.value)))
    )
    blanks = len(lines) - accesses.num_rows - rejects.num_rows
    return Split(accesses=accesses, rejects=rejects, files=batch.column("file").filter(good), blanks=blanks)


def _as_text(values: Array) -> tuple[Array, list[int]]:
    """Return the lines as text, and the numbers of those that are not UTF-8, with replacement characters."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:  # Spark passes on any bytes as STRING
        lines: list[Any] = values.cast(pa.binary()).to_pylist()
    else:
        return values, []
    texts = [line.decode(errors="replace") for line in lines]
    not_utf8 = [number for number, line in enumerate(lines) if texts[number].encode() != line]
    return pa.array(texts, pa.string()), not_utf8


def _parsed(texts: Array) -> pa.RecordBatch:
    distinct: list[Any] = texts.to_pylist()
    rows = [read_line(text) for text in distinct]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(ParsedLine._fields)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _PARSED, strict=True)], schema=_PARSED
    )


def _reasons(lines: Array, headed: Array, not_utf8: list[int], *, times: Array, parsed: Array) -> Array:
    """Return the reason why each line is not an access, null if it is."""
    others: list[Any] = lines.filter(pc.invert(headed)).to_pylist()
    read = pa.array([read_other(line) for line in others], pa.string())
    reasons: Array = pc.replace_with_mask(parsed, pc.invert(headed), read)
    timeless = pc.and_(pc.is_null(reasons), pc.is_null(times))
    reasons = pc.if_else(timeless, Reason.BAD_TIMESTAMP.value, reasons)
    if not_utf8:
        mask = pc.is_in(pa.array(range(len(lines)), pa.int64()), pa.array(not_utf8, pa.int64()))
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


def _detail(reason: str, parsed: str | None, line: str) -> str:
    if reason == Reason.BAD_TIMESTAMP:
        return f"no such time: {line[1:TIME_SIZE]}"
    return DETAILS.get(Reason(reason)) or parsed or ""
