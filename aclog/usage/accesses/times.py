"""Times in the text around a message: the formats of log4j, logback, shippers and exports."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, TypeAlias

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = "|".join(_MONTHS)
_LEAST: Final = 1_000_000_000
_MOST: Final = 4_102_444_800
"""The seconds since 1970 of September 2001 and of 2100: times of a Kafka."""
_SCALES: Final = (1, 1_000, 1_000_000, 1_000_000_000)
"""Units of numbers, per second. A number lies between _LEAST and _MOST in one unit only."""

Fields: TypeAlias = dict[str, str]


def epoch_micros(text: str) -> int | None:
    """Return the time of a number, in us since 1970; None if its size does not determine its unit.

    The unit is s, ms, us or ns, in which the number is between September 2001 and 2100; a number of any other size
    could be either of two.
    """
    whole, _, fraction = text.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) < 20 and (not fraction or fraction.isdigit())):
        return None
    for scale in _SCALES:
        if _LEAST <= int(whole) // scale < _MOST:
            exact = int(whole + f"{fraction:0<9}"[:9])  # in 10^-9 of the unit
            return exact // (1_000 * scale)
    return None


@frozen
class TimeFormat:
    """A format of times."""

    name: str
    """As in a conversion `%d{name}`; empty for ISO 8601."""
    regex: str
    """For Python's re and for RE2, without groups that capture."""
    parse: Callable[[str, tzinfo], int | None]
    """The us since 1970 of a text that the expression matches; None for no such time."""
    is_complete: bool = True
    """Whether it has a date and a time of day."""


# ISO 8601 as loggers write it: `T` or a blank, a dot or a comma, with or without an offset.


_ZONES: Final = r"Z|(?:UTC|GMT)(?:[+-][0-9]{2}:?[0-9]{2})?|[+-][0-9]{2}:?[0-9]{2}"
_OFFSET: Final = rf"(?: ?(?:{_ZONES})|[+-][0-9]{{2}})"
"""After a blank, hours alone are no offset: `-12` may be another field."""
_FRACTION: Final = r"(?:[.,:][0-9]{1,9})"
_SECONDS: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
SECONDS_SIZE: Final = len("2026-11-21 10:00:00")
_REST: Final = re.compile(rf"(?:[.,:]([0-9]{{1,9}}))?(?: ?({_ZONES})|([+-][0-9]{{2}}))?", re.ASCII)


@lru_cache(1 << 14)
def second_micros(text: str, zone: tzinfo) -> int | None:
    """Return the us since 1970 of `2026-11-21 10:00:00`, local to a zone; None for no such time."""
    try:
        return _micros(datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError):
        return None


@lru_cache(1 << 14)
def rest_of_time(text: str) -> tuple[int, tzinfo | None] | None:
    """Return the us in the text after the seconds of a time, and its zone or None; None for any other text."""
    match = _REST.fullmatch(text)
    if match is None:
        return None
    offset = match[2] or match[3]
    zone = None if offset is None else _zone_of(offset)
    if offset is not None and zone is None:
        return None
    return int(f"{match[1] or '0':0<6}"[:6]), zone


def _micros(naive: datetime, zone: tzinfo) -> int:
    return (naive.replace(tzinfo=zone, fold=0) - _EPOCH) // timedelta(microseconds=1)


def _zone_of(text: str) -> tzinfo | None:
    if text in {"Z", "UTC", "GMT"}:
        return UTC
    text = text.removeprefix("UTC").removeprefix("GMT")
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or "0")
    if minutes >= 24 * 60:
        return None
    return timezone(timedelta(minutes=minutes) * (-1 if text[0] == "-" else 1))


def parse_iso(text: str, zone: tzinfo) -> int | None:
    """Return the us since 1970 of a time in ISO 8601; None for no such time."""
    rest = rest_of_time(text[SECONDS_SIZE:])
    seconds = None if rest is None else second_micros(text[:SECONDS_SIZE].replace("T", " "), rest[1] or zone)
    return None if rest is None or seconds is None else seconds + rest[0]


ISO: Final = TimeFormat("", rf"{_SECONDS}{_FRACTION}?{_OFFSET}?", parse_iso)


# Formats of java.text.SimpleDateFormat, and the names of log4j's own.


