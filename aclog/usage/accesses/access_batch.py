"""Accesses in batches, their times, the forms of files of accesses, and blocks of kafka-authorizer.log."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field

from aclog.authorizer.audit import (
    HEAD,
    MESSAGE,
    TIME_SIZE,
    AccessTrace,
    ParsedLine,
    Reason,
    access_trace,
    is_cut,
    read_line,
    read_message,
)
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.accesses.brokers import broker_of_line
from aclog.usage.accesses.containers import texts_in
from aclog.usage.accesses.layouts import Layout, Profile, cleaned, detect, read_text_line
from aclog.usage.accesses.lines import (
    BRACED_TEXT,
    BYTES_OF_AUDIT,
    MARKS_OF_AUDIT,
    SIGNS_OF_OBJECTS,
    JsonObject,
    LongLine,
    at,
    is_text,
    object_of,
    text_at,
)
from aclog.usage.accesses.plain_messages import APACHE_LINES, MESSAGES, PLAIN_FIELDS, PlainForm, plain_rests, read_plain
from aclog.usage.accesses.times import ISO, SECONDS_SIZE, TimeFormat, rest_of_time, second_micros
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import UnreadAccesses, UnreadCounter, UnreadSpan, micros_of

# The forms of access logs, and their detection.


BEGINNING: Final = 1 << 16
"""How many bytes are examined."""
UTF_16: Final = frozenset({b"\xff\xfe", b"\xfe\xff"})
"""How text in UTF-16 begins."""


class AccessForm(StrEnum):
    """The form of a file of accesses."""

    PARQUET = "parquet"
    ORC = "orc"
    JSONL = "jsonl"
    """Lines as for `authorize --requests`, with `timestamp`."""
    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka, in any layout of text."""
    KAFKA_JSON = "kafka-json"
    """JSON lines with the messages of kafka-authorizer.log: of log layouts, containers, shippers and exports."""
    EVENTS = "events-jsonl"
    """aclog's audit events as JSON lines, or a node's JSON log with such events in it."""
    AVRO = "events"
    """aclog's audit events in an Avro file."""
    OCSF = "ocsf"
    """API Activity (class 6003) as JSON lines: aclog's, or Redpanda's audit log."""
    CLOUDEVENTS = "cloudevents"
    """CloudEvents as JSON lines: aclog's, or Confluent's audit log."""


def form_of(beginning: bytes, path: str) -> AccessForm | None:
    """Return the form of a file by its first bytes, unpacked; an empty file counts as JSON lines.

    None: text without a sign of accesses, or no text.

    Raises:
        ConfigError: text in UTF-16.

    """
    table = next((form for magic, form in _TABLES if beginning.startswith(magic)), None)
    if table is not None and (table is AccessForm.AVRO or not is_text(beginning)):
        return table
    if beginning[:2] in UTF_16:
        raise ConfigError(f"{path}: in UTF-16: expected UTF-8: convert it first")
    text = beginning.lstrip(b"\0").removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text and not beginning.startswith(b"\0"):
        return AccessForm.JSONL
    if text.startswith(b"{"):
        return _json_form(text)
    if not is_text(text):
        return None
    return AccessForm.KAFKA_LOG if any(mark in text for mark in MARKS_OF_AUDIT) else None


_TABLES: Final = ((b"PAR1", AccessForm.PARQUET), (b"Obj\x01", AccessForm.AVRO), (b"ORC", AccessForm.ORC))
"""How files of tables begin; text may begin with the letters of Parquet and ORC."""


def _json_form(text: bytes) -> AccessForm | None:
    """Return the form of JSON lines by the first line with a sign of one; None without any."""
    objects = 0
    for line in text.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            objects += 1
            if (form := form_of_object(value)) is not None:
                return form
            if any(key.lower() in _KEYS for key in value):
                return AccessForm.JSONL
    if BRACED_TEXT.search(text) and not objects:
        return AccessForm.KAFKA_LOG
    return None if objects else AccessForm.JSONL


def form_of_object(value: dict[str, Any]) -> AccessForm | None:
    """Return the form of an object by its keys, or by a message of Kafka in it; None if there is no sign of a form."""
    form = next((form for form, keys in _MARKS if keys <= value.keys()), None)
    if form is None and texts_in(value):
        return AccessForm.KAFKA_JSON
    return AccessForm.EVENTS if form is None and "logger" in value else form


