"""Readers of single fields by schema type: kio's, and lenient ones that accept what Java accepts.

Like kio's, all return a value and the number of bytes read.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from kio.serial._parse import get_reader
from kio.serial.readers import read_int16, read_int64

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import read_unsigned_varint
from aclog.nodes.wire.error_codes import KnownErrorCode, error_code

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "uint32": 4,
    "timedelta_i32": 4, "int64": 8, "uint64": 8, "float64": 8, "timedelta_i64": 8, "datetime_i64": 8, "uuid": 16,
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
_FIRST_TIME = _EPOCH - timedelta(milliseconds=1)
_LONGEST = timedelta(days=999_999_998)


def least_size(kafka_type: str, flexible: bool) -> int:
    """Return the minimum encoded size of a field; strings, bytes and records may be empty or null."""
    if kafka_type in _SIZES:
        return _SIZES[kafka_type]
    if flexible:
        return 1
    return 2 if kafka_type == "string" else 4


def array_length(buffer: bytes, position: int, flexible: bool) -> tuple[int | None, int]:
    """Read the length of an array (None for null) and the size of the length prefix.

    Raises:
        DecodeError: Truncated or negative.

    """
    if flexible:
        announced, after = read_unsigned_varint(buffer, position)
        return (None if announced == 0 else announced - 1), after - position
    after = position + 4
    if after > len(buffer):
        raise DecodeError("truncated array length", position=position)
    length = int.from_bytes(buffer[position:after], "big", signed=True)
    if length < -1:
        raise DecodeError(f"array length {length}: expected -1 or more", position=position)
    return (None if length == -1 else length), 4


def value_reader(kafka_type: str, flexible: bool, optional: bool, *, lenient: bool) -> Reader:
    """Return kio's reader of a type or, if `lenient`, one that accepts every value that Java accepts."""
    native: Reader = get_reader(kafka_type, flexible, optional)
    if kafka_type == "datetime_i64":
        return _time
    if not lenient:
        return native
    if kafka_type == "string":
        return _string_reader(flexible, optional)
    return _LENIENT.get(kafka_type, native)


def _string_reader(flexible: bool, optional: bool) -> Reader:
    """Return a reader of strings that replaces invalid UTF-8 with U+FFFD, as Java does."""
    raw: Reader = get_reader("bytes", True, optional)

    def read_compact(buffer: bytes, position: int) -> tuple[str | None, int]:
        """See Reader."""
        data, size = raw(buffer, position)
        return (None if data is None else data.decode(errors="replace")), size

    def read_legacy(buffer: bytes, position: int) -> tuple[str | None, int]:
        """See Reader."""
        length, size = read_int16(buffer, position)
        start = position + size
        if length == -1 and optional:
            return None, size
        if not 0 <= length <= len(buffer) - start:
            raise DecodeError(f"string of {length} bytes, {len(buffer) - start} left", position=position)
        return buffer[start : start + length].decode(errors="replace"), size + length

    return read_compact if flexible else read_legacy


def _bool(buffer: bytes, position: int) -> tuple[bool, int]:
    if position >= len(buffer):
        raise DecodeError("truncated before a bool", position=position)
    return buffer[position] != 0, 1


def _error_code(buffer: bytes, position: int) -> tuple[KnownErrorCode, int]:
    code, size = read_int16(buffer, position)
    return error_code(code), size


def _duration(buffer: bytes, position: int) -> tuple[timedelta, int]:
    """Read milliseconds, clamped to timedelta's range."""
    millis, size = read_int64(buffer, position)
    try:
        return max(-_LONGEST, min(_LONGEST, timedelta(milliseconds=millis))), size
    except OverflowError:
        return (_LONGEST if millis > 0 else -_LONGEST), size


def _time(buffer: bytes, position: int) -> tuple[datetime, int]:
    """Read ms since 1970, clamped to datetime's range; negative values (none) become 1 ms before 1970."""
    millis, size = read_int64(buffer, position)
    if millis < 0:
        return _FIRST_TIME, size
    try:
        return min(_LAST_TIME, _EPOCH + timedelta(milliseconds=millis)), size
    except OverflowError:
        return _LAST_TIME, size


_LENIENT: dict[str, Reader] = {
    "bool": _bool, "error_code": _error_code, "timedelta_i64": _duration,
}  # fmt: skip