_LETTERS: Final = {
    "y": r"[0-9]{4}",
    "u": r"[0-9]{4}",
    "M": r"[0-9]{1,2}",
    "d": r"[0-9]{1,2}",
    "H": r"[0-9]{1,2}",
    "h": r"[0-9]{1,2}",
    "m": r"[0-9]{2}",
    "s": r"[0-9]{2}",
    "S": r"[0-9]{1,9}",
    "n": r"[0-9]{1,9}",
    "a": r"(?:AM|PM|am|pm)",
    "E": r"[A-Za-z]{3,9}",
    "X": r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)",
    "x": r"[+-][0-9]{2}(?::?[0-9]{2})?",
    "Z": r"[+-][0-9]{4}",
    "z": r"(?:UTC|GMT|Z)",
}
_PIECES: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")


def format_of(pattern: str) -> TimeFormat:
    """Return the format of `%d{pattern}`. Raises ConfigError: an unknown letter, or a format without order."""
    name = pattern.strip()
    if name in _NAMED:
        return _NAMED[name]
    return _own_format(name)


@lru_cache(64)
def _own_format(pattern: str) -> TimeFormat:
    position, regex, fields = 0, "", list[str]()
    for piece in _PIECES.finditer(pattern):
        if piece.start() != position:
            break
        position = piece.end()
        text, letter = piece[0], piece[2]
        if letter is None:
            regex += re.escape("'" if text == "''" else piece[3] or (piece[1] or "").replace("''", "'"))
            continue
        if letter not in _LETTERS or letter in fields:
            raise ConfigError(
                f"%d{{{pattern}}}: unknown or repeated letter {letter!r}: expected y, M, d, H, m, s, S, ..."
            )
        fields.append(letter)
        regex += f"({_letter_regex(letter, len(text))})"
    if position != len(pattern):
        raise ConfigError(f"%d{{{pattern}}}: not a format of dates: expected one as yyyy-MM-dd HH:mm:ss,SSS")
    match = re.compile(regex, re.ASCII).fullmatch

    def parse(text: str, zone: tzinfo) -> int | None:
        """Return the time of a text, in us since 1970."""
        groups = match(text)
        return None if groups is None else _of_fields(dict(zip(fields, groups.groups(), strict=True)), zone)

    whole = {"d", "m", "s"} <= set(fields) and bool({"y", "u"} & set(fields)) and ("M" in fields)
    is_complete = whole and ("H" in fields or {"h", "a"} <= set(fields))
    return TimeFormat(pattern, re.sub(r"(?<!\\)\((?!\?)", "(?:", regex), parse, is_complete)


def _letter_regex(letter: str, length: int) -> str:
    if letter == "M" and length >= 3:
        return rf"(?:{_MONTH})[a-z]*"
    if letter in "yu" and length == 2:
        return r"[0-9]{2}"
    if letter in "MdHh" and length >= 2:
        return r"[0-9]{2}"
    return rf"[0-9]{{{length}}}" if letter in "Sn" else _LETTERS[letter]


def _of_fields(fields: Fields, zone: tzinfo) -> int | None:
    year = fields.get("y", fields.get("u", "1970"))
    month = fields.get("M", "1")
    hour = int(fields.get("H", fields.get("h", "0")))
    if "h" in fields:
        hour = hour % 12 + (12 if fields.get("a", "").upper() == "PM" else 0)
    offset = next((fields[each] for each in "XxZz" if each in fields), None)
    own = zone if offset is None else _zone_of(offset)
    if own is None:
        return None
    number = _MONTHS.index(month[:3]) + 1 if month[:3] in _MONTHS else int(month)
    try:
        time = datetime(  # noqa: DTZ001 - naive: local to the zone
            int(year) + (2000 if len(year) == 2 else 0), number, int(fields.get("d", "1")), hour,
            int(fields.get("m", "0")), int(fields.get("s", "0")),
        )  # fmt: skip
        return _micros(time, own) + int(f"{fields.get('S', fields.get('n', '0')):0<6}"[:6])
    except (ValueError, OverflowError):
        return None


