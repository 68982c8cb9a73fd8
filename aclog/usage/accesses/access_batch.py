"""Accesses in batches, their times, the forms of files of accesses, and blocks of kafka-authorizer.log."""

import json
import re
import zlib
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from aclog.authorizer.audit import HEAD, TIME_SIZE, AccessTrace, Reason, access_trace, read_line, read_other
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.lines import SIGNS_OF_OBJECTS, JsonObject, at, object_of, text_at
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import UnreadAccesses, UnreadCounter, UnreadSpan

# The forms of access logs, and their detection.


_BEGINNING: Final = 1 << 16
"""How many bytes are examined."""
_AUDIT_LINE: Final = re.compile(rb"\s*\[\d{4}-\d{2}-\d{2}[ T]")
_MARKS_OF_AUDIT: Final = (b"Principal = ", b"is Allowed", b"is Denied")


class AccessForm(StrEnum):
    """The form of a file of accesses."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    """Lines as for `authorize --requests`, with `timestamp`."""
    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka."""
    EVENTS = "events-jsonl"
    """aclog's audit events as JSON lines, or a node's JSON log with such events in it."""
    AVRO = "events"
    """aclog's audit events in an Avro file."""
    OCSF = "ocsf"
    """API Activity (class 6003) as JSON lines: aclog's, or Redpanda's audit log."""
    CLOUDEVENTS = "cloudevents"
    """CloudEvents as JSON lines: aclog's, or Confluent's audit log."""


def form_of(opened: IO[bytes], path: str, *, named: bool = True) -> AccessForm:
    """Return the form of a file by its first bytes; an empty file counts as JSON lines.

    Other text is read as lines of kafka-authorizer.log if it contains accesses in another layout, or if the file is not
    `named` but was found in a directory, such as kafkaServer-gc.log: its lines are then classified one by one.

    Raises:
        ConfigError: it has none of the forms.

    """
    beginning = opened.read(_BEGINNING)
    if beginning[:4] == b"PAR1":
        return AccessForm.PARQUET
    if beginning[:4] == b"Obj\x01":
        return AccessForm.AVRO
    if path.endswith(".gz"):
        beginning = _unpacked_start(beginning, path)
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or text.startswith(b"{"):
        return _json_form(text)
    if _AUDIT_LINE.match(text):
        return AccessForm.KAFKA_LOG
    if (not named or any(mark in text for mark in _MARKS_OF_AUDIT)) and _is_text(text):
        return AccessForm.KAFKA_LOG
    where = "" if named else ": move it, or name the logs by a glob, such as 'logs/kafka-authorizer.log*'"
    raise ConfigError(
        f"{path}: not an access log: expected kafka-authorizer.log, Parquet, Avro or JSON lines, which begin with "
        f"`{{`{where}"
    )


