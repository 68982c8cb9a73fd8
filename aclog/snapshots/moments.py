"""Moments (`--as-of`): offsets, instants and times in the forms that people use."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from aclog.metalog.batches import scan_batches
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.native import regex
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from aclog.metalog.committed_log import LogReader

# Time zones by name, and the instant at which a wall clock in a zone shows a time.


LOCAL = "local"
"""The name of the zone that this machine is set to."""

_OFFSET = regex(r"([+-])(\d{2}):?(\d{2})")
_MIDNIGHT = time(0)


class LocalZone(tzinfo):
    """The zone that this machine is set to (TZ, or /etc/localtime), with its past and future changes."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        """See tzinfo."""
        if dt is None:
            return None
        # Not of astimezone(): since Python 3.13 it moves a time that clocks skip to the other side of the gap.
        naive = dt.replace(tzinfo=None)
        return naive - datetime.fromtimestamp(naive.timestamp(), UTC).replace(tzinfo=None)

    def dst(self, dt: datetime | None) -> timedelta | None:
        """See tzinfo; how much of the offset is summer time is unknown."""
        del dt
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        """See tzinfo."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime) -> datetime:
        """See tzinfo."""
        local = dt.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=self)
        return wall if wall.utcoffset() == local.utcoffset() else wall.replace(fold=1)

    def __str__(self) -> str:
        return LOCAL


def parse_zone(text: str) -> tzinfo:
    """Return the zone of a name such as Europe/Berlin, of an offset such as +02:00, of UTC, or of `local`.

    Abbreviations are refused: CST is in America, in China, and in Cuba.

    Raises:
        ConfigError: no such zone.

    """
    name = text.strip()
    if name.lower() == LOCAL:
        return LocalZone()
    if name.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    if match := _OFFSET.fullmatch(name):
        return _fixed(text, match)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415  # no command starts slower for it

    try:
        if "/" in name:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # not there, out of the directory, a directory
        pass
    raise ConfigError(f"unknown time zone {text!r}: {_expected(name)}")


def instant_of(wall: datetime, zone: tzinfo) -> datetime:
    """Return the instant, in UTC, at which clocks in the zone show this time (naive).

    Raises:
        ConfigError: clocks skip it, or show it twice; both instants that it could mean are named.

    """
    first, second = _both(wall, zone)
    if first == second:
        return first
    either = f"{_text(min(first, second))} or {_text(max(first, second))}"
    if first > second:  # PEP 495: in a gap, fold=0 counts with the offset before it
        times = ", ".join(f"{each.astimezone(zone):%H:%M}" for each in (second, first))
        raise ConfigError(f"{wall} does not exist in {zone}: clocks skip it; expected {either} ({times} there)")
    raise ConfigError(f"{wall} occurs twice in {zone}, as clocks go back: expected {either}")


def start_of(day: date, zone: tzinfo) -> datetime:
    """Return the first instant of a day, in UTC; where clocks skip midnight, that at which they do.

    Raises:
        ConfigError: the zone skips the whole day.

    """
    first, second = _both(datetime.combine(day, _MIDNIGHT), zone)
    # The earlier of two midnights; of a skipped one, the instant of the change, which comes with fold=0.
    if first.astimezone(zone).date() != day:
        raise ConfigError(f"{day} does not exist in {zone}: expected a time such as {_text(first)}")
    return min(first, second) if first < second else first