def _parse_epoch(scale: int) -> Callable[[str, tzinfo], int | None]:
    def parse(text: str, _: tzinfo) -> int | None:
        micros = epoch_micros(text)
        is_unit = micros is not None and _LEAST <= int(text.partition(".")[0]) // scale < _MOST
        return micros if is_unit else None

    return parse


SECONDS: Final = TimeFormat("UNIX", r"[0-9]{10}(?:\.[0-9]{1,9})?", _parse_epoch(1))
MILLIS: Final = TimeFormat("UNIX_MILLIS", r"[0-9]{13}", _parse_epoch(1_000))
NUMBER: Final = TimeFormat("EPOCH", r"[0-9]{9,19}(?:\.[0-9]{1,9})?", lambda text, _: epoch_micros(text))
"""A number whose size determines its unit."""


def _parse_basic(text: str, zone: tzinfo) -> int | None:
    digits = re.sub("[^0-9]", "", text)
    day, time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}", f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}"
    return parse_iso(f"{day} {time}.{digits[14:23]}", zone)


def _parse_date(text: str, zone: tzinfo) -> int | None:
    day, month, year, rest = text.split(" ")
    return parse_iso(f"{year}-{_MONTHS.index(month) + 1:02}-{day} {rest}", zone)


_ABSOLUTE: Final = TimeFormat(
    "ABSOLUTE", rf"[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}{_FRACTION}?", lambda _, __: None, is_complete=False
)
_BASIC: Final = TimeFormat("COMPACT", r"[0-9]{8}(?:T[0-9]{6}(?:[.,]?[0-9]{3,9})?|[0-9]{9})", _parse_basic)
_DATE: Final = TimeFormat(
    "DATE", rf"[0-9]{{2}} (?:{_MONTH}) [0-9]{{4}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}[.,][0-9]{{3,9}}",
    _parse_date,
)  # fmt: skip
_SLASHES: Final = TimeFormat(
    "yyyy/MM/dd HH:mm:ss", rf"[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}{_FRACTION}?{_OFFSET}?",
    lambda text, zone: parse_iso(text.replace("/", "-", 2), zone),
)  # fmt: skip

_ISO_NAMES: Final = (
    "", "ISO8601", "ISO8601_PERIOD", "ISO8601_PERIOD_MICROS", "ISO8601_OFFSET_DATE_TIME_HH",
    "ISO8601_OFFSET_DATE_TIME_HHMM", "ISO8601_OFFSET_DATE_TIME_HHCMM", "DEFAULT", "DEFAULT_PERIOD",
    "DEFAULT_MICROS", "DEFAULT_NANOS",
    *(
        f"yyyy-MM-dd{sep}HH:mm:ss{fraction}{zone}"
        for sep in (" ", "'T'")
        for fraction in ("", ",SSS", ".SSS", ":SSS", ",SSSSSS", ".SSSSSS", ",SSSSSSSSS", ".SSSSSSSSS", ".nnnnnnnnn")
        for zone in ("", "X", "XX", "XXX", "Z", " Z", "'Z'", " z")
    ),
)  # fmt: skip
_NAMED: Final = {
    **dict.fromkeys(_ISO_NAMES, ISO),
    **dict.fromkeys(("ABSOLUTE", "ABSOLUTE_PERIOD", "ABSOLUTE_MICROS", "ABSOLUTE_NANOS"), _ABSOLUTE),
    **dict.fromkeys(("COMPACT", "ISO8601_BASIC", "ISO8601_BASIC_PERIOD"), _BASIC),
    **dict.fromkeys(("DATE", "DATE_PERIOD"), _DATE),
    _SLASHES.name: _SLASHES,
    "yyyy/MM/dd HH:mm:ss,SSS": _SLASHES,
    "yyyy/MM/dd HH:mm:ss.SSS": _SLASHES,
    "UNIX": SECONDS,
    "EPOCH": NUMBER,
    "UNIX_MILLIS": MILLIS,
}
KNOWN_FORMATS: Final[Sequence[TimeFormat]] = (ISO, _SLASHES, _DATE, _own_format("dd/MMM/yyyy:HH:mm:ss Z"), _BASIC)
"""Formats that are detected: those in which the order of day and month is certain."""
CLOCK: Final = _ABSOLUTE
"""A time of day without a date, which no time can be read of."""
