"""What is written in batches is what would be written rule by rule, and an interruption leaves nothing of it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog import open_log
from aclog.metalog.machine import disk
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import FeatureLevelRecord
from aclog.snapshots.publisher import recover
from aclog.targets.log import open_writer
from tests.support.builders.acls import acl, acl_record, acl_row
from tests.support.cli.command import aclog
from tests.support.runs.profiles import examples

IDS = [uuid_text(UUID(int=number << 64)) for number in range(1, 4)]
ROWS = st.builds(
    lambda name, operation, host, id_: acl_row(name, operation=operation, host=host) | ({"id": id_} if id_ else {}),
    st.sampled_from(["a", "b", "ü", "c" * 200, "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), ""]),
    st.sampled_from(["READ", "WRITE", "ANY", "NONE"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([None, None, None, *IDS]),
)


def contents(log):
    """The ACLs of a log, with the ids that rows can have."""
    return {(rule.acl, rule.id if uuid_text(rule.id) in IDS else None) for rule in recover(log).image.acls}


def in_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(ROWS, max_size=12), st.booleans())
def test_a_file_is_imported_as_its_lines_one_by_one(rows, there):
    """Up to the first line that is refused: a file with one is refused as a whole."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        one_by_one, bulk = Path(home) / "one-by-one", Path(home) / "bulk"
        for log in (one_by_one, bulk) if there else ():
            aclog("import", "-", "--log", log, stdin=in_lines([acl_row("there")])).ok()
        results = [aclog("import", "-", "--log", one_by_one, stdin=in_lines([row])) for row in rows]
        patch.setattr("aclog.targets.log.MAX_BYTES", 600)
        result = aclog("import", "-", "--log", bulk, stdin=in_lines(rows))
        refused = [number for number, one in enumerate(results, 1) if one.code]
        # Two ids for one ACL contradict each other in a file; on its own, the second line is there already.
        if result.code:
            assert result.code == 2
            assert not there or contents(bulk) == {(rule, None) for rule, _ in contents(bulk)}
            assert refused or "has the same ACL with id" in result.complaint
            if refused and "has the same ACL" not in result.complaint:
                assert f"line {refused[0]}: " in result.complaint
        else:
            assert not refused
            assert contents(bulk) == (contents(one_by_one) if rows or there else set())  # no row makes no log


@pytest.fixture
def log(tmp_path):
    """A log with one ACL, and imports of several batches."""
    aclog("import", "-", "--log", tmp_path / "log", stdin=in_lines([acl_row("there")])).ok()
    return tmp_path / "log"


def test_an_interruption_aborts_the_transaction(log, monkeypatch):
    monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 600)

    def values():
        yield from [encode_record(FeatureLevelRecord(name=f"f{number}", feature_level=1)) for number in range(40)]
        raise KeyboardInterrupt

    with open_writer(log) as writer, pytest.raises(KeyboardInterrupt):
        writer.append(values())
    dumped = aclog("log", "dump", log).ok().out
    assert "ABORT_TRANSACTION_RECORD" in dumped.splitlines()[-1]
    image = recover(log).image
    assert (len(image.features), len(image.acls)) == (0, 1)
    assert aclog("acls", "add", "--log", log, "--topic", "t", "--allow-principal", "User:x").ok().err == ""


def test_the_offsets_of_values_skip_the_marks_of_their_transaction(log, monkeypatch):
    values = [encode_record(FeatureLevelRecord(name=f"f{number}", feature_level=1)) for number in range(40)]
    with open_writer(log) as writer:
        assert writer.append([]) == range(0)
        assert writer.append(values) == range(2, 42)
        monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 600)
        assert writer.append(values) == range(43, 83)
        assert writer.append(values, atomic=False) == range(84, 124)
        assert writer.log.high_watermark() == 124


def test_a_metadata_version_without_transactions_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 600)
    values = [encode_record(FeatureLevelRecord(name="metadata.version", feature_level=12))]
    with open_log(tmp_path / "log", create=True) as new:
        new.append(values, timestamp=1).result()
        end = new.end_offset()
    with open_writer(tmp_path / "log") as writer:
        with pytest.raises(ConfigError, match=r"metadata.version 12 does not support transactions"):
            writer.append(values * 40)
        assert writer.log.end_offset() == end


def test_more_than_the_log_lets_wait_is_written(log, monkeypatch):
    """64 MiB at most are queued in a log, which commits slower than this writes."""
    monkeypatch.setattr("aclog.metalog.group_commit.MAX_WAITING_BYTES", 40_000)
    monkeypatch.setattr("aclog.targets.log._MAX_BYTES_IN_FLIGHT", 20_000)
    monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 3000)
    rows = [acl_row(f"topic-{number}") for number in range(3000)]
    aclog("import", "-", "--log", log, stdin=in_lines(rows)).ok()
    assert len(recover(log).image.acls) == 3001


def test_what_a_large_log_has_is_known_with_tagged_fields_too(tmp_path):
    rows = [acl_row(f"topic-{number}") for number in range(60)]
    tagged = acl_record(7, acl("topic-9", "User:alice"), ((3, b"\0"),))
    with open_log(tmp_path / "log", create=True) as new:
        new.append([encode_record(tagged)], timestamp=1).result()
    assert aclog("import", "-", "--log", tmp_path / "log", stdin=in_lines(rows)).ok().lines == [
        "written: 59 ACLs",
        "existing: 1 ACL",
    ]
    again = aclog("import", "-", "--log", tmp_path / "log", stdin=in_lines([*rows, acl_row("new")])).ok()
    assert again.lines == ["written: 1 ACL", "existing: 60 ACLs"]
    assert len(recover(tmp_path / "log").image.acls) == 61


def test_the_name_of_a_new_log_survives_a_power_loss(tmp_path, monkeypatch):
    """The log is renamed into place: it is acknowledged only once its directory was synced after that."""
    log, synced, fsync = tmp_path / "log", [], os.fsync

    def record(fd):
        fsync(fd)
        synced.append((os.path.samestat(os.fstat(fd), tmp_path.stat()), log.exists()))

    monkeypatch.setattr(disk, "fsync", record)
    aclog("import", "-", "--log", log, stdin=in_lines([acl_row("a")])).ok()
    assert (True, True) in synced


@pytest.mark.process
def test_what_a_killed_import_left_is_named(tmp_path):
    """And nothing else: neither what is being written, nor what somebody has called nearly the same."""
    log = tmp_path / "log [1]"
    left, busy, begun = (tmp_path / f"log [1].{name}.part" for name in ("0123abcd", "00000001", "00000002"))
    for name in ("log [1].part", "log [1].0123abcd.party", "log [1].mine.part", "log 1.0123abcd.part"):
        (tmp_path / name).mkdir()
    (tmp_path / "log [1].00000003.part").write_text("a file")
    for path in (left, begun):
        path.mkdir()
    (left / "aclog.lock").touch()
    holding = "import sys, pathlib; from aclog.metalog.filelog import open_log\n"
    holding += "with open_log(pathlib.Path(sys.argv[1]), create=True): print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", holding, busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        result = aclog("import", "-", "--log", log, stdin=in_lines([acl_row("a")]))
        process.stdin.close()
    named = [line for line in result.err.splitlines() if ".part" in line]
    assert named == [f"aclog: note: {path}: left by an interrupted import or sync: remove it" for path in (begun, left)]
    assert len(contents(log)) == 1
    assert left.is_dir()
    assert ".part" not in aclog("import", "-", "--log", log, stdin=in_lines([acl_row("b")])).err