def _is_text(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are text, whose last character may be incomplete."""
    try:
        return "\0" not in getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False


def _json_form(text: bytes) -> AccessForm:
    """Return the form of JSON lines by the first readable one; an object that is no known event is an access."""
    for line in text.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return form_of_object(value) or AccessForm.JSONL
    return AccessForm.JSONL


def form_of_object(value: dict[str, Any]) -> AccessForm | None:
    """Return the form of an object by its keys; None if they match no form."""
    return next((form for form, keys in _MARKS if keys <= value.keys()), None)


_MARKS: Final = (
    (AccessForm.EVENTS, {"result", "basis"}),
    (AccessForm.JSONL, {*REQUEST_COLUMNS}),
    (AccessForm.CLOUDEVENTS, {"specversion"}),
    (AccessForm.OCSF, {"class_uid"}),
    (AccessForm.EVENTS, {"audit"}),
    (AccessForm.EVENTS, {"logger"}),
)
"""A form of JSON lines, and its required top-level keys; the first match wins."""


def _unpacked_start(data: bytes, path: str) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _BEGINNING)
    except zlib.error as error:
        raise ConfigError(f"{path}: not a gzip file: {error}") from error


# Accesses that were read, and counts of the lines that are not accesses.


TIMESTAMP: Final = "timestamp"
BROKER: Final = "broker"
LOGGED_DECISION: Final = "loggedDecision"

READ_COLUMNS: Final = (*REQUEST_COLUMNS, TIMESTAMP, BROKER, LOGGED_DECISION)
"""The columns of accesses: text, plain or dictionary-encoded; TIMESTAMP is in us, null if unknown.

BROKER is the id of the broker that logged the access, LOGGED_DECISION its decision (ALLOWED or DENIED); null if the log
does not contain it.
"""

TIME_TYPE: Final = pa.timestamp("us", tz="UTC")
READ_SCHEMA: Final = pa.schema([(name, TIME_TYPE if name == TIMESTAMP else pa.string()) for name in READ_COLUMNS])


@frozen(eq=False, kw_only=True)
class AccessBatch:
    """Rows of an access log."""

    rows: pa.RecordBatch
    """The columns READ_COLUMNS."""
    rejects: Counter[Reason] = field(factory=Counter)
    """The number of other lines, by the reason why they are not accesses; blank lines are not counted."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """The accesses among the other lines, which could not be read."""


# Times of accesses from text: ISO 8601 with or without an offset, or milliseconds since 1970.
#
# A number that would be a time of 1970 to 1973 in milliseconds counts seconds: no Kafka has logged anything then.


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, in ms since 1970."""
FIRST_SECOND, LAST_SECOND = 1_000_000_000, 99_999_999_999
"""Numbers that are in seconds: from September 2001 on; in ms they would be January 1970 to March 1973."""
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?([Zz]|[+-]\d{2}:?\d{2})?", re.ASCII
)
_PLAIN: Final = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})\z"
"""The texts that Arrow reads as `micros_of_text` does."""
_MILLIS = re.compile(r"-?\d{1,15}", re.ASCII)


def times_of_texts(texts: Any, zone: tzinfo) -> Any:
    """Return the times (TIME_TYPE) of an Arrow array of texts, null where a text is null or not a time.

    `zone` applies to times without an offset.
    """
    if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py() is not False:
        with suppress(pa.ArrowInvalid):
            times = texts.cast(TIME_TYPE)
            earliest: Any = pc.min(times.cast(pa.int64())).as_py()
            if earliest is None or earliest >= FIRST * 1000:
                return times
    encoded = texts.dictionary_encode()
    micros = [None if text is None else micros_of_text(text, zone) for text in encoded.dictionary.to_pylist()]
    return pa.array(micros, TIME_TYPE).take(encoded.indices)


def times_of_millis(millis: Any) -> Any:
    """Return the times (TIME_TYPE) of an Arrow array of ms since 1970, null beyond the years 1 to 9999."""
    seconds = pc.and_(pc.greater_equal(millis, pa.scalar(FIRST_SECOND)), pc.less_equal(millis, pa.scalar(LAST_SECOND)))
    if pc.any(seconds).as_py():
        millis = pc.if_else(seconds, pc.multiply(millis.cast(pa.int64()), pa.scalar(1000, pa.int64())), millis)
    in_range = pc.and_(pc.greater_equal(millis, pa.scalar(FIRST)), pc.less_equal(millis, pa.scalar(LAST)))
    within = pc.if_else(in_range, millis.cast(pa.int64()), pa.scalar(None, pa.int64()))
    return pc.multiply(within, pa.scalar(1000, pa.int64())).cast(TIME_TYPE)


def local_micros(times: Any, zone: tzinfo) -> Any:
    """Return the times (TIME_TYPE) of an Arrow array of naive timestamps in us of a zone."""
    encoded = times.dictionary_encode()
    naive = encoded.dictionary.to_pylist()
    micros = [None if time is None else micros_of(local_time(time, zone)) for time in naive]
    return pa.array(micros, pa.int64()).cast(TIME_TYPE).take(encoded.indices)


def micros_of_text(text: str, zone: tzinfo) -> int | None:
    """Return the time of a text in us since 1970; None if it is not a time."""
    if _MILLIS.fullmatch(text):
        return micros_of_millis(int(text))
    parts = _ISO.fullmatch(text)
    if parts is None:
        return None
    day, minute, second, fraction, offset = parts.groups()
    if offset is not None and len(offset) == 5:
        offset = f"{offset[:3]}:{offset[3:]}"
    try:
        time = datetime.fromisoformat(f"{day}T{minute}:{second or '00'}{'' if offset is None else offset.upper()}")
    except ValueError:
        return None
    if time.tzinfo is None:
        time = local_time(time, zone)
    micros = micros_of(time) + int(f"{fraction or '0':0<6}"[:6])
    return micros if FIRST * 1000 <= micros <= LAST * 1000 + 999 else None


