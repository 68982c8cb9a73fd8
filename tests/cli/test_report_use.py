"""The use of ACLs in a report, and in the commands that it names: the window, the accesses, the files and the zone."""

import gzip
import hashlib
import json

import pytest

from tests.cli.test_report import commands, tables, written
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog

LOG, ACCESSES, JSON_LINES = WEEK / "log", WEEK / "kafka-authorizer.log", WEEK / "accesses.jsonl"
ZONE = "aclog: note: access times without a zone were read as UTC (--accesses-timezone)"
YOUNG = (
    "aclog: note: no ACL was known 90 days before the end of the window: the window has 4 days, the longest in which "
    "an ACL can be judged"
)
ASSUMED = "access times without a zone were read as UTC"


def facts(page):
    return dict(next(rows for rows in tables(page) if rows and rows[0][0] == "window"))


def test_it_names_what_its_answers_rest_on(tmp_path):
    packed = tmp_path / "older.log.gz"
    packed.write_bytes(gzip.compress(ACCESSES.read_bytes().replace(b"10.0.0.1 ", b"10.0.0.77 ")))
    page = written(tmp_path / "a.md", LOG, "--sections", "unused", "--accesses", ACCESSES, "--accesses", packed)
    evidence = facts(page)
    longest = ", the longest in which an ACL can be judged"
    assert evidence["window"] == f"2026-11-16T10:00:04Z to 2026-11-20T10:00:04Z{longest}"
    assert evidence["accesses evaluated"] == "46 of 54 read; 8 outside the window"
    assert page.count("(if requests on a GROUP are logged)") == 4
    assert page.count("(if requests on a CLUSTER are logged)") == 2
    [usage] = commands(page)
    assert [usage.count("--accesses"), usage[-2:]] == [2, ["--days", "4"]]
    text = aclog(*usage).ok().out
    assert "window of 4 days: 2026-11-16T10:00:04Z to 2026-11-20T10:00:04Z" in text
    assert "46        evaluated against" in text
    rows = [line.split() for line in text.partition("\ndenied  ")[2].splitlines()[1:]]
    assert evidence["denied"] == str(sum(int(row[0]) for row in rows)) == "4"
    for path in (ACCESSES, packed):
        key = f"SHA-256 of {path}, {path.stat().st_size:,} bytes"
        assert evidence[key] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_stream_has_no_digest(tmp_path):
    path = tmp_path / "a.md"
    words = ("report", LOG, "--sections", "unused", "--accesses", "-", "--out", path)
    aclog(*words, stdin=ACCESSES.read_bytes()).ok()
    assert facts(path.read_text())["no SHA-256: a stream, or from a table or an object store"] == "stdin"
    assert "SHA-256 of stdin" not in path.read_text()


def test_assumptions_come_first_and_the_command_last(tmp_path):
    page = written(tmp_path / "a.md", LOG, "--sections", "unused", "--accesses", ACCESSES).replace("\\", "")
    order = [page.index(text) for text in (
        "| window |", "| limit |", ASSUMED, "| NEVER_MATCHED | 10 |", "10 ACLs can be removed", "3 ACLs could not",
    )]  # fmt: skip
    assert order == sorted(order)
    assert page.count("`aclog accesses usage ") == 1
    assert page.rstrip().endswith("--days 4`")
    assert "| NEVER_MATCHED | ALLOW User:billing READ on TOPIC LITERAL 'payments.us' from * |" in page
    html = written(tmp_path / "a.html", LOG, "--sections", "unused", "--accesses", ACCESSES)
    assert sum("accesses usage" in code for code in html.codes) == 1


def test_an_index_has_a_window_and_no_digests(tmp_path):
    aclog("usage-index", "--log", LOG, "--accesses", ACCESSES, "--index", tmp_path / "index").ok()
    page = written(tmp_path / "a.md", LOG, "--sections", "unused", "--index", tmp_path / "index", "--days", "4")
    assert facts(page) == {
        "window": "2026-11-16T00:00:00.000Z to 2026-11-20T10:00:04.000Z",
        "accesses in its hours": "27",
        "denied, SHA-256 of the access logs": "not in an index",
    }