_MARKS: Final = (
    (AccessForm.EVENTS, {"result", "basis"}),
    (AccessForm.JSONL, {*REQUEST_COLUMNS}),
    (AccessForm.CLOUDEVENTS, {"specversion"}),
    (AccessForm.OCSF, {"class_uid"}),
    (AccessForm.EVENTS, {"audit"}),
)
"""A form of JSON lines, and its required top-level keys; the first match wins."""


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
    long_lines: tuple[LongLine, ...] = ()
    """Lines that were not read for their length: each counts as an unread access of any principal."""

    @classmethod
    def of_long_line(cls, line: LongLine, first: int | None = None, last: int | None = None) -> Self:
        """Return a batch without rows, for a line that was not read; it was logged between two times, if known."""
        unread = UnreadCounter()
        is_ordered = first is None or last is None or first <= last
        unread.add(None, None, Reason.TOO_LONG, UnreadSpan(1, *((first, last) if is_ordered else (None, None))))
        rows = pa.RecordBatch.from_pylist([], schema=READ_SCHEMA)
        return cls(rows=rows, rejects=Counter({Reason.TOO_LONG: 1}), unread=unread.total, long_lines=(line,))


# Times of accesses from text: ISO 8601 with or without an offset, or milliseconds since 1970.
#
# A number that would be a time of 1970 to 1973 in milliseconds counts seconds: no Kafka has logged anything then.


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
_BROKERS: Final[tuple[tuple[str, ...], ...]] = (("broker",), ("audit", "broker"), ("metadata", "product", "uid"))
_DECISIONS: Final[tuple[tuple[str, ...], ...]] = (("loggedDecision",), ("audit", "result"), ("result",))


def note_unread(
    counter: UnreadCounter,
    reason: Reason,
    line: bytes,
    value: JsonObject | None,
    zone: tzinfo,
    around: Callable[[], UnreadSpan] | None = None,
) -> None:
    """Count a line that may be an unreadable access; `value` is its object, or None.

    `around` returns when a line without a time was logged, if the lines are in the order of their times.

    An object without any key of an access, such as a line of another log, is not counted; nor is a line without any
    sign of an object, which a torn one has.
    """
    if reason is Reason.BLANK:
        return
    text = line.decode(errors="replace")
    trace = access_trace(text)
    if trace is not None:
        # another line as the text of a string, with some characters escaped
        is_escaped = trace.principal is not None and "\\" in trace.principal
        unread_trace = AccessTrace(decision=trace.decision) if is_escaped else trace
    elif reason in _FOREIGN and not any(mark in line for mark in BYTES_OF_AUDIT):
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
    span = UnreadSpan(1, time, time) if time is not None or around is None else around()
    broker = None if value is None else _broker_of(value)
    counter.add(*unread_trace, reason, span, broker=broker or broker_of_line(text))


def note_text(
    counter: UnreadCounter, reason: Reason, text: str, zone: tzinfo, *, broker: str | None, span: UnreadSpan
) -> None:
    """Count a line of JSON or of kafka-authorizer.log in a column of a table, if it may be an access.

    `broker` is the one of the table, `span` has the times of the line, as far as the table has them.
    """
    line, own = text.encode(errors="replace"), UnreadCounter()
    if reason is Reason.TOO_LONG:  # the text is only its beginning
        own.add(None, None, reason, span)
    elif reason is Reason.MALFORMED or line.lstrip().startswith(b"{"):
        value = object_of(line)
        note_unread(own, reason, line, None if isinstance(value, Reason) else value, zone, lambda: span)
    elif (trace := access_trace(text)) is not None:
        own.add(*trace, reason, span, broker=broker_of_line(text))
    for key, each in own.total.on_broker(broker).spans.items():
        counter.add(key.principal, key.decision, key.reason, each, broker=key.broker)


def _principal_of(value: JsonObject) -> str | None:
    """Return the principal of an object; None if it has none."""
    name = text_at(value, "actor", "user", "name")
    principal = next((text for text in (text_at(value, *path) for path in _PRINCIPALS) if text), None)
    return principal or (f"User:{name}" if name else None)


def _broker_of(value: JsonObject) -> str | None:
    """Return the broker of an object; None if it has none in the place of its form."""
    return next((str(each) for each in (at(value, *path) for path in _BROKERS) if isinstance(each, str | int)), None)