def micros_of(time: datetime) -> int:
    """Return us since 1970 of a time with a zone."""
    return (time - EPOCH) // timedelta(microseconds=1)


def micros_of_millis(millis: int) -> int | None:
    """Return us since 1970; None outside the years 1 to 9999."""
    if FIRST_SECOND <= millis <= LAST_SECOND:
        millis *= 1000
    return millis * 1000 if FIRST <= millis <= LAST else None


def local_time(time: datetime, zone: tzinfo) -> datetime:
    """Return a naive time in a zone.

    When clocks are set back, a repeated time is the earlier one; when they are set forward, a skipped time has the
    offset from before the change.
    """
    return time.replace(tzinfo=zone, fold=0)


# Unreadable accesses in JSON lines.


_FOREIGN: Final = frozenset({Reason.OTHER_LOGGER, Reason.OTHER_MESSAGE})
_KEYS: Final = frozenset({"principal", "operation", "resourcetype", "resourcename", "resource"})
"""The keys of which an object about an access has at least one, in any spelling."""
_PRINCIPALS: Final[tuple[tuple[str, ...], ...]] = (
    ("principal",),
    ("audit", "principal"),
    ("data", "principal"),
    ("data", "authenticationInfo", "principal"),
    ("actor", "user", "uid"),
)
_TIMES: Final[tuple[tuple[str, ...], ...]] = (("timestamp",), ("audit", "timestamp"), ("time",))
_DECISIONS: Final[tuple[tuple[str, ...], ...]] = (("loggedDecision",), ("audit", "result"), ("result",))


def note_unread(counter: UnreadCounter, reason: Reason, line: bytes, value: JsonObject | None, zone: tzinfo) -> None:
    """Count a line that may be an unreadable access; `value` is its object, or None.

    An object without any key of an access, such as a line of another log, is not counted; nor is a line without any
    sign of an object, which a torn one has.
    """
    if reason is Reason.BLANK:
        return
    trace = access_trace(line.decode(errors="replace"))
    if trace is not None:
        # another line as the text of a string, with some characters escaped
        is_escaped = trace.principal is not None and "\\" in trace.principal
        unread_trace = AccessTrace(decision=trace.decision) if is_escaped else trace
    elif reason in _FOREIGN:
        return
    elif value is None:
        if not any(sign in line for sign in SIGNS_OF_OBJECTS):
            return
        unread_trace = AccessTrace()
    elif reason is Reason.MISSING_VALUE and not any(key.lower().replace("_", "") in _KEYS for key in value):
        return
    else:
        unread_trace = AccessTrace(principal=_principal_of(value), decision=_decision_of(value))
    time = None if value is None else _time_of(value, zone)
    counter.add(*unread_trace, reason, UnreadSpan(1, time, time))


def note_text(counter: UnreadCounter, reason: Reason, text: str, zone: tzinfo) -> None:
    """Count a line of JSON or of kafka-authorizer.log in a column of a table, if it may be an access."""
    line = text.encode(errors="replace")
    if reason is Reason.MALFORMED or line.lstrip().startswith(b"{"):
        value = object_of(line)
        note_unread(counter, reason, line, None if isinstance(value, Reason) else value, zone)
        return
    trace = access_trace(text)
    if trace is not None:
        counter.add(*trace, reason, UnreadSpan(1, None, None))


def _principal_of(value: JsonObject) -> str | None:
    """Return the principal of an object; None if it has none."""
    name = text_at(value, "actor", "user", "name")
    principal = next((text for text in (text_at(value, *path) for path in _PRINCIPALS) if text), None)
    return principal or (f"User:{name}" if name else None)


def _decision_of(value: JsonObject) -> str | None:
    decisions = {text_at(value, *path) for path in _DECISIONS} - {None}
    return decisions.pop() if len(decisions) == 1 and decisions <= {"ALLOWED", "DENIED"} else None


