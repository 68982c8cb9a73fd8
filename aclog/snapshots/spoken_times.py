"""Times as people say them: `3d ago`, `-1h30m`, `yesterday 18:00`, `last monday`, `18:00`. Pure."""

import re
from datetime import datetime, time, timedelta, tzinfo

from aclog.metalog.errors import ConfigError
from aclog.snapshots.zones import instant_of, start_of

UNITS = {
    "s": "seconds", "sec": "seconds", "secs": "seconds", "second": "seconds", "seconds": "seconds",
    "m": "minutes", "min": "minutes", "mins": "minutes", "minute": "minutes", "minutes": "minutes",
    "h": "hours", "hr": "hours", "hrs": "hours", "hour": "hours", "hours": "hours",
    "d": "days", "day": "days", "days": "days",
    "w": "weeks", "week": "weeks", "weeks": "weeks",
}  # fmt: skip
_AMOUNT = r"(\d{1,9}|an?(?= ))\s*([a-z]+)"
_AMOUNTS = rf"(?:{_AMOUNT})(?:(?:\s*,\s*|\s+and\s+|\s*)(?:{_AMOUNT}))*"
_AGO = re.compile(rf"(?:-\s*(?P<minus>{_AMOUNTS})|(?P<ago>{_AMOUNTS})\s+ago)")
_EACH = re.compile(_AMOUNT)

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = r"(?P<noon>noon)|(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?\s*(?P<half>[ap]m)?"
_DAY = re.compile(rf"(?:(?P<day>today|yesterday|last\s+(?P<weekday>[a-z]+))(?:,?\s+(?:at\s+)?|$))?(?:{_CLOCK})?")


def spoken_time(text: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    """Return the instant, in UTC, that is meant by a text in lower case; None if it is none of these forms.

    Days are those of the zone and begin at midnight; `last monday` is the last Monday before today. `3d ago` is 72
    hours ago, whatever clocks do meanwhile, and a whole second.

    Raises:
        ConfigError: the text is one of these forms, but names no time, or a future one.

    """
    found = _ago(text, now)
    if found is None:
        found = _of_day(text, now=now, zone=zone)
    if found is not None and found > now:
        raise ConfigError("that is in the future: expected a time until now")
    return found


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
        raise ConfigError("that is before the year 1") from None


def _no_unit(unit: str) -> str:
    if unit in {"mo", "month", "months", "y", "yr", "year", "years"}:
        return "months and years are of different lengths: expected days, such as 90d ago, or a date"
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
            raise ConfigError(f"there is no {hour} {form['half']}: expected 1 to 12, or 24 hours, such as 18:00")
        hour = hour % 12 + (12 if form["half"] == "pm" else 0)
    try:
        return time(hour, minute, second)
    except ValueError:
        raise ConfigError("there is no such time of day: expected one such as 18:00") from None
