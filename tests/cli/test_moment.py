"""Times as people say them, from the command line: what is said of them on stderr, and the zone that is chosen."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pexpect
import pytest

from aclog.terminal import moment
from tests.support.cli.command import aclog

LOG = "tests/data/kafka-4.3.1-small/__cluster_metadata-0"  # its records are of 2026-11-21, from 02:23:43 to 02:25:30
NOW = datetime(2026, 11, 23, 2, 24, 30, tzinfo=UTC)
ASKED = ("--principal", "User:alice", "--operation", "READ", "--topic", "after-checkpoint")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(moment, "current_time_ms", lambda: int(NOW.timestamp() * 1000))
    monkeypatch.delenv("ACLOG_TIMEZONE", raising=False)


def counted(*flags):
    """Return how many ACLs there were then, and what is said."""
    result = aclog("acls", "list", "--log", LOG, "--format", "jsonl", *flags).ok()
    return len(result.lines), result.err


@pytest.mark.parametrize("text", ["-2d", "2 days ago", "2026-11-21 02:24:30 UTC", "2026-11-21T04:24:30+02:00"])
def test_a_moment_is_the_same_however_it_is_said(text):
    count, said = counted("--as-of", text)
    assert count == 31
    assert ("is 2026-11-21T02:24:30Z" in said) is (text[0] != "2" or "ago" in text)


def test_a_text_after_an_equals_sign_and_of_the_second_state():
    assert counted("--as-of=-2d")[0] == 31
    result = aclog("diff", "--log", LOG, "--as-of", "-2d", "--to-as-of", "-1d", "--format", "jsonl")
    assert result.lines
    assert "aclog: note: -2d is 2026-11-21T02:24:30Z" in result.err
    assert "aclog: note: -1d is 2026-11-22T02:24:30Z" in result.err


def test_a_time_is_said_once_however_often_it_is_used():
    result = aclog("explain", "--log", LOG, *ASKED, "--as-of", "1h ago", "--format", "json").ok()
    assert result.err.count("1h ago is 2026-11-23T01:24:30Z") == 1
    assert json.loads(result.out)["asOf"] == "2026-11-23T01:24:30Z"


@pytest.mark.parametrize(
    ("text", "count"),
    [("2d", 53), ("48h", 53), ("1d24h", 53), ("-2d", 53), ("2 days", 53), ("1h", 0), ("yesterday", 0)],
)
def test_a_length_of_time_is_since_then_as_for_git_and_kubectl(text, count):
    rows = aclog("acls", "history", "--log", LOG, "--since", text, "--format", "jsonl").ok()
    assert len(rows.lines) == count
    assert "ago" in rows.err or text in rows.err


def test_a_zone_is_of_texts_without_one_and_of_times_as_text(monkeypatch):
    wall = ("--as-of", "2026-11-21 03:24:30")
    assert counted(*wall) == (68, "")
    said = "2026-11-21 03:24:30 is 2026-11-21T02:24:30Z, Saturday 2026-11-21 03:24:30+01:00 (CET) local time"
    here = f"aclog: note: {said}\n"
    assert counted(*wall, "--timezone", "Europe/Berlin") == (31, here)
    assert counted(*wall) == (68, "")  # a choice ends with its command
    monkeypatch.setenv("ACLOG_TIMEZONE", "Europe/Berlin")
    assert counted(*wall) == (31, here)
    assert counted(*wall, "--timezone", "UTC")[0] == 68
    when = ("when", "--log", LOG, *ASKED)
    assert "2026-11-21T03:25:25.535+01:00: added" in aclog(*when).ok().out
    assert json.loads(aclog(*when, "--format", "jsonl").ok().out)["from"]["timestamp"] == 1795227925535
    assert "2026-11-21T02:25:25.535Z: added" in aclog(*when, "--timezone", "utc").ok().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--as-of", "03/04/2026"), "invalid offset or time '03/04/2026': which is the month?"),
        (("--as-of", "18:00"), "the time is in the future"),
        (
            ("--as-of", "2026-11-24"),
            "'2026-11-24' is in the future: it is 2026-11-23T02:24:30Z: expected a past time, or 'latest'",
        ),
        (("--as-of", "2d"), "expected 2d ago, or -2d"),
        (("--as-of", "-3"), "expected a unit, such as -3d"),
        (("--as-of", "-9d"), "the state is unknown: the log's first record is of 2026-11-21"),
        (("--timezone", "Europe/Berln"), "--timezone: unknown time zone 'Europe/Berln': did you mean Europe/Berlin?"),
    ],
)
def test_what_is_refused(flags, said):
    result = aclog("acls", "list", "--log", LOG, *flags)
    assert (result.code, result.out) == (2, "")
    assert said in result.complaint


def test_a_variable_that_is_no_zone(monkeypatch):
    monkeypatch.setenv("ACLOG_TIMEZONE", "Mars/Base")
    assert "ACLOG_TIMEZONE: unknown time zone 'Mars/Base'" in aclog("when", "--log", LOG, *ASKED).complaint


def test_on_a_terminal_a_date_without_a_zone_is_said_to_be_utc():
    words = ["-m", "aclog", "authorize", "--log", LOG, *ASKED, "--as-of", "2026-11-22"]
    told, _ = pexpect.run(
        " ".join([sys.executable, *words]),
        encoding="utf-8",
        withexitstatus=True,
        env={"TZ": "Asia/Tokyo", "PATH": "/bin"},
    )
    assert "aclog: note: 2026-11-22 is 2026-11-22T00:00:00Z, Sunday 2026-11-22 09:00:00+09:00 (JST) local time" in told
    assert "ALLOWED" in told


def test_the_shell_travels_to_what_people_say():
    lines = b"at -2d\nls /acl/id\nat 2026-11-21 02:24:30\nat @1795227870000\nat latest\ndiff -2d latest\nat -3x\n"
    result = aclog("shell", "--log", LOG, stdin=lines)
    then = "at 2026-11-21T02:24:30Z: offset 82,"
    assert [line.startswith(then) for line in result.lines if line.startswith("at ")] == [True, True, True, False]
    assert "at latest: offset 230" in result.out
    assert "aclog: note: -2d is 2026-11-21T02:24:30Z" in result.err
    assert "unknown unit 'x': expected s, m, h, d or w" in result.err + result.out


def test_the_zone_of_a_context(monkeypatch, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(f'[contexts.night]\nlog = "{Path(LOG).absolute()}"\ntimezone = "Europe/Berlin"\n')
    file.chmod(0o600)
    monkeypatch.setenv("ACLOG_CONFIG", str(file))
    listed = ("acls", "list", "--format", "jsonl", "--as-of", "2026-11-21 03:24:30")
    assert len(aclog("-c", "night", *listed).ok().lines) == 31
    assert len(aclog("-c", "night", *listed, "--timezone", "UTC").ok().lines) == 68
    monkeypatch.setenv("ACLOG_TIMEZONE", "UTC")
    assert len(aclog("-c", "night", *listed).ok().lines) == 31