def _decision_of(value: JsonObject) -> str | None:
    decisions = {text_at(value, *path) for path in _DECISIONS} - {None}
    return decisions.pop() if len(decisions) == 1 and decisions <= {"ALLOWED", "DENIED"} else None


def _time_of(value: JsonObject, zone: tzinfo) -> int | None:
    timestamp = next((each for each in (at(value, *path) for path in _TIMES) if each is not None), None)
    if isinstance(timestamp, str):
        return micros_of_text(timestamp, zone)
    return micros_of_millis(timestamp) if isinstance(timestamp, int) and not isinstance(timestamp, bool) else None


# Accesses in lines of text logs: most lines differ only in their time, so equal rests are parsed once.


_SECOND: Final = TIME_SIZE - len(",123")
_PLACES: Final = {name: at for at, name in enumerate(ParsedLine._fields)}
_READ_NAMES: Final = ("principal", "host", "operation", "resource_type", "resource_name", "decision")
_MESSAGE_BYTES: Final = MESSAGE.encode()
_MOST_OF_A_BLOCK: Final = 1 << 12
"""The lines of a block from which further layouts are detected."""
_NO_END: Final = 1 << 30
"""The end of a slice to the end of a text: without one, Arrow's computation of sizes overflows."""
_UNKNOWN: Final = "UNKNOWN"
"""The reason of lines that a layout does not match."""
APACHE: Final = Profile()
"""The profile of files in Apache's layout, and of files whose layout is not detected."""


@frozen(eq=False, kw_only=True)
class ReadLines:
    """Lines of a text log, each with its message or the reason why it is not an access."""

    columns: pa.RecordBatch
    """The requested fields of ParsedLine, and `reason`, null for an access."""
    times: Any
    """TIME_TYPE, null for none."""


def read_kafka_lines(block: bytes, zone: tzinfo, profile: Profile = APACHE) -> AccessBatch:
    """Read a block of lines; `zone` applies to times without an offset."""
    lines = _lines(block)
    return batch_of_lines(lines, read_each(lines, zone, profile, _READ_NAMES))


def batch_of_lines(lines: Any, read: ReadLines) -> AccessBatch:
    """Return the accesses of lines that were read, and counts of the others; `lines` are binary."""
    reasons: Any = read.columns.column("reason")
    rejects = Counter(Reason(reason) for reason in reasons.drop_null().to_pylist())
    del rejects[Reason.BLANK]
    unread = _unread_of(lines, reasons, read.times) if rejects else UnreadAccesses()
    return AccessBatch(rows=_rows_of(read.columns, read.times), rejects=rejects, unread=unread)


def read_each(lines: Any, zone: tzinfo, profile: Profile, names: Sequence[str], *, end: int = -1) -> ReadLines:
    """Read each line of a binary array; `names` are fields of ParsedLine, `end` is that of a line's text.

    Lines in Apache's layout are read first, then those in the layouts of the profile, the others one by one.
    """
    pieces: list[_Piece] = []
    remaining = np.arange(len(lines))
    if not profile.is_stated:
        headed = pc.match_substring_regex(lines, HEAD)
        if pc.all(headed).as_py():
            piece, again = _of_default(lines, remaining, zone, names, end)
            pieces, remaining = [piece], again
        elif pc.any(headed).as_py():
            is_headed = np.asarray(headed)
            piece, again = _of_default(lines.filter(headed), np.flatnonzero(is_headed), zone, names, end)
            pieces, remaining = [piece], np.union1d(np.flatnonzero(~is_headed), again)
    if len(remaining) or not pieces:
        more, remaining = _of_layouts(lines, remaining, zone, profile, names)
        pieces += more
        pieces.append(_one_by_one(lines, remaining, zone, profile, names))
    return _joined([each for each in pieces if len(each.places)] or pieces[:1], len(lines), names)


class _Piece(NamedTuple):
    """Some lines, by position, with their columns (`names` and `reason`) and times."""

    places: Int64s
    columns: pa.RecordBatch
    times: Any


