"""Times of accesses from text: ISO 8601 with or without an offset, or milliseconds since 1970.

A number that would be a time of 1970 to 1973 in milliseconds counts seconds: no Kafka has logged anything then.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from aclog.usage.accesses.access_batch import TIME_TYPE

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, in ms since 1970."""
FIRST_SECOND, LAST_SECOND = 1_000_000_000, 99_999_999_999
"""Numbers that count seconds: from September 2001 on; in ms, January 1970 to March 1973."""
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?([Zz]|[+-]\d{2}:?\d{2})?", re.ASCII
)
_PLAIN: Final = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})\z"
"""What Arrow reads as `micros_of_text` does."""
_MILLIS = re.compile(r"-?\d{1,15}", re.ASCII)


def times_of_texts(texts: Any, zone: tzinfo) -> Any:
    """Return the times (TIME_TYPE) of an Arrow array of texts, null where a text is null or no time.

    `zone` is that of times without an offset.
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
    known = pc.and_(pc.greater_equal(millis, pa.scalar(FIRST)), pc.less_equal(millis, pa.scalar(LAST)))
    within = pc.if_else(known, millis.cast(pa.int64()), pa.scalar(None, pa.int64()))
    return pc.multiply(within, pa.scalar(1000, pa.int64())).cast(TIME_TYPE)


def local_micros(times: Any, zone: tzinfo) -> Any:
    """Return the times (TIME_TYPE) of an Arrow array of naive timestamps in us of a zone."""
    encoded = times.dictionary_encode()
    naive = encoded.dictionary.to_pylist()
    micros = [None if time is None else micros_of(local_time(time, zone)) for time in naive]
    return pa.array(micros, pa.int64()).cast(TIME_TYPE).take(encoded.indices)


def micros_of_text(text: str, zone: tzinfo) -> int | None:
    """Return the time of a text in us since 1970, None if it is none."""
    if _MILLIS.fullmatch(text):
        return micros_of_millis(int(text))
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day, minute, second, fraction, offset = found.groups()
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
    """Return us since 1970, None beyond the years 1 to 9999."""
    if FIRST_SECOND <= millis <= LAST_SECOND:
        millis *= 1000
    return millis * 1000 if FIRST <= millis <= LAST else None


def local_time(time: datetime, zone: tzinfo) -> datetime:
    """Return a naive time as that of a zone.

    When clocks are set back, a repeated time is the earlier one; when they are set forward, a skipped time is read with
    the offset from before the change.
    """
    return time.replace(tzinfo=zone, fold=0)