def _time_of(value: JsonObject, zone: tzinfo) -> int | None:
    timestamp = next((each for each in (at(value, *path) for path in _TIMES) if each is not None), None)
    if isinstance(timestamp, str):
        return micros_of_text(timestamp, zone)
    return micros_of_millis(timestamp) if isinstance(timestamp, int) and not isinstance(timestamp, bool) else None


# Accesses in lines of kafka-authorizer.log: most lines differ only in their time, so equal rests are parsed once.


_SECOND: Final = TIME_SIZE - len(",123")
_PARSED: Final = pa.schema(
    [*((name, pa.string()) for name in REQUEST_COLUMNS), ("loggedDecision", pa.string()), ("reason", pa.string())]
)


def read_kafka_lines(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of lines, whose times are in `zone`."""
    lines = _lines(block)
    headed = pc.match_substring_regex(lines, HEAD)
    with_head = lines.filter(headed)
    rests = pc.binary_slice(with_head, TIME_SIZE, -1).dictionary_encode()
    parsed = _parsed(rests.dictionary.to_pylist()).take(rests.indices)
    times = _times(with_head, zone)
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
        unread=_unread_of(headed, _headed_traces(with_head, reasons), times, others),
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
    request = read.principal, read.host, read.operation, read.resource_type, read.resource_name
    return (*request, read.decision, read.reason)


def _of_other(line: bytes) -> "tuple[Reason, AccessTrace | None]":
    """Return why a line without a head is not an access, and the parts of an access in it."""
    try:
        text = line[:-1].decode()
    except UnicodeDecodeError:
        return Reason.NOT_UTF8, access_trace(line.decode(errors="replace"))
    return read_other(text), access_trace(text)


def _headed_traces(lines: Any, reasons: Any) -> "dict[int, tuple[Reason, AccessTrace | None]]":
    """Return the unreadable lines among those with a head, by their position."""
    at = np.flatnonzero(np.asarray(pc.is_valid(reasons)))
    rejected = zip(lines.take(pa.array(at)).to_pylist(), reasons.take(pa.array(at)).to_pylist(), strict=True)
    traces = [(Reason(reason), access_trace(line.decode(errors="replace"))) for line, reason in rejected]
    return dict(zip(at.tolist(), traces, strict=True))


def _unread_of(
    headed: Any,
    of_headed: "dict[int, tuple[Reason, AccessTrace | None]]",
    times: Any,
    others: "Sequence[tuple[Reason, AccessTrace | None]]",
) -> UnreadAccesses:
    """Count the unreadable accesses among the lines.

    A line without a time was written between its neighbours, since a log is written in order.
    """
    counter = UnreadCounter()
    if not of_headed and all(trace is None for _, trace in others):
        return counter.total
    is_timed, micros = np.asarray(pc.is_valid(times)), np.asarray(times.cast(pa.int64()).fill_null(0))
    places = np.flatnonzero(np.asarray(headed))
    timed_places, timed = places[is_timed], micros[is_timed]
    for row, (reason, trace) in of_headed.items():
        if trace is not None:
            time = int(micros[row])
            span = UnreadSpan(1, time, time) if is_timed[row] else _between(timed_places, timed, int(places[row]))
            counter.add(*trace, reason, span)
    for place, (reason, trace) in zip(np.flatnonzero(~np.asarray(headed)).tolist(), others, strict=True):
        if trace is not None:
            counter.add(*trace, reason, _between(timed_places, timed, place))
    return counter.total


def _between(places: Int64s, times: Int64s, place: int) -> UnreadSpan:
    """Return the span of a line, given the positions and times of the lines with a time."""
    at = int(np.searchsorted(places, place))
    first = int(times[at - 1]) if at else None
    last = int(times[at]) if at < len(times) else None
    if first is not None and last is not None and first > last:  # joined logs
        return UnreadSpan(1, None, None)
    return UnreadSpan(1, first, last)


def _of_times(times: Any) -> Any:
    return pc.if_else(pc.is_null(times), pa.scalar(Reason.BAD_TIMESTAMP.value), pa.scalar(None, pa.string()))


def _times(lines: Any, zone: tzinfo) -> Any:
    """Return the times of lines that begin with `[2026-11-21 10:00:00,123`, null if there is no such time."""
    # a log has many lines per second: dates are parsed once each
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