def _joined(pieces: Sequence[_Piece], count: int, names: Sequence[str]) -> ReadLines:
    """Return the lines in their order; of a line in two pieces the later one."""
    if len(pieces) == 1 and len(pieces[0].places) == count:
        return ReadLines(columns=pieces[0].columns, times=pieces[0].times)
    table = pa.Table.from_batches([each.columns for each in pieces], _schema(names)).combine_chunks()
    times = pa.concat_arrays([each.times for each in pieces])
    places = np.concatenate([each.places for each in pieces])
    row = np.zeros(count, np.int64)
    row[places] = np.arange(len(places))
    order: Any = pa.array(row)
    columns = [table.column(name).combine_chunks().take(order) for name in table.schema.names]
    return ReadLines(columns=pa.record_batch(columns, schema=table.schema), times=times.take(order))


def joined(
    read: ReadLines, others: "Sequence[tuple[int | None, ParsedLine]]", is_other: Bools, names: Sequence[str]
) -> ReadLines:
    """Return lines of two kinds in their order; `is_other` has a value for each line."""
    pieces = (
        _Piece(np.flatnonzero(~is_other), read.columns, read.times),
        _piece_of(np.flatnonzero(is_other), others, names),
    )
    return _joined(pieces, len(is_other), names)


def _piece_of(places: Int64s, reads: "Sequence[tuple[int | None, ParsedLine]]", names: Sequence[str]) -> _Piece:
    times = pa.array([time for time, _ in reads], pa.int64()).cast(TIME_TYPE)
    return _Piece(places, _columns_of([each for _, each in reads], names), times)


def _schema(names: Sequence[str]) -> pa.Schema:
    kinds: Any = {"reference_count": pa.int32()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in (*names, "reason")])


def _columns_of(rows: "Sequence[ParsedLine]", names: Sequence[str]) -> pa.RecordBatch:
    schema = _schema(names)
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(_PLACES)
    arrays = [pa.array(columns[_PLACES[each.name]], each.type) for each in schema]
    return pa.record_batch(arrays, schema=schema)


def _lines(block: bytes) -> Any:
    """Return the lines as binary, each with its line feed."""
    whole = block if block.endswith(b"\n") else block + b"\n"
    ends = np.flatnonzero(np.frombuffer(whole, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets.data), pa.py_buffer(whole)])


def _of_default(lines: Any, places: Int64s, zone: tzinfo, names: Sequence[str], end: int) -> tuple[_Piece, Int64s]:
    """Read lines that begin as in Apache's layout; return also the positions of those that end otherwise."""
    rests = pc.binary_slice(lines, TIME_SIZE, end).dictionary_encode()
    columns = _columns_of_texts(rests.dictionary, APACHE_LINES, _read, names).take(rests.indices)
    times = _times(lines, zone)
    torn = pc.is_in(columns.column("reason"), pa.array([Reason.TORN.value]))
    again = places[np.asarray(torn)] if pc.any(torn).as_py() else places[:0]
    return _Piece(places, _timed(columns, times), times), again


def _columns_of_texts(
    texts: Any, form: PlainForm | None, read: "Callable[[bytes], ParsedLine]", names: Sequence[str]
) -> pa.RecordBatch:
    """Return the fields of binary texts: of those that are plain by Arrow (read_plain), of the others by `read`."""
    if form is None or len(texts) < _FEW or not set(names) <= set(PLAIN_FIELDS):
        return _columns_of([*map(read, texts.to_pylist())], names)
    fields, is_plain = read_plain(texts, form)
    of_name = dict(zip(PLAIN_FIELDS, fields, strict=True))
    columns: list[Any] = [of_name[name] for name in names]
    plain = pa.record_batch([*columns, pa.nulls(int(is_plain.sum()), pa.string())], schema=_schema(names))
    others = np.flatnonzero(~is_plain)
    if not len(others):
        return plain
    piece = _columns_of([*map(read, texts.take(pa.array(others)).to_pylist())], names)
    order: Any = pa.array(np.argsort(np.concatenate((np.flatnonzero(is_plain), others)), kind="stable"))
    return pa.Table.from_batches([plain, piece]).combine_chunks().to_batches()[0].take(order)


def _timed(columns: pa.RecordBatch, times: Any) -> pa.RecordBatch:
    """Return the same with BAD_TIMESTAMP for lines without a time that are accesses otherwise."""
    if not times.null_count:
        return columns
    reasons = pc.coalesce(columns.column("reason"), _of_times(times))
    return columns.set_column(columns.schema.get_field_index("reason"), "reason", reasons)


