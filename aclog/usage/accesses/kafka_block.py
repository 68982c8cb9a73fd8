"""Accesses in lines of kafka-authorizer.log: most differ in their time only, and equal rests are read once."""

from collections import Counter
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.audit_line_reader import TIME, TIME_SIZE, read_line, read_other
from aclog.usage.accesses.access_batch import READ_SCHEMA, TIME_TYPE, AccessBatch
from aclog.usage.accesses.access_times import local_time, micros_of
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

_HEAD: Final = rf"^{TIME}\] [A-Z]+ Principal = "
_SECOND: Final = TIME_SIZE - len(",123")
_PARSED: Final = pa.schema(
    [*((name, pa.string()) for name in REQUEST_COLUMNS), ("loggedDecision", pa.string()), ("reason", pa.string())]
)


def read_kafka_lines(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of lines, whose times are local to `zone`."""
    lines = _lines(block)
    headed = pc.match_substring_regex(lines, _HEAD)
    known = lines.filter(headed)
    rests = pc.binary_slice(known, TIME_SIZE, -1).dictionary_encode()
    parsed = _parsed(rests.dictionary.to_pylist()).take(rests.indices)
    times = _times(known, zone)
    reasons = pc.coalesce(parsed.column("reason"), _of_times(times))
    good = pc.is_null(reasons)
    columns: list[Any] = [parsed.column(at) for at in range(len(REQUEST_COLUMNS))]
    columns += [times, pa.nulls(len(times), pa.string()), parsed.column("loggedDecision")]
    rejects = Counter(Reason(reason) for reason in reasons.drop_null().to_pylist())
    rejects += Counter(map(_of_other, lines.filter(pc.invert(headed)).to_pylist()))
    del rejects[Reason.BLANK]
    return AccessBatch(rows=pa.record_batch(columns, schema=READ_SCHEMA).filter(good), rejects=rejects)


def _lines(block: bytes) -> Any:
    """Return the lines as binary, each with its line feed."""
    whole = block if block.endswith(b"\n") else block + b"\n"
    ends = np.flatnonzero(np.frombuffer(whole, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets.data), pa.py_buffer(whole)])


def _parsed(texts: list[bytes]) -> pa.RecordBatch:
    columns: list[Any] = list(zip(*map(_read, texts), strict=True)) or [()] * len(_PARSED)
    return pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=_PARSED)


@lru_cache(1 << 16)
def _read(text: bytes) -> tuple[str | None, ...]:
    """Return the columns _PARSED of the rest of a line after its time."""
    try:
        read = read_line(text.decode())
    except UnicodeDecodeError:
        return (*[None] * len(REQUEST_COLUMNS), None, Reason.NOT_UTF8)
    asked = read.principal, read.host, read.operation, read.resource_type, read.resource_name
    return (*asked, read.decision, read.reason)


def _of_other(line: bytes) -> Reason:
    try:
        return read_other(line[:-1].decode())
    except UnicodeDecodeError:
        return Reason.NOT_UTF8


def _of_times(times: Any) -> Any:
    return pc.if_else(pc.is_null(times), pa.scalar(Reason.BAD_TIMESTAMP.value), pa.scalar(None, pa.string()))


def _times(lines: Any, zone: tzinfo) -> Any:
    """Return the times of lines that begin with `[2026-11-21 10:00:00,123`, null if there is no such time."""
    # a log has many lines a second: dates are looked up once for each
    seconds = pc.binary_slice(lines, 1, _SECOND).dictionary_encode()
    begins = pa.array([_second(text, zone) for text in seconds.dictionary.to_pylist()], pa.int64())
    millis = pc.binary_slice(lines, _SECOND + 1, TIME_SIZE).cast(pa.string()).cast(pa.int64())
    return pc.add(begins.take(seconds.indices), pc.multiply(millis, pa.scalar(1000))).cast(TIME_TYPE)


@lru_cache(1 << 16)
def _second(text: bytes, zone: tzinfo) -> int | None:
    try:
        return micros_of(local_time(datetime.fromisoformat(text.decode()), zone))
    except (ValueError, OverflowError):
        return None