def _both(wall: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the instants with fold=0 and fold=1: the same one, unless clocks are changed around this time."""
    try:
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    except (OverflowError, ValueError) as error:
        raise ConfigError(f"{wall} is outside the years 1 to 9999") from error
    return first, second


def _fixed(text: str, match: re.Match[str]) -> tzinfo:
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    if offset >= timedelta(days=1) or int(match[3]) > 59:
        raise ConfigError(f"unknown time zone {text!r}: expected an offset below 24 hours, such as +02:00")
    return timezone(-offset if match[1] == "-" else offset)


def _expected(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # no command starts slower for it
    from zoneinfo import available_timezones  # noqa: PLC0415  # as above

    names = available_timezones()
    if not names:
        return "this machine has no data of time zones (`pip install tzdata`); an offset such as +02:00 needs none"
    by_fold = {each.lower(): each for each in names if "/" in each}
    close = get_close_matches(name.lower(), by_fold, n=1)
    hint = f"did you mean {by_fold[close[0]]}?" if close else "expected a name such as Europe/Berlin,"
    return f"{hint} {'Others are' if close else ''} an offset such as +02:00, UTC, or {LOCAL}".replace("  ", " ")


def _text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


# Relative times in words: `3d ago`, `-1h30m`, `yesterday 18:00`, `last monday`, `18:00`. Pure.


UNITS = {
    "s": "seconds", "sec": "seconds", "secs": "seconds", "second": "seconds", "seconds": "seconds",
    "m": "minutes", "min": "minutes", "mins": "minutes", "minute": "minutes", "minutes": "minutes",
    "h": "hours", "hr": "hours", "hrs": "hours", "hour": "hours", "hours": "hours",
    "d": "days", "day": "days", "days": "days",
    "w": "weeks", "week": "weeks", "weeks": "weeks",
}  # fmt: skip
_AMOUNT = r"(\d{1,9}|an?(?= ))\s*([a-z]+)"
_AMOUNTS = rf"(?:{_AMOUNT})(?:(?:\s*,\s*|\s+and\s+|\s*)(?:{_AMOUNT}))*"
_AGO = regex(rf"(?:-\s*(?P<minus>{_AMOUNTS})|(?P<ago>{_AMOUNTS})\s+ago)")
_EACH = regex(_AMOUNT)

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = r"(?P<noon>noon)|(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?\s*(?P<half>[ap]m)?"
_DAY = regex(rf"(?:(?P<day>today|yesterday|last\s+(?P<weekday>[a-z]+))(?:,?\s+(?:at\s+)?|$))?(?:{_CLOCK})?")


def spoken_time(text: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    """Return the instant, in UTC, of a text in lower case; None if it has none of these forms.

    Days are those of the zone and begin at midnight; `last monday` is the last Monday before today. `3d ago` is 72
    hours ago in whole seconds, even if clocks were changed meanwhile.

    Raises:
        ConfigError: the text has one of these forms, but is no valid time, or a future one.

    """
    moment = _ago(text, now)
    if moment is None:
        moment = _of_day(text, now=now, zone=zone)
    if moment is not None and moment > now:
        raise ConfigError("the time is in the future: expected a past time")
    return moment


def since_text(text: str) -> str:
    """Return the text of a moment that `--since` names: `90d` and `1h30m` are so long ago, as for git and kubectl."""
    words = " ".join(text.split())
    return f"{words} ago" if re.fullmatch(_AMOUNTS, words.lower()) else text


def _ago(text: str, now: datetime) -> datetime | None:
    form = _AGO.fullmatch(text)
    if form is None:
        return None
    age = timedelta()
    try:
        for amount, unit in _EACH.findall(form["minus"] or form["ago"]):
            if unit not in UNITS:
                raise ConfigError(_no_unit(unit))
            age += timedelta(**{UNITS[unit]: 1 if amount.startswith("a") else int(amount)})
        return now.replace(microsecond=0) - age
    except OverflowError:
        raise ConfigError("the time is before the year 1") from None


def _no_unit(unit: str) -> str:
    if unit in {"mo", "month", "months", "y", "yr", "year", "years"}:
        return "months and years vary in length: expected days, such as 90d ago, or a date"
    return f"unknown unit {unit[:20]!r}: expected s, m, h, d or w"


def _of_day(text: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    form = _DAY.fullmatch(text)
    if not text or form is None:
        return None
    today = now.astimezone(zone).date()
    if form["weekday"] is not None:
        named = [number for number, name in enumerate(_DAYS) if form["weekday"] in (name, name[:3])]
        if not named:
            return None
        today -= timedelta(days=(today.weekday() - named[0] - 1) % 7 + 1)
    elif form["day"] == "yesterday":
        today -= timedelta(days=1)
    if form["noon"] is None and form["hour"] is None:
        return start_of(today, zone)
    clock = _clock(form)
    return None if clock is None else instant_of(datetime.combine(today, clock), zone)


def _clock(form: re.Match[str]) -> time | None:
    if form["noon"]:
        return time(12)
    if form["minute"] is None and form["half"] is None:
        return None  # a bare number is no time of day
    hour, minute, second = (int(form[part] or 0) for part in ("hour", "minute", "second"))
    if form["half"]:
        if not 1 <= hour <= 12:
            raise ConfigError(f"invalid hour {hour} {form['half']}: expected 1 to 12, or 24 hours, such as 18:00")
        hour = hour % 12 + (12 if form["half"] == "pm" else 0)
    try:
        return time(hour, minute, second)
    except ValueError:
        raise ConfigError("invalid time of day: expected one such as 18:00") from None


# Moments (`--as-of`), and the end offset in a log that each of them names; moment_texts.py reads them.


Moment: TypeAlias = int | datetime
"""A state in the past: an end offset (exclusive: the state after the record before it), or a time with a zone."""

LATEST = "latest"
"""The text of the newest state."""

READ_BYTES = 64 << 20
"""How much of a log is read at once: enough for bulk replay, and small enough to keep in memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def utc_of(time: datetime) -> datetime:
    """Return the same instant in UTC. Raises ConfigError: it is outside the years 1 to 9999 there."""
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ConfigError(f"{time.isoformat()} is outside the years 1 to 9999 in UTC") from None


def moment_text(moment: Moment | None) -> str:
    """Return the text of a moment, which `read_moment` reads as the same one."""
    if moment is None:
        return LATEST
    if isinstance(moment, int):
        return str(moment)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def milliseconds(time: datetime) -> int:
    """Return a time in ms since 1970, rounded down, so that no batch of a later ms is part of the state at that time.

    Raises:
        ConfigError: the time has no zone.

    """
    if time.tzinfo is None:
        raise ConfigError(f"{time.isoformat()} has no time zone: expected one, such as {time.isoformat()}Z")
    return (time - _EPOCH) // _MILLISECOND


def end_offset_at(reader: "LogReader", time: datetime) -> int:
    """Return the end offset of the state at `time`: the base offset of the first batch with a later max timestamp.

    Without one, the high-water mark. Timestamps may go back when the leader changes, so the first later batch
    counts: a state includes all batches before it, never a selection.

    A log may begin in the middle of a cluster's life (sync, import, migrate), so its first record is where knowledge
    begins: the state before it is unknown, not empty.

    Raises:
        DecodeError: damage in the log.
        LogError: the log cannot be read, or begins at offset 0 with a record that is later than `time`, or has none.

    """
    end = reader.high_watermark()
    if end <= 0:
        raise LogError(f"{reader.name}: as of {moment_text(time)}: the state is unknown: the log has no record")
    record = first_later(reader, milliseconds(time), reader.start_offset())
    if record.offset == 0:
        what = f"the state is unknown: the log's first record is of {_time_text(record.timestamp)}"
        raise LogError(f"{reader.name}: as of {moment_text(time)}: {what}")
    return record.offset


class Later(NamedTuple):
    """The continuation of a log after a time: the first batch with a later max timestamp (ms since 1970); -1: none.

    Without one, `offset` is the high-water mark.
    """

    offset: int
    timestamp: int


def first_later(reader: "LogReader", latest: int, offset: int) -> Later:
    """Return the first batch from an offset on that is later than a time in ms since 1970.

    Raises:
        DecodeError: damage in the log. LogError: the log cannot be read.

    """
    end = reader.high_watermark()
    while offset < end:
        batches, damage = scan_batches(reader.read(offset, READ_BYTES))
        later = (batches.max_timestamp > latest).nonzero()[0]
        if len(later):
            return Later(int(batches.base_offset[later[0]]), int(batches.max_timestamp[later[0]]))
        if damage is not None or not len(batches):
            raise LogError(f"{reader.name}: offset {offset}: damaged batches, which its reader should have rejected")
        offset = int(batches.end_offset[-1])
    return Later(max(offset, end), -1)


def timestamp_text(timestamp: int) -> str:
    """Return a time in ms since 1970 as text in UTC, to the millisecond."""
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:  # a record may bear any number
        return f"{timestamp} ms after 1970"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time_text(timestamp: int) -> str:
    try:
        return moment_text(_EPOCH + timedelta(milliseconds=timestamp))
    except OverflowError:  # a record may bear any number
        return f"{timestamp} ms after 1970"


# What a text means as a moment (`--as-of`): an offset, an instant, or a time in words. Pure.


_MILLISECONDS = regex(r"@(\d{1,19})")
_LEAST_MILLISECONDS = 10**11
"""A smaller number is more likely in seconds: as milliseconds it is before March 1973."""
_LONGEST = 120
"""No text that means a time is longer."""
_MAX_EXCERPT = 80
"""Errors quote no more of a text than this."""
_ZONE = r"[A-Za-z_]+/[A-Za-z0-9_+/-]+|UTC|GMT|Z|[+-]\d\d:?\d\d"
_WITH_ZONE = regex(rf"(.*\S)(?:\s+|(?<=:\d\d)(?=[Z+-]))({_ZONE})", re.IGNORECASE)
_TWO_ORDERS = regex(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4}|\d{2})\b.*")
_SLASHES = regex(r"(\d{4})[./](\d{1,2})[./](\d{1,2})\b.*")


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
        ConfigError: none of these, or an ambiguous one; the message has texts that are clear.

    """
    words = " ".join(text.split())
    if words.lower() == LATEST:
        return ReadMoment(moment=None, form=Form.EXACT)
    if words.isascii() and words.isdigit() and len(words) < 20:
        return ReadMoment(moment=int(words), form=Form.EXACT)
    try:
        moment = _time(words, now=now, zone=zone) if len(words) <= _LONGEST else None
    except ConfigError as error:
        raise ConfigError(f"invalid offset or time {text[:_MAX_EXCERPT]!r}: {error}") from None
    if moment is None:
        raise ConfigError(f"invalid offset or time {text[:_MAX_EXCERPT]!r}: {_expected_text(words)}")
    return moment


def _time(words: str, *, now: datetime, zone: tzinfo) -> ReadMoment | None:
    if match := _MILLISECONDS.fullmatch(words):
        return ReadMoment(moment=_since_1970(int(match[1])), form=Form.EXACT)
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


def _expected_text(words: str) -> str:
    if match := _TWO_ORDERS.fullmatch(words):
        year = match[3] if len(match[3]) == 4 else f"20{match[3]}"
        orders = ((match[1], match[2]), (match[2], match[1]))
        dates = sorted({f"{year}-{int(month):02}-{int(day):02}" for month, day in orders if 1 <= int(month) <= 12})
        if dates:
            return f"which is the month? expected {' or '.join(dates)}"
    if match := _SLASHES.fullmatch(words):
        return f"expected {match[1]}-{int(match[2]):02}-{int(match[3]):02}"
    if re.fullmatch(rf"\d{{1,9}}\s*({'|'.join(UNITS)})", words.lower()):
        return f"expected {words} ago, or -{words}"
    if re.fullmatch(r"-\s*\d+", words):
        return f"expected a unit, such as {words}d, or an end offset, which is not negative"
    if words.lower().startswith("tomorrow"):
        return "the time is in the future: expected a past time"
    return (
        f"expected an end offset (exclusive), {LATEST!r}, a time such as 2026-11-20T10:00:00Z, or a relative "
        "time such as 'yesterday 18:00', '3d ago', '-1h' or 'last monday'"
    )


def in_words(read: ReadMoment, zone: tzinfo, *, now: datetime) -> str:
    """Return what a text was taken for, for people: the instant in UTC, and in the zone."""
    if not isinstance(read.moment, datetime):
        return moment_text(read.moment)
    utc = read.moment.astimezone(UTC)
    try:
        local = read.moment.astimezone(zone)
    except (OverflowError, ValueError):  # after the year 9999 there
        local = utc
    parts = [f"{moment_text(utc)} ({local:%A})"]
    if local.utcoffset():
        name = local.tzname() or ""
        of_zone = f" ({name})" if name[:1].isalpha() and not name.startswith("UTC") else ""
        parts = [f"{moment_text(utc)}", f"{local:%A} {local.isoformat(' ')}{of_zone} local time"]
    if read.moment > now:
        parts.append("which is in the future: the newest state")
    return ", ".join(parts)