_LONGEST_CACHED: Final = 1 << 10
"""The longest text of which the result is cached: a cache of long ones takes too much memory."""
_T = TypeVar("_T")


def _cached(function: "Callable[[bytes], _T]") -> "Callable[[bytes], _T]":
    """Cache the results for short texts."""
    cached = lru_cache(1 << 16)(function)

    def call(text: bytes) -> _T:
        """Return the result, from the cache if the text is short."""
        return cached(text) if len(text) <= _LONGEST_CACHED else function(text)

    return call


@_cached
def _read(text: bytes) -> ParsedLine:
    """Return the rest of a line in Apache's layout after its time."""
    try:
        return read_line(text.decode())
    except UnicodeDecodeError:
        return ParsedLine(reason=Reason.NOT_UTF8)


def _of_layouts(
    lines: Any, places: Int64s, zone: tzinfo, profile: Profile, names: Sequence[str]
) -> tuple[list[_Piece], Int64s]:
    """Read lines in the layouts of the profile, and in others of many lines; return also the remaining positions."""
    pieces = list[_Piece]()
    divided, others = _Divided.of(lines, places)
    for layout in profile.layouts:
        piece, divided = _of_layout(divided, zone, layout, names)
        pieces.append(piece)
    places = divided.places
    if len(places) > _FEW and not profile.is_stated:
        sample = lines.take(pa.array(places[:: max(1, len(places) // _MOST_OF_A_BLOCK)])).to_pylist()
        for layout in detect(cleaned(line.decode(errors="replace")) for line in sample):
            if layout.time is not None and not layout.is_bare and layout not in profile.layouts:
                piece, divided = _of_layout(divided, zone, layout, names, by_rule=True)
                pieces.append(piece)
    return pieces, np.union1d(others, divided.places)


class _Divided(NamedTuple):
    """Lines with a message, by position, divided there."""

    places: Int64s
    heads: Any
    rests: Any
    """Without MESSAGE."""

    @classmethod
    def of(cls, lines: Any, places: Int64s) -> "tuple[_Divided, Int64s]":
        """Return the lines with a message of those at some positions, and the positions of the others."""
        some = lines if len(places) == len(lines) else lines.take(pa.array(places))
        divided = pc.split_pattern(some, pattern=MESSAGE, max_splits=1)
        starts, lengths = np.asarray(divided.offsets)[:-1], np.asarray(divided.value_lengths())
        with_message = lengths == 2
        heads = starts if with_message.all() else starts[with_message]
        pieces = divided.values
        inside = cls(places[with_message], pieces.take(pa.array(heads)), pieces.take(pa.array(heads + 1)))
        return inside, places[~with_message]

    def where(self, which: Bools) -> "_Divided":
        """Return the selected lines."""
        if which.all():
            return self
        mask = pa.array(which)
        return _Divided(self.places[which], self.heads.filter(mask), self.rests.filter(mask))


_FEW: Final = 16
"""Lines that are read one by one sooner than their layout is detected."""


def _of_layout(
    divided: _Divided, zone: tzinfo, layout: Layout, names: Sequence[str], *, by_rule: bool = False
) -> tuple[_Piece, _Divided]:
    """Read the lines that have a layout; return also the others."""
    if not len(divided.places) or not layout.before.isascii():
        return _Piece(divided.places[:0], _columns_of((), names), pa.array([], TIME_TYPE)), divided
    before = layout.before if "level" in names else layout.before.replace("(?P<p>", "(?:")
    if before:
        group = "" if "(?P<" in before else "(?P<t>)"
        head: Any = pc.extract_regex(divided.heads, f"(?s)^{before}{group}$")
        fits = np.asarray(head.is_valid())
        head = head if fits.all() else head.filter(pa.array(fits))
    else:
        fits = np.asarray(pc.equal(pc.binary_length(divided.heads), pa.scalar(0)))
    some = divided.where(fits)
    rests = some.rests.dictionary_encode()
    read_rest = _rest_reader(layout, by_rule=by_rule)
    form = plain_rests(layout.after, by_rule=by_rule)
    if layout.time is not None and layout.time_is_after:
        read, own = [*map(read_rest, rests.dictionary.to_pylist())], layout.zone or zone
        columns = _columns_of([each for _, each in read], names)
        micros = [None if text is None else layout.time.parse(text, own) for text, _ in read]
        times: Any = pa.array(micros, pa.int64()).cast(TIME_TYPE).take(rests.indices)
    else:
        columns = _columns_of_texts(rests.dictionary, form, lambda text: read_rest(text)[1], names)
        if layout.time is None:
            times = pa.nulls(len(some.places), TIME_TYPE)
        else:
            times = layout_times(pc.struct_field(head, "t"), layout.time, layout.zone or zone)
    columns = columns.take(rests.indices)
    if "(?P<p>" in before:
        level = pc.struct_field(head, "p").cast(pa.string())
        columns = columns.set_column(columns.schema.get_field_index("level"), "level", level)
    inside = some.places
    is_read = pc.is_null(columns.column("reason"))
    if not pc.all(is_read).as_py():
        # the other lines may have another layout: they are read one by one
        inside, columns, times = inside[np.asarray(is_read)], columns.filter(is_read), times.filter(is_read)
        fits[fits] = np.asarray(is_read)
    return _Piece(inside, _timed(columns, times), times), divided.where(~fits)


@lru_cache(4)
def _rest_reader(layout: Layout, *, by_rule: bool) -> "Callable[[bytes], tuple[str | None, ParsedLine]]":
    return _cached(partial(_read_rest, layout, by_rule=by_rule))


def _read_rest(layout: Layout, text: bytes, *, by_rule: bool) -> tuple[str | None, ParsedLine]:
    """Return the time after a message, if it has one, and the message that a text begins with, without MESSAGE."""
    try:
        rest = MESSAGE + text.decode().rstrip("\n").removesuffix("\r")
    except UnicodeDecodeError:
        return None, ParsedLine(reason=Reason.NOT_UTF8)
    if "\x1b" in rest:
        rest = cleaned(rest)
    end = layout.end(rest)
    if end is None or (by_rule and end[1].rule is None):
        return None, ParsedLine(reason=_UNKNOWN)
    return end


def layout_times(texts: Any, kind: TimeFormat, zone: tzinfo) -> Any:
    """Return the times (TIME_TYPE) of binary texts in a format."""
    if kind is not ISO:
        encoded = texts.dictionary_encode()
        micros = [kind.parse(text.decode(), zone) for text in encoded.dictionary.to_pylist()]
        return pa.array(micros, pa.int64()).cast(TIME_TYPE).take(encoded.indices)
    # a log has many lines per second, and few zones: their texts are parsed once each
    encoded = pc.binary_slice(texts, SECONDS_SIZE, _NO_END).dictionary_encode()
    rests: Any = pc.extract_regex(encoded.dictionary.cast(pa.string()), _FRACTION_AND_ZONE)
    digits: Any = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(rests, "fraction"), 6, "0"), 0, 6)
    offsets = pc.struct_field(rests, "zone").dictionary_encode()
    parsed = [None if text is None else rest_of_time(text) for text in offsets.dictionary.to_pylist()]
    zones = list({each[1] or zone for each in parsed if each is not None})
    seconds = pc.binary_slice(texts, 0, SECONDS_SIZE).dictionary_encode()
    total: Any = pa.nulls(len(texts), pa.int64())
    for own in zones:
        part = pa.array([0 if each is not None and (each[1] or zone) == own else None for each in parsed], pa.int64())
        begins = micros_of_seconds(seconds.dictionary, own)
        micros = pc.add(part.take(offsets.indices), digits.cast(pa.int64()))
        total = pc.coalesce(total, pc.add(micros.take(encoded.indices), begins.take(seconds.indices)))
    return total.cast(TIME_TYPE)


_HOUR: Final = len("2026-11-21 10")
_COLON, _ZERO, _LARGEST_TEN = 0x3A, 0x30, 5


def micros_of_seconds(texts: Any, zone: tzinfo) -> Any:
    """Return second_micros of distinct binary texts, without nulls.

    Each hour is parsed twice, at its beginning and its end, and each text only of an hour in which the offset changes,
    or if it is no such time: a log of months may have another second in each line.
    """
    micros, is_known = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    if len(texts) >= _FEW and pc.all(pc.equal(pc.binary_length(texts), pa.scalar(SECONDS_SIZE))).as_py():
        hours = pc.binary_slice(texts, 0, _HOUR).dictionary_encode()
        names = [text.decode(errors="replace").replace("T", " ") for text in hours.dictionary.to_pylist()]
        begins = [second_micros(f"{hour}:00:00", zone) for hour in names]
        ends = [second_micros(f"{hour}:59:59", zone) for hour in names]
        is_even = [a is not None and b == a + 3_599_000_000 for a, b in zip(begins, ends, strict=True)]
        each = np.frombuffer(b"".join(texts.to_pylist()), np.uint8).reshape(-1, SECONDS_SIZE)[:, _HOUR:]
        digits = each[:, (1, 2, 4, 5)].astype(np.int64) - _ZERO
        is_known = (each[:, 0] == _COLON) & (each[:, 3] == _COLON) & ((digits >= 0) & (digits <= 9)).all(axis=1)
        is_known &= (digits[:, 0] <= _LARGEST_TEN) & (digits[:, 2] <= _LARGEST_TEN)
        hour_of = np.asarray(hours.indices)
        is_known &= np.array(is_even, np.bool_)[hour_of]
        micros = np.array([a or 0 for a in begins], np.int64)[hour_of] + digits @ _MICROS_OF_DIGITS
    others = np.flatnonzero(~is_known)
    parsed = [second_micros(texts[at].as_py().decode().replace("T", " "), zone) for at in others.tolist()]
    micros[others] = [0 if each is None else each for each in parsed]
    is_null = np.zeros(len(texts), np.bool_)
    is_null[others] = [each is None for each in parsed]
    return pa.array(micros, mask=is_null)


_MICROS_OF_DIGITS: Final = 1_000_000 * np.array((600, 60, 10, 1), np.int64)
"""Of the digits of minutes and seconds."""

_FRACTION_AND_ZONE: Final = r"^(?:[.,:](?P<fraction>[0-9]{1,9}))?(?P<zone>.*)$"


def _one_by_one(lines: Any, places: Int64s, zone: tzinfo, profile: Profile, names: Sequence[str]) -> _Piece:
    """Read the lines that no layout of many lines matches."""
    reads = [_read_alone(line, zone, profile) for line in lines.take(pa.array(places)).to_pylist()]
    return _piece_of(places, reads, names)


def _read_alone(line: bytes, zone: tzinfo, profile: Profile) -> tuple[int | None, ParsedLine]:
    try:
        text = line.decode().removesuffix("\n")
    except UnicodeDecodeError:
        return None, ParsedLine(reason=Reason.NOT_UTF8)
    return read_text_line(text, zone, profile)


def read_texts(
    texts: Any, beside: Callable[[Any], Any], zone: tzinfo, profile: Profile
) -> tuple[pa.RecordBatch, Int64s]:
    """Return the accesses in texts (an Arrow array) of objects, and the position of the text of each.

    A text is a message alone, with its time beside it, or a line in a layout with a time of its own. `beside` returns
    the times beside some texts, given which ones.
    """
    alone = pc.starts_with(texts, MESSAGE).fill_null(False)
    is_alone = np.asarray(alone)
    parts, places = list[pa.RecordBatch](), [np.zeros(0, np.int64)]
    if is_alone.any() and not profile.is_stated:
        rests = texts.filter(alone).cast(pa.binary()).dictionary_encode()
        columns = _columns_of_texts(rests.dictionary, MESSAGES, _read_bare, _READ_NAMES).take(rests.indices)
        times = beside(alone)
        parts.append(_rows_of(_timed(columns, times), times))
        places.append(np.flatnonzero(is_alone)[_is_good(columns, times)])
    others = np.flatnonzero(~is_alone if not profile.is_stated else np.ones_like(is_alone))
    if len(others):
        some = texts if len(others) == len(texts) else texts.take(pa.array(others))
        read = read_each(some.cast(pa.binary()).fill_null(b""), zone, profile, _READ_NAMES, end=_NO_END)
        parts.append(_rows_of(read.columns, read.times))
        places.append(others[_is_good(read.columns, read.times)])
    table = pa.Table.from_batches(parts, READ_SCHEMA).combine_chunks().to_batches()
    return (table[0] if table else pa.RecordBatch.from_pylist([], READ_SCHEMA)), np.concatenate(places)


@_cached
def _read_bare(text: bytes) -> ParsedLine:
    read = read_message(text.decode())
    return ParsedLine(reason=Reason.TORN) if read.reason is None and is_cut(read) else read


def _is_good(columns: pa.RecordBatch, times: Any) -> Bools:
    return np.asarray(pc.and_(pc.is_null(columns.column("reason")), pc.is_valid(times)))


def _rows_of(columns: pa.RecordBatch, times: Any) -> pa.RecordBatch:
    """Return the accesses among some lines."""
    arrays: list[Any] = [columns.column(name) for name in _READ_NAMES[:-1]]
    arrays += [times, pa.nulls(len(times), pa.string()), columns.column("decision")]
    rows, reasons = pa.record_batch(arrays, schema=READ_SCHEMA), columns.column("reason")
    return rows if reasons.null_count == len(rows) else rows.filter(pc.is_null(reasons))


def _unread_of(lines: Any, reasons: Any, times: Any) -> UnreadAccesses:
    """Count the unreadable accesses among the lines.

    A line without a time was written between its neighbours, since a log is written in order.
    """
    counter = UnreadCounter()
    bad = np.flatnonzero(np.asarray(pc.is_valid(reasons)))
    rejected = zip(
        bad.tolist(), lines.take(pa.array(bad)).to_pylist(), reasons.take(pa.array(bad)).to_pylist(), strict=True
    )
    is_timed, micros = np.asarray(pc.is_valid(times)), np.asarray(times.cast(pa.int64()).fill_null(0))
    places: Int64s | None = None
    timed = micros
    for place, line, reason in rejected:
        text = line.decode(errors="replace").rstrip("\r\n")
        trace = access_trace(text)
        if trace is None:
            continue
        if trace.principal is not None and not _HEADED.match(line) and _ESCAPED.search(trace.principal):
            trace = AccessTrace(decision=trace.decision)  # the layout may have changed the principal
        if is_timed[place] and trace.principal is not None:
            span = UnreadSpan(1, int(micros[place]), int(micros[place]))
        else:
            if places is None:
                places = np.flatnonzero(is_timed)
                timed = micros[places]
            at = int(np.searchsorted(places, place))
            # one that begins with a time may hold a part of the next line
            span = between_from(timed, at) if is_timed[place] else between(timed, at)
        counter.add(*trace, Reason(reason), span, broker=broker_of_line(text))
    return counter.total


_HEADED: Final = re.compile(HEAD.encode(), re.ASCII)
_ESCAPED: Final = re.compile("\\\\|&|''|\"\"")


_NEIGHBOURS: Final = 8
"""The lines on each side of one without a time that must be in the order of their times."""
_DISORDER: Final = 1_000_000
"""The us by which threads may write their lines out of order."""


def between(times: Int64s, at: int) -> UnreadSpan:
    """Return the span of a line before the one at a position, given the times of the lines with a time.

    Joined logs, and logs in another order, do not define it.
    """
    near = times[max(at - _NEIGHBOURS, 0) : at + _NEIGHBOURS]
    if (np.diff(near) < -_DISORDER).any():
        return UnreadSpan(1, None, None)
    first = int(times[at - 1]) if at else None
    last = int(times[at]) if at < len(times) else None
    if first is None or last is None:
        return UnreadSpan(1, first, last)
    return UnreadSpan(1, min(first, last), max(first, last))


def between_from(times: Int64s, at: int) -> UnreadSpan:
    """Return the span of a line that begins with the time at a position, and may hold a part of the next one."""
    first = int(times[at])
    last = int(times[at + 1]) if at + 1 < len(times) else first
    return UnreadSpan(1, first, max(first, last))


def _of_times(times: Any) -> Any:
    return pc.if_else(pc.is_null(times), pa.scalar(Reason.BAD_TIMESTAMP.value), pa.scalar(None, pa.string()))


def _times(lines: Any, zone: tzinfo) -> Any:
    """Return the times of lines that begin with `[2026-11-21 10:00:00,123`, null if there is no such time."""
    # a log has many lines per second: dates are parsed once each
    seconds = pc.binary_slice(lines, 1, _SECOND).dictionary_encode()
    begins = micros_of_seconds(seconds.dictionary, zone)
    millis = pc.binary_slice(lines, _SECOND + 1, TIME_SIZE).cast(pa.string()).cast(pa.int64())
    return pc.add(begins.take(seconds.indices), pc.multiply(millis, pa.scalar(1000))).cast(TIME_TYPE)