def test_usage_has_the_longest_judged_window_of_a_young_log():
    words = ("accesses", "usage", "--log", LOG, "--accesses", ACCESSES)
    young, stated, longer = (aclog(*words, *days) for days in ((), ("--days", "4"), ("--days", "90")))
    assert young.ok().out == stated.ok().out
    assert young.err.splitlines() == [YOUNG, ZONE]
    assert stated.err.splitlines() == [ZONE]
    assert "no accesses on 2026-08-22 to 2026-11-15" in longer.err
    assert "window of 90 days" in longer.out
    until = aclog(*words, "--until", "2026-11-19T10:00:04Z", "--accesses-timezone", "UTC").ok()
    assert "window of 3 days: 2026-11-16T10:00:04Z to 2026-11-19T10:00:04Z" in until.out
    judged = WEEK / "rules.jsonl"  # without a history, all ACLs are judged in the default window
    assert "window of 90 days" in aclog("usage", "--acls", judged, "--accesses", ACCESSES).ok().out


JUDGED = ("usage --log {log}", "denied --log {log}", "coverage", "report {log} --sections unused --out {out}")


@pytest.mark.parametrize("command", JUDGED)
def test_a_zone_that_nothing_states_is_one_note(tmp_path, command):
    words = command.format(log=LOG, out=tmp_path / "a.md").split()
    zoned = tmp_path / "zoned.log"
    zoned.write_text(ACCESSES.read_text().replace(",000]", ",000+01:00]"))
    local = tmp_path / "local.jsonl"
    rows = [json.loads(line) for line in JSON_LINES.read_text().splitlines()]
    local.write_text("".join(json.dumps({**row, "timestamp": "2026-11-17T10:00:00"}) + "\n" for row in rows))
    for path, flags, count in (
        (ACCESSES, (), 1), (local, (), 1), (JSON_LINES, (), 0), (zoned, (), 0),
        (ACCESSES, ("--accesses-timezone", "UTC"), 0), (ACCESSES, ("--accesses-timezone", "Europe/Berlin"), 0),
    ):  # fmt: skip
        found = aclog(*words, "--accesses", path, *flags)
        assert found.code in (0, 1)
        assert found.err.splitlines().count(ZONE) == count, (path, flags)
        if words[0] == "report":
            assert (ASSUMED in (tmp_path / "a.md").read_text()) == bool(count)


def test_coverage_has_the_longest_silence_and_what_it_cannot_show(tmp_path):
    found = aclog("coverage", "--accesses", ACCESSES).ok()
    head, row = found.lines[:2]
    assert head.endswith("gaps  longest silence")
    assert row.endswith("0     24.0 h from 2026-11-16T10:00:04.000Z")
    assert "the lines do not name their brokers: a gap of a single broker among them cannot be seen" in found.lines
    rows = [
        {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t",
         "timestamp": f"2026-11-16T{hour:02}:30:00Z", **({"broker": broker} if broker else {})}
        for broker, hours in (("1", (0, 1, 2, 3)), ("2", (1, 3)), (None, (0, 3))) for hour in hours
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = aclog("coverage", "--accesses", path).ok().lines
    silences = {line.split()[0]: line.partition("Z  0     ")[2] for line in lines[1:4]}
    assert silences["1"] == "1.0 h from 2026-11-16T00:30:00.000Z"
    assert silences["2"] == "2.0 h from 2026-11-16T01:30:00.000Z"
    assert "2 lines name no broker: a gap of a single broker among them cannot be seen" in lines
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:1]))
    lines = aclog("coverage", "--accesses", path).ok().lines
    assert lines[1].endswith("under 1 h")
    assert not any("cannot be seen" in line for line in lines)
