import json
import os
from pathlib import Path

import pytest

from aclog.snapshots.publisher import recover
from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data"
SMALL, CHURN = DATA / "kafka-4.3.1-small/__cluster_metadata-0", DATA / "kafka-4.3.1-churn/__cluster_metadata-0"


HOST_NAME = (
    "aclog: warning: 1 ACL (0 DENY) probably matches no principal. The first: ALLOW 'User: spaced ' WRITE on "
    "TRANSACTIONAL_ID LITERAL ' lead-trail ' from not-an-ip.example.com: never matches: the host "
    "'not-an-ip.example.com' is neither * nor an address\n"
)


def listing(*source):
    return aclog("acls", "list", *source, "--format", "jsonl").ok().out


def content(log):
    """Return the contents of an image without its provenance."""
    image = recover(log, strict=False).image
    return (
        image.acls.digest(),
        list(image.scram.records()),
        list(image.tokens.records()),
        list(image.features.records()),
        list(image.cluster.brokers()),
        list(image.opaque.values()),
        image.provenance.kraft_version,
        image.provenance.voters,
    )


@pytest.mark.parametrize("log", [SMALL, CHURN], ids=["small", "churn"])
@pytest.mark.parametrize("name", ["avro", "jsonl"])
def test_an_export_imports_as_the_same_state(log, name, tmp_path):
    out = tmp_path / "export"
    aclog("export", "--log", log, "--format", name, "--show-secrets", "--out", out).ok()
    imported = aclog("import", out, "--log", tmp_path / "log").ok()
    assert imported.err == (HOST_NAME if log is SMALL else "")
    assert content(tmp_path / "log") == content(log)
    assert aclog("log", "verify", tmp_path / "log").ok().lines[-1] == "all is well"


@pytest.mark.parametrize("name", ["avro", "jsonl"])
def test_a_history_replays_to_the_same_acls_at_every_time(name, tmp_path):
    out = tmp_path / "history"
    aclog("export", "--log", SMALL, "--format", name, "--history", "--out", out).ok()
    assert aclog("import", "--history", out, "--log", tmp_path / "log").ok().out == "written: 84 changes\n"
    assert listing("--log", tmp_path / "log") == listing("--log", SMALL)
    for time in ("2026-11-21T02:24:10Z", "2026-11-21T02:24:55Z"):
        assert listing("--log", tmp_path / "log", "--as-of", time) == listing("--log", SMALL, "--as-of", time)


def test_a_history_shows_what_became_visible_together():
    rows = [json.loads(line) for line in aclog("export", "--log", SMALL, "--format", "jsonl", "--history").ok().lines]
    assert [row["change"] for row in rows].count("REMOVED") == 8
    assert len(rows) == 84
    for row in [*rows[:4], *rows[4::9], *(row for row in rows if row["change"] == "REMOVED")]:
        count = listing("--log", SMALL, "--as-of", row["endOffset"]).count(row["acl"]["id"])
        assert (count, row["offset"] < row["endOffset"]) == (1 if row["change"] == "ADDED" else 0, True)


def test_a_history_ends_at_the_given_moment():
    def changes(*flags):
        return len(aclog("export", "--log", SMALL, "--format", "jsonl", "--history", *flags).ok().lines)

    assert 0 < changes("--as-of", "100") < changes("--as-of", "2026-11-21T02:24:55Z") < changes() == 84


def test_only_a_log_has_a_history():
    refused = aclog("export", "--snapshot", next(SMALL.glob("*69-*.checkpoint")), "--format", "avro", "--history")
    assert refused.code == 2
    assert "only a log has a history" in refused.complaint


