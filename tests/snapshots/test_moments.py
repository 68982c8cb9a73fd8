"""Moments: their text, and what a time comes to in milliseconds."""

from datetime import UTC, datetime

from aclog.snapshots.moments import milliseconds, moment_text, read_moment

NOW = datetime(2026, 11, 23, 2, 20, tzinfo=UTC)


def parse_moment(text):
    return read_moment(text, now=NOW).moment


def test_a_moment_and_its_text():
    assert parse_moment("latest") is None
    assert parse_moment("007") == 7
    assert parse_moment("2026-11-20T10:00:00Z") == parse_moment("2026-11-20T11:00:00+01:00")
    assert parse_moment("2026-11-20 10:00") == parse_moment("2026-11-20T10:00:00Z")
    for text in ("latest", "12", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00.250000Z"):
        assert moment_text(parse_moment(text)) == text


def test_a_fraction_of_a_millisecond_is_cut_off():
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 1, 1999, UTC)) == 1001
