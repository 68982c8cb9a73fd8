"""Time zones by name, and the instant at which a clock on the wall of one shows a time."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from aclog.metalog.errors import ConfigError

LOCAL = "local"
"""The name of the zone that this machine is set to."""

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
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
        return None if dt is None else _local(dt).tzname()

    def fromutc(self, dt: datetime) -> datetime:
        """See tzinfo."""
        found = dt.replace(tzinfo=UTC).astimezone()
        shown = found.replace(tzinfo=self)
        return shown if shown.utcoffset() == found.utcoffset() else shown.replace(fold=1)

    def __str__(self) -> str:
        return LOCAL


def _local(dt: datetime) -> datetime:
    return dt.replace(tzinfo=None).astimezone()


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
    if found := _OFFSET.fullmatch(name):
        return _fixed(text, found)
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
        shown = ", ".join(f"{each.astimezone(zone):%H:%M}" for each in (second, first))
        raise ConfigError(f"{wall} does not exist in {zone}: clocks skip it; expected {either} ({shown} there)")
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


def _fixed(text: str, found: re.Match[str]) -> tzinfo:
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    if offset >= timedelta(days=1) or int(found[3]) > 59:
        raise ConfigError(f"unknown time zone {text!r}: expected an offset below 24 hours, such as +02:00")
    return timezone(-offset if found[1] == "-" else offset)


def _expected(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # no command starts slower for it

    known = available_timezones()
    if not known:
        return "this machine has no data of time zones (`pip install tzdata`); an offset such as +02:00 needs none"
    by_fold = {each.lower(): each for each in known if "/" in each}
    close = get_close_matches(name.lower(), by_fold, n=1)
    hint = f"did you mean {by_fold[close[0]]}?" if close else "expected a name such as Europe/Berlin,"
    return f"{hint} {'Others are' if close else ''} an offset such as +02:00, UTC, or {LOCAL}".replace("  ", " ")


def _text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