def test_secrets_are_not_exported_and_entries_without_them_not_imported(tmp_path):
    exported = aclog("export", "--log", SMALL, "--format", "jsonl").ok().out
    scram = [json.loads(line)["scram"] for line in exported.splitlines() if line.startswith('{"scram"')]
    assert [list(each) for each in scram] == [["user", "mechanism", "iterations"]] * 7
    imported = aclog("import", "-", "--log", tmp_path / "log", stdin=exported.encode()).ok()
    assert imported.err == (
        f"aclog: warning: left out: 7 SCRAM credentials: exported without their secrets\n{HOST_NAME}"
    )


def test_acls_without_ids_get_one_on_import(tmp_path):
    rules = SMALL.parent / "expected/acls.jsonl"
    out = aclog("export", "--acls", rules, "--format", "jsonl").ok().out
    assert '"id"' not in out
    aclog("import", "-", "--log", tmp_path / "log", stdin=out.encode()).ok()
    rows = [json.loads(line) for line in listing("--log", tmp_path / "log").splitlines()]
    assert len({row.pop("id") for row in rows}) == 68
    assert rows == [json.loads(line) for line in rules.read_text().splitlines()]


def test_a_pipe_is_imported_whole(tmp_path):
    lines = listing("--log", SMALL).splitlines()[:3]
    receive, send = os.pipe()
    with os.fdopen(send, "w") as file:
        file.write("\n".join(lines))
    aclog("import", f"/dev/fd/{receive}", "--log", tmp_path / "log").ok()
    os.close(receive)
    assert listing("--log", tmp_path / "log").splitlines() == lines


def test_into_an_existing_log_only_new_entries_are_written(tmp_path):
    log, out = tmp_path / "log", tmp_path / "export"
    flags = ("--topic", "mine", "--allow-principal", "User:me")
    first = listing("--log", SMALL).splitlines(keepends=True)
    aclog("import", "-", "--log", log, stdin="".join(first[:10]).encode()).ok()
    aclog("acls", "add", "--log", log, *flags).ok()
    aclog("export", "--log", SMALL, "--format", "avro", "--show-secrets", "--out", out).ok()
    imported = aclog("import", out, "--log", log).ok()
    assert imported.lines == [
        "written: 58 ACLs, 7 SCRAM credentials, 8 delegation tokens",
        "existing: 10 ACLs",
    ]
    assert "left out: 6 features: only a new log accepts them" in imported.err
    assert aclog("import", out, "--log", log).ok().lines[0] == "written: nothing"
    rows = [line for line in listing("--log", log).splitlines(keepends=True) if "User:me" not in line]
    assert rows == first


def test_a_large_import_becomes_visible_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 1000)
    log = tmp_path / "log"
    rows = listing("--log", SMALL).splitlines(keepends=True)
    aclog("import", "-", "--log", log, stdin=rows[0].encode()).ok()
    before = recover(log).image.end_offset
    aclog("import", "-", "--log", log, stdin="".join(rows).encode()).ok()
    end = recover(log).image.end_offset
    assert end > before + 67
    for offset in range(before, end, 9):
        assert len(listing("--log", log, "--as-of", offset).splitlines()) == 1
    assert len(listing("--log", log).splitlines()) == 68


def test_a_transaction_that_a_writer_left_open_is_aborted(tmp_path):
    from aclog.metalog.codec import encode_record
    from aclog.metalog.filelog import open_log
    from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord

    log = tmp_path / "log"
    with open_log(log, create=True) as writer:
        writer.append([encode_record(BeginTransactionRecord(name="x"))], timestamp=5).result()
    done = aclog("acls", "add", "--log", log, "--topic", "t", "--allow-principal", "User:x").ok()
    assert "aborted a transaction that its writer left open" in done.err
    assert len(listing("--log", log).splitlines()) == 1
    assert '{"reason":"left open by its writer"}' in aclog("log", "dump", log).ok().out
    assert AbortTransactionRecord.api_key.name in aclog("log", "dump", log).ok().out


