"""Times as people say them: what each text is taken for, what is refused, and clocks that are changed."""

import os
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.snapshots.moments import Form, LocalZone, in_words, moment_text, parse_zone, read_moment

NOW = datetime(2026, 11, 23, 2, 20, 5, 123000, UTC)  # a Monday
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from(sorted(zone for zone in available_timezones() if "/" in zone and "posix" not in zone))
WALL = NOW.replace(year=2011, microsecond=0, tzinfo=None)
WALLS = st.integers(0, 25 * 365 * 86400).map(lambda age: WALL + timedelta(seconds=age))


def read_or_refused(text, zone):
    try:
        return read_moment(text, now=NOW, zone=zone), ""
    except ConfigError as error:
        return None, str(error)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1h ago", "2026-11-23T01:20:05Z"),
        ("an hour ago", "2026-11-23T01:20:05Z"),
        ("-3d", "2026-11-20T02:20:05Z"),
        ("2 days ago", "2026-11-21T02:20:05Z"),
        ("1w  ago", "2026-11-16T02:20:05Z"),
        ("1 hour and 30 min ago", "2026-11-23T00:50:05Z"),
        ("-1h30m", "2026-11-23T00:50:05Z"),
        ("yesterday", "2026-11-22T00:00:00Z"),
        ("Yesterday at 18:00", "2026-11-22T18:00:00Z"),
        ("yesterday 6pm", "2026-11-22T18:00:00Z"),
        ("yesterday 12:30 am", "2026-11-22T00:30:00Z"),
        ("yesterday noon", "2026-11-22T12:00:00Z"),
        ("yesterday 18:00 Europe/Berlin", "2026-11-22T17:00:00Z"),
        ("yesterday 18:00+02:00", "2026-11-22T16:00:00Z"),
        ("today 01:02:03", "2026-11-23T01:02:03Z"),
        ("2:00", "2026-11-23T02:00:00Z"),
        ("last monday", "2026-11-16T00:00:00Z"),
        ("last sun 09:00", "2026-11-22T09:00:00Z"),
        ("now", "2026-11-23T02:20:05.123000Z"),
    ],
)
def test_what_people_say(text, meant):
    read = read_moment(text, now=NOW)
    assert (moment_text(read.moment), read.form) == (meant, Form.SPOKEN)


@pytest.mark.parametrize(
    ("text", "meant", "form"),
    [
        ("0", "0", Form.EXACT),
        ("20261120", "20261120", Form.EXACT),
        ("LATEST", "latest", Form.EXACT),
        ("@1795227930840", "2026-11-21T02:25:30.840000Z", Form.EXACT),
        ("2026-11-20T10:00:00+02:00", "2026-11-20T08:00:00Z", Form.EXACT),
        ("2026-11-20 10:00 Europe/Berlin", "2026-11-20T09:00:00Z", Form.EXACT),
        ("2026-11-20 10:00 utc", "2026-11-20T10:00:00Z", Form.EXACT),
        ("2026-11-20", "2026-11-20T00:00:00Z", Form.CLOCK),
        ("2026-11-20 10:00", "2026-11-20T10:00:00Z", Form.CLOCK),
        ("2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z", Form.EXACT),
    ],
)
def test_offsets_and_iso_8601(text, meant, form):
    read = read_moment(text, now=NOW)
    assert (moment_text(read.moment), read.form) == (meant, form)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("03/04/2026", "which is the month? expected 2026-03-04 or 2026-04-03"),
        ("3.4.26", "which is the month? expected 2026-03-04 or 2026-04-03"),
        ("31/12/2026", "which is the month? expected 2026-12-31"),
        ("2026/11/20", "expected 2026-11-20"),
        ("-3", "expected a unit, such as -3d, or an end offset, which is not negative"),
        ("3d", "expected 3d ago, or -3d"),
        ("18:00", "the time is in the future: expected a past time"),
        ("tomorrow 09:00", "the time is in the future: expected a past time"),
        ("3 months ago", "months and years vary in length: expected days, such as 90d ago, or a date"),
        ("3 parsecs ago", "unknown unit 'parsecs': expected s, m, h, d or w"),
        ("yesterday 25:00", "invalid time of day: expected one such as 18:00"),
        ("yesterday 13pm", "invalid hour 13 pm: expected 1 to 12, or 24 hours, such as 18:00"),
        ("@1795227930", "@ is followed by milliseconds since 1970: seconds are @1795227930000"),
        ("999999w ago", "the time is before the year 1"),
        ("yesterday 18:00 Europe/Berln", "unknown time zone 'Europe/Berln': did you mean Europe/Berlin?"),
        ("monday", "expected an end offset (exclusive), 'latest', a time such as 2026-11-20T10:00:00Z"),
        ("march", "expected an end offset"),
        ("yesterday 18", "expected an end offset"),
        ("2026-02-30", "expected an end offset"),
        ("99999999999999999999", "expected an end offset"),
        ("", "expected an end offset"),
    ],
)
def test_what_could_mean_two_things_or_none_is_refused(text, said):
    with pytest.raises(ConfigError) as refused:
        read_moment(text, now=NOW)
    assert str(refused.value).startswith(f"invalid offset or time {text!r}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "2026-03-29 02:30",
            "does not exist in Europe/Berlin: clocks skip it; expected 2026-03-29T00:30:00Z or 2026-03-29T01:30:00Z",
        ),
        (
            "2026-10-25 02:30",
            "occurs twice in Europe/Berlin, as clocks go back: expected 2026-10-25T00:30:00Z or 2026-10-25T01:30:00Z",
        ),
    ],
)
def test_of_clocks_that_are_changed_both_instants_are_named(text, said):
    with pytest.raises(ConfigError) as refused:
        read_moment(text, now=NOW, zone=BERLIN)
    assert str(refused.value).startswith(f"invalid offset or time {text!r}: {text}:00 {said}")


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z"),  # from 00:00 to 01:00
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"),  # from 01:00 back to 00:00
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z"),
    ],
)
def test_a_day_begins_with_its_first_instant(zone, day, start):
    assert moment_text(read_moment(day, now=NOW, zone=ZoneInfo(zone)).moment) == start
    with pytest.raises(ConfigError, match="2011-12-30 does not exist in Pacific/Apia"):
        read_moment("2011-12-30", now=NOW, zone=ZoneInfo("Pacific/Apia"))


