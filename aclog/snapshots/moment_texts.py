"""What a text means as a moment (`--as-of`): an offset, an instant, or a time as people say it. Pure."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.snapshots.moments import LATEST, Moment, moment_text, utc_of
from aclog.snapshots.spoken_times import UNITS, spoken_time
from aclog.snapshots.zones import instant_of, parse_zone, start_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"@(\d{1,19})")
_LEAST_MILLISECONDS = 10**11
"""A smaller number is more likely in seconds: as milliseconds it is before March 1973."""
_LONGEST = 120
"""No text that means a time is longer."""
_SHOWN = 80
"""Errors quote no more of a text than this."""
_ZONE = r"[A-Za-z_]+/[A-Za-z0-9_+/-]+|UTC|GMT|Z|[+-]\d\d:?\d\d"
_WITH_ZONE = re.compile(rf"(.*\S)(?:\s+|(?<=:\d\d)(?=[Z+-]))({_ZONE})", re.IGNORECASE)
_TWO_ORDERS = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4}|\d{2})\b.*")
_SLASHES = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})\b.*")


class Form(Enum):
    """How a text names a moment."""

    EXACT = "exact"
    """An offset, `latest`, or an instant: it means the same everywhere and at all times."""
    CLOCK = "clock"
    """A date, perhaps with a time, without a zone."""
    SPOKEN = "spoken"
    """It counts from now, or from today."""


@frozen(kw_only=True)
class ReadMoment:
    """What a text was taken for; the moment is None for the newest state."""

    moment: Moment | None
    form: Form


def read_moment(text: str, *, now: datetime, zone: tzinfo = UTC) -> ReadMoment:
    """Return the moment that a text names; what it leaves open is of the zone, unless it ends with one itself.

    An integer is an offset, always; `@1795227930840` is in ms since 1970. The other forms are ISO 8601 and those of
    `spoken_time`, and `now`. What could mean two things is refused, not guessed.

    Raises:
        ConfigError: none of these, or an ambiguous one; says which texts are clear.

    """
    words = " ".join(text.split())
    if words.lower() == LATEST:
        return ReadMoment(moment=None, form=Form.EXACT)
    if words.isascii() and words.isdigit() and len(words) < 20:
        return ReadMoment(moment=int(words), form=Form.EXACT)
    try:
        found = _time(words, now=now, zone=zone) if len(words) <= _LONGEST else None
    except ConfigError as error:
        raise ConfigError(f"invalid offset or time {text[:_SHOWN]!r}: {error}") from None
    if found is None:
        raise ConfigError(f"invalid offset or time {text[:_SHOWN]!r}: {_expected(words)}")
    return found


def _time(words: str, *, now: datetime, zone: tzinfo) -> ReadMoment | None:
    if found := _MILLISECONDS.fullmatch(words):
        return ReadMoment(moment=_since_1970(int(found[1])), form=Form.EXACT)
    if words.lower() == "now":
        return ReadMoment(moment=now, form=Form.SPOKEN)
    written = _iso(words, zone, Form.CLOCK)
    if written is not None:
        return written
    named = _WITH_ZONE.fullmatch(words)
    form, rest = Form.CLOCK, words
    if named is not None:
        form, rest, zone = Form.EXACT, named[1], parse_zone(named[2])
    written = _iso(rest, zone, form)
    if written is not None:
        return written
    spoken = spoken_time(rest.lower(), now=now, zone=zone)
    return None if spoken is None else ReadMoment(moment=spoken, form=Form.SPOKEN)


def _iso(words: str, zone: tzinfo, form: Form) -> ReadMoment | None:
    if words.isdigit():  # digits alone never name a time, although fromisoformat accepts some of them
        return None
    try:
        return ReadMoment(moment=start_of(date.fromisoformat(words), zone), form=form)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(words)
    except ValueError:
        return None
    if time.tzinfo is not None:
        return ReadMoment(moment=utc_of(time), form=Form.EXACT)
    return ReadMoment(moment=instant_of(time, zone), form=form)


def _since_1970(number: int) -> datetime:
    if number < _LEAST_MILLISECONDS:
        raise ConfigError(f"@ is followed by milliseconds since 1970: seconds are @{number}000")
    try:
        return _EPOCH + timedelta(milliseconds=number)
    except OverflowError:
        raise ConfigError("that is after the year 9999") from None


def _expected(words: str) -> str:
    if found := _TWO_ORDERS.fullmatch(words):
        year = found[3] if len(found[3]) == 4 else f"20{found[3]}"
        orders = ((found[1], found[2]), (found[2], found[1]))
        dates = sorted({f"{year}-{int(month):02}-{int(day):02}" for month, day in orders if 1 <= int(month) <= 12})
        if dates:
            return f"which is the month? expected {' or '.join(dates)}"
    if found := _SLASHES.fullmatch(words):
        return f"expected {found[1]}-{int(found[2]):02}-{int(found[3]):02}"
    if re.fullmatch(rf"\d{{1,9}}\s*({'|'.join(UNITS)})", words.lower()):
        return f"expected {words} ago, or -{words}"
    if re.fullmatch(r"-\s*\d+", words):
        return f"expected a unit, such as {words}d, or an end offset, which is not negative"
    if words.lower().startswith("tomorrow"):
        return "that is in the future: expected a time until now"
    return (
        f"expected an end offset, a time such as 2026-11-20T10:00:00Z, or {LATEST}, or as people say it: "
        "yesterday 18:00, 3d ago, -1h, last monday"
    )


def in_words(read: ReadMoment, zone: tzinfo, *, now: datetime) -> str:
    """Return what a text was taken for, for people: the instant in UTC, and in the zone."""
    if not isinstance(read.moment, datetime):
        return moment_text(read.moment)
    utc, local = read.moment.astimezone(UTC), read.moment.astimezone(zone)
    parts = [f"{moment_text(utc)} ({local:%A})"]
    if local.utcoffset():
        name = local.tzname() or ""
        of_zone = f" ({name})" if name[:1].isalpha() and not name.startswith("UTC") else ""
        parts = [f"{moment_text(utc)}", f"{local:%A} {local.isoformat(' ')}{of_zone} local time"]
    if read.moment > now:
        parts.append("which is in the future: the newest state")
    return ", ".join(parts)