RULE = {
    "resourceType": "TOPIC", "resourceName": "t", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW", "id": "JCfGj5ocQb6uGSddU7P83A",
}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [RULE, {**RULE, "id": "3aPpDAnMRlu4BAsYOn9-Bg"}],
            "stdin: line 2: an earlier row has the same ACL with id JCfGj5oc",
        ),
        ([RULE, {**RULE, "host": "h"}], "stdin: line 2: id JCfGj5ocQb6uGSddU7P83A belongs to another ACL"),
        ([{**RULE, "host": 1}], "stdin: line 1: host must be a string"),
        ([{"feature": {"name": "x", "level": 99999}}], "stdin: line 1: "),
        ([{"feature": {"name": "x", "level": 1}, "acl": RULE}], "stdin: line 1: expected exactly one of"),
        ([{}], "stdin: line 1: expected exactly one of provenance, acl"),
        ([{"offset": 1}], "stdin: line 1: row has no field 'offset'"),
        (
            [{"provenance": {"endOffset": 1, "epoch": 1, "timestamp": 1, "kraftVersion": 1, "voters": "AAAA"}}],
            "stdin: line 1: ",
        ),
    ],
)  # fmt: skip
def test_an_invalid_row_stops_the_import_and_leaves_nothing(rows, message, tmp_path):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    refused = aclog("import", "-", "--log", tmp_path / "log", stdin=lines.encode())
    assert refused.code == 2
    assert refused.complaint.startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"change": "REMOVED"}], "is removed, but does not exist"),
        ([{"change": "ADDED"}, {"change": "ADDED"}], "is added, but its id or an equal ACL already exists"),
        ([{"change": "MOVED"}], "change is 'MOVED': expected ADDED or REMOVED"),
        ([{"change": "ADDED", "acl": {**RULE, "id": None}}], "an ACL in a history must have an id"),
        ([RULE], "row has no field"),
    ],
)
def test_a_history_that_contradicts_itself_is_refused(rows, message, tmp_path):
    place = {"offset": 1, "endOffset": 2, "timestamp": 3, "acl": RULE}
    lines = "".join(json.dumps({**place, **row} if row is not RULE else row) + "\n" for row in rows)
    refused = aclog("import", "--history", "-", "--log", tmp_path / "log", stdin=lines.encode())
    assert refused.code == 2
    assert f"stdin: line {len(rows)}: " in refused.complaint
    assert message in refused.complaint
    assert list(tmp_path.iterdir()) == []


def test_a_state_and_a_history_are_told_apart(tmp_path):
    out = tmp_path / "export"
    aclog("export", "--log", SMALL, "--format", "avro", "--out", out).ok()
    refused = aclog("import", "--history", out, "--log", tmp_path / "log")
    assert "to import a state, leave out --history" in refused.complaint
    aclog("export", "--log", SMALL, "--format", "avro", "--history", "--out", out).ok()
    assert "to import a history, add --history" in aclog("import", out, "--log", tmp_path / "log").complaint
    aclog("import", "--history", out, "--log", tmp_path / "log").ok()
    again = aclog("import", "--history", out, "--log", tmp_path / "log")
    assert "can only be imported into a new log" in again.complaint


def test_an_export_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device", "export")))
    refused = aclog("export", "--log", SMALL, "--format", "avro", "--out", tmp_path / "export")
    assert (refused.code, refused.complaint) == (2, "export: No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_avro_from_stdin_is_refused(tmp_path):
    out = tmp_path / "export"
    aclog("export", "--log", SMALL, "--format", "avro", "--out", out).ok()
    refused = aclog("import", "-", "--log", tmp_path / "log", stdin=out.read_bytes())
    assert "Avro can only be read from a file, not from stdin" in refused.complaint


def test_an_export_is_readable_by_its_owner_only(tmp_path):
    out = tmp_path / "export"
    aclog("export", "--log", SMALL, "--format", "jsonl", "--show-secrets", "--out", out).ok()
    assert out.stat().st_mode & 0o777 == 0o600