@given(WALLS, ZONES)
def test_a_time_of_any_zone_is_the_one_instant_at_which_its_clocks_show_it_or_refused(wall, name):
    zone = ZoneInfo(name)
    hours = (datetime.combine(wall, wall.time(), UTC) + timedelta(minutes=m) for m in range(-16 * 60, 16 * 60, 15))
    shown = [at for at in hours if at.astimezone(zone).replace(tzinfo=None) == wall]
    read, refused = read_or_refused(f"{wall}", zone)
    if read is None:
        assert len(shown) != 1
        assert "exist" in refused or all(moment_text(at) in refused for at in shown)
        return
    assert read.moment.astimezone(zone).replace(tzinfo=None) == wall
    assert shown in ([], [read.moment])  # offsets are multiples of 15 minutes, but for a few of seconds
    assert moment_text(read_moment(f"{wall} {name}", now=NOW).moment) == moment_text(read.moment)


@given(st.integers(0, 10**6), st.sampled_from("smhdw"), ZONES)
def test_an_age_is_the_same_in_every_zone(number, unit, name):
    seconds = number * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[unit]
    for text in (f"-{number}{unit}", f"{number} {unit} ago"):
        read, refused = read_or_refused(text, ZoneInfo(name))
        if read is None:
            assert "before the year 1" in refused
        else:
            assert NOW.replace(microsecond=0) - read.moment == timedelta(seconds=seconds)


PIECES = (
    "yesterday|today|last|monday|at|ago|-|3|d|h|18:00|6pm|noon|2026-11-20|T|Z|+02:00|@|Europe/Berlin|now|an|\u0661|W"
)
PIECES = st.lists(st.sampled_from(PIECES.split("|")), max_size=7)


@given(st.one_of(st.text(max_size=30), PIECES.map(" ".join), PIECES.map("".join)), ZONES)
def test_any_text_is_read_or_refused_and_a_spoken_time_is_never_in_the_future(text, name):
    read, refused = read_or_refused(text, ZoneInfo(name))
    if read is None:
        assert "invalid offset or time" in refused
        return
    if read.form is Form.SPOKEN:
        assert read.moment <= NOW
    again = read_moment(moment_text(read.moment), now=NOW)
    assert (again.moment, again.form) == (read.moment, Form.EXACT)


@pytest.mark.parametrize(
    ("text", "offset"), [("UTC", 0), ("z", 0), ("+02:00", 120), ("-0530", -330), ("Asia/Kolkata", 330), (" GMT ", 0)]
)
def test_names_of_zones(text, offset):
    assert NOW.astimezone(parse_zone(text)).utcoffset() == timedelta(minutes=offset)


@pytest.mark.parametrize("text", ["", "CST", "EST5EDT", "Europe", "Europe/", "../etc/passwd", "+25:00", "a/b\0", "/"])
def test_what_is_no_zone(text):
    with pytest.raises(ConfigError, match="unknown time zone"):
        parse_zone(text)


def test_the_zone_of_this_machine(monkeypatch):
    """`local` follows TZ, and counts an hour that occurs twice as Europe/Berlin does."""
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        local = parse_zone("local")
        for hour in range(48):
            at = datetime(2026, 10, 24, 20, 30, tzinfo=UTC) + timedelta(hours=hour)
            assert at.astimezone(local).isoformat() == at.astimezone(BERLIN).isoformat()
            assert at.astimezone(local).astimezone(UTC) == at
        for wall, what in (
            ("2026-10-25 02:30", "occurs twice in local"),
            ("2026-03-29 02:30", "does not exist in local"),
        ):
            with pytest.raises(ConfigError, match=what):
                read_moment(wall, now=NOW, zone=local)
    finally:
        monkeypatch.delenv("TZ") if before is None else monkeypatch.setenv("TZ", before)
        time.tzset()


def test_what_is_said_of_it():
    def said(text, zone=BERLIN):
        return in_words(read_moment(text, now=NOW), zone, now=NOW)

    assert said("7") == "7"
    assert said("yesterday 18:00") == "2026-11-22T18:00:00Z, Sunday 2026-11-22 19:00:00+01:00 (CET) local time"
    assert said("yesterday 18:00", UTC) == "2026-11-22T18:00:00Z (Sunday)"
    assert said("2099-01-01", UTC) == "2099-01-01T00:00:00Z (Thursday), which is in the future: the newest state"
    assert said("-1h", parse_zone("+02:00")).endswith(", Monday 2026-11-23 03:20:05+02:00 local time")
    assert said("-1h", LocalZone()).startswith("2026-11-23T01:20:05Z")
    assert said("9999-12-31T23:59:59Z").startswith("9999-12-31T23:59:59Z (Friday), which is in the future")
