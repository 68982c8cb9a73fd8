"""Accesses in lines of kafka-authorizer.log: most differ in their time only, and equal rests are read once."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.audit_line_reader import HEAD, TIME_SIZE, AccessTrace, access_trace, read_line, read_other
from aclog.metalog.vectors import Int64s
from aclog.usage.accesses.access_batch import READ_SCHEMA, TIME_TYPE, AccessBatch
from aclog.usage.accesses.access_times import local_time, micros_of
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.unread import UnreadAccesses, UnreadCounter, UnreadSpan

_SECOND: Final = TIME_SIZE - len(",123")
_PARSED: Final = pa.schema(
    [*((name, pa.string()) for name in REQUEST_COLUMNS), ("loggedDecision", pa.string()), ("reason", pa.string())]
)


def read_kafka_lines(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of lines, whose times are local to `zone`."""
    lines = _lines(block)
    headed = pc.match_substring_regex(lines, HEAD)
    known = lines.filter(headed)
    rests = pc.binary_slice(known, TIME_SIZE, -1).dictionary_encode()
    parsed = _parsed(rests.dictionary.to_pylist()).take(rests.indices)
    times = _times(known, zone)
    reasons = pc.coalesce(parsed.column("reason"), _of_times(times))
    good = pc.is_null(reasons)
    columns: list[Any] = [parsed.column(at) for at in range(len(REQUEST_COLUMNS))]
    columns += [times, pa.nulls(len(times), pa.string()), parsed.column("loggedDecision")]
    rejects = Counter(Reason(reason) for reason in reasons.drop_null().to_pylist())
    others = [_of_other(line) for line in lines.filter(pc.invert(headed)).to_pylist()]
    rejects += Counter(reason for reason, _ in others)
    del rejects[Reason.BLANK]
    return AccessBatch(
        rows=pa.record_batch(columns, schema=READ_SCHEMA).filter(good),
        rejects=rejects,
        unread=_unread_of(headed, _headed_traces(known, reasons), times, others),
    )


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


def _of_other(line: bytes) -> "tuple[Reason, AccessTrace | None]":
    """Return why a line without a head is no access, and what it tells of one all the same."""
    try:
        text = line[:-1].decode()
    except UnicodeDecodeError:
        return Reason.NOT_UTF8, access_trace(line.decode(errors="replace"))
    return read_other(text), access_trace(text)


def _headed_traces(known: Any, reasons: Any) -> "dict[int, tuple[Reason, AccessTrace | None]]":
    """Return by place among the lines with a head those that cannot be read."""
    at = np.flatnonzero(np.asarray(pc.is_valid(reasons)))
    rejected = zip(known.take(pa.array(at)).to_pylist(), reasons.take(pa.array(at)).to_pylist(), strict=True)
    traces = [(Reason(reason), access_trace(line.decode(errors="replace"))) for line, reason in rejected]
    return dict(zip(at.tolist(), traces, strict=True))


def _unread_of(
    headed: Any,
    of_headed: "dict[int, tuple[Reason, AccessTrace | None]]",
    times: Any,
    others: "Sequence[tuple[Reason, AccessTrace | None]]",
) -> UnreadAccesses:
    """Count the lines that tell of an access and cannot be read.

    One without a time was written between the lines around it, since a log is written from its beginning to its end.
    """
    counter = UnreadCounter()
    if not of_headed and all(trace is None for _, trace in others):
        return counter.found
    is_timed, micros = np.asarray(pc.is_valid(times)), np.asarray(times.cast(pa.int64()).fill_null(0))
    places = np.flatnonzero(np.asarray(headed))
    timed_places, timed = places[is_timed], micros[is_timed]
    for at, (reason, trace) in of_headed.items():
        if trace is not None:
            time = int(micros[at])
            span = UnreadSpan(1, time, time) if is_timed[at] else _between(timed_places, timed, int(places[at]))
            counter.add(*trace, reason, span)
    for place, (reason, trace) in zip(np.flatnonzero(~np.asarray(headed)).tolist(), others, strict=True):
        if trace is not None:
            counter.add(*trace, reason, _between(timed_places, timed, place))
    return counter.found


def _between(places: Int64s, times: Int64s, place: int) -> UnreadSpan:
    """Return the span of the line at a place, given the places of lines with a time."""
    at = int(np.searchsorted(places, place))
    first = int(times[at - 1]) if at else None
    last = int(times[at]) if at < len(times) else None
    if first is not None and last is not None and first > last:  # logs that were joined
        return UnreadSpan(1, None, None)
    return UnreadSpan(1, first, last)


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
