"""`aclog log` dumps every record as DumpLogSegments does, and reports damage."""

import json
import re
import shutil
from pathlib import Path

import pytest

from aclog.authorizer.acls_image import AclsImage
from aclog.cli import snapshot
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import METADATA_DIRECTORY, image_path
from aclog.metalog.records import FeatureLevelRecord
from aclog.snapshots import checkpoints
from aclog.snapshots.checkpoints import write_image_file
from tests.support.builders.state_logs import damage
from tests.support.cli.command import aclog

SMALL = Path(__file__).parents[1] / "data/kafka-4.3.1-small"
LOG = SMALL / "__cluster_metadata-0"
SEGMENT = LOG / "00000000000000000183.log"
CHECKPOINT = LOG / "00000000000000000211-0000000002.checkpoint"


def dumped_by_kafka():
    """Return (file, offset, epoch, type, data) of each record in Kafka's dump; data as printed."""
    file, epoch, found = None, None, []
    for line in (SMALL / "expected/dump-log.txt").read_text().splitlines():
        if line.startswith("##### "):
            file = line.split()[1]
        elif line.startswith("baseOffset"):
            epoch = int(re.search(r"partitionLeaderEpoch: (-?\d+)", line)[1])
        elif match := re.match(r"\| offset: (\d+) CreateTime: (\d+) .*headerKeys: \[\] (.*)", line):
            offset, time, rest = match.groups()
            if rest.startswith("payload: "):
                payload = json.loads(rest.removeprefix("payload: "))
                kind, data = payload["type"], payload["data"]
            else:
                kind, data = re.match(r"(\w+):? (\{.*\})", rest).groups()
                data = json.loads(data)
            found.append((file, int(offset), epoch, int(time), kind, data))
    return found


def test_every_record_of_every_file_is_dumped_as_kafka_dumps_it():
    expected = [row for row in dumped_by_kafka() if (LOG / row[0]).exists()]
    rows = [json.loads(line) for line in aclog("log", "dump", "--json", "--show-secrets", LOG).ok().lines]
    assert [list(row) for row in rows[:1]] == [
        ["file", "offset", "leaderEpoch", "timestamp", "type", "version", "data"]
    ]
    found = [(Path(r["file"]).name, r["offset"], r["leaderEpoch"], r["timestamp"], r["type"]) for r in rows]
    assert sorted(found) == sorted(row[:5] for row in expected)
    theirs = {row[:2]: row[5] for row in expected}
    interpreted = [row for row in rows if list(row["data"]) != ["base64"]]
    assert len(interpreted) > 400
    for row in interpreted:
        assert row["data"] == theirs[Path(row["file"]).name, row["offset"]]


def test_text_has_a_line_per_file_and_per_record():
    dump = aclog("log", "dump", SEGMENT, CHECKPOINT).ok()
    assert [line for line in dump.lines if line.startswith("Dumping")] == [
        f"Dumping {SEGMENT}",
        f"Dumping {CHECKPOINT}",
    ]
    assert dump.lines[1].startswith("offset: 183 leaderEpoch: 2 timestamp: 17952279")
    assert len(dump.lines) == 2 + 48 + 110


def test_secrets_are_shown_only_on_request():
    secrets = re.findall(r'"(?:salt|storedKey|serverKey)":"([^"]+)"', (SMALL / "expected/dump-log.txt").read_text())
    assert secrets
    for flags in ((), ("--json",)):
        hidden, shown = (
            aclog("log", "dump", LOG, *flags).ok().out,
            aclog("log", "dump", LOG, "--show-secrets", *flags).ok().out,
        )
        assert '"salt":"***"' in hidden
        assert not [secret for secret in secrets if secret in hidden]
        assert [secret for secret in secrets if secret in shown]


def test_a_truncated_segment_is_dumped_up_to_its_end(tmp_path):
    cut = tmp_path / SEGMENT.name
    cut.write_bytes(SEGMENT.read_bytes()[:-7])
    dump = aclog("log", "dump", cut)
    assert dump.code == 2
    assert len(dump.lines) > 40
    problem = rf"{cut}: byte \d+: \d+ bytes that are not a whole batch: truncated\?"
    assert re.fullmatch(rf"{problem}; `aclog log verify {tmp_path}` lists all errors", dump.complaint)


def test_a_flipped_bit_is_reported_with_its_position(tmp_path):
    damaged = tmp_path / SEGMENT.name
    data = bytearray(SEGMENT.read_bytes())
    data[2000] ^= 1
    damaged.write_bytes(data)
    dump = aclog("log", "dump", damaged)
    assert dump.code == 2
    assert str(damaged) in dump.complaint
    assert "byte" in dump.complaint


class TestVerify:
    def test_a_sound_log(self):
        verified = aclog("log", "verify", LOG).ok()
        assert verified.lines[-1] == "all is well"
        assert "68 ACLs, 7 SCRAM credentials, 8 delegation tokens" in verified.out

    def test_damage_is_reported_with_exit_code_1(self, tmp_path):
        copy = tmp_path / "log"
        shutil.copytree(LOG, copy)
        data = bytearray(SEGMENT.read_bytes())
        data[2000] ^= 1
        (copy / SEGMENT.name).write_bytes(data)
        verified = aclog("log", "verify", copy)
        assert verified.code == 1
        assert verified.lines[-1] == "damaged"
        assert str(copy / SEGMENT.name) in verified.lines[0]

    def test_a_missing_leader_epoch_file_is_a_note(self, tmp_path):
        copy = shutil.copytree(LOG, tmp_path / "log")
        (copy / "leader-epoch-checkpoint").unlink()
        verified = aclog("log", "verify", copy).ok()
        assert verified.lines[-1] == "all is well"
        assert verified.err.startswith(f"aclog: note: {copy}/leader-epoch-checkpoint: missing")

    @pytest.mark.parametrize(
        "value",
        [
            b"\x02\x12\x00",
            b"\x01\x12\x01",
            b"\x01\x1e\x00beyond",
            encode_record(FeatureLevelRecord(name="metadata.version", feature_level=34)),
        ],
        ids=["a frame version", "a record version", "an apiKey", "a metadata.version"],
    )
    def test_what_a_newer_kafka_wrote_is_no_damage(self, value, tmp_path):
        with open_log(tmp_path / "log", create=True) as log:
            log.append([value], timestamp=0).result(60)
        verified = aclog("log", "verify", tmp_path / "log")
        assert verified.code == 2
        assert verified.lines[-1].startswith("not damaged, but written by a newer Kafka")
        [segment] = (tmp_path / "log").glob("*.log")
        data = bytearray(segment.read_bytes())
        data[30] ^= 1  # in the first batch, a LeaderChange
        segment.write_bytes(data)
        both = aclog("log", "verify", tmp_path / "log")
        assert (both.code, both.lines[-1]) == (1, "damaged")

    def test_a_cidr_range_as_host_is_warned_about(self, tmp_path):
        rule = (
            b'{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a",'
            b'"host":"10.0.0.0/8","operation":"READ","permissionType":"DENY"}'
        )
        aclog("import", "-", "--log", tmp_path / "log", stdin=rule).ok()
        assert "has a CIDR range as host" in aclog("log", "verify", tmp_path / "log").ok().err


class TestSnapshot:
    def test_list_shows_the_contents_of_each(self):
        lines = aclog("snapshot", "list", LOG).ok().lines
        assert len(lines) == 5
        assert lines[-1] == (
            f"{CHECKPOINT.name}  2026-11-21T02:25:25.199Z  66 ACLs, 6 SCRAM credentials, 7 delegation tokens, "
            "6 features, 1 broker, 20 other records"
        )

    def test_list_names_a_damaged_one(self, tmp_path):
        (tmp_path / CHECKPOINT.name).write_bytes(CHECKPOINT.read_bytes()[:-1])
        [line] = aclog("snapshot", "list", tmp_path).ok().lines
        assert line.startswith(f"{CHECKPOINT.name}  damaged: ")

    def test_verify_detects_a_truncated_checkpoint(self, tmp_path):
        cut = tmp_path / CHECKPOINT.name
        cut.write_bytes(CHECKPOINT.read_bytes()[:-1])
        assert aclog("snapshot", "verify", CHECKPOINT).ok().lines[0].startswith(f"{CHECKPOINT}: whole: 66 ACLs")
        verified = aclog("snapshot", "verify", CHECKPOINT, cut)
        assert verified.code == 1
        assert str(cut) in verified.lines[1]

    def test_create_writes_the_state_of_any_moment(self, tmp_path):
        for flags, name in (
            ((), "00000000000000000231-0000000002.checkpoint"),
            (("--as-of", "163"), "00000000000000000163-0000000002.checkpoint"),
            (("--as-of", "2026-11-21T02:24:41.679Z"), "00000000000000000116-0000000001.checkpoint"),
        ):
            made = aclog("snapshot", "create", "--log", LOG, *flags, "--out", tmp_path / "new" / "directory").ok()
            assert made.lines == [str(tmp_path / "new/directory" / name)]
            state = ("acls", "list", "--format", "jsonl")
            assert aclog(*state, "--snapshot", made.lines[0]).ok().out == aclog(*state, "--log", LOG, *flags).ok().out
        found = sorted(path.suffix for path in (tmp_path / "new/directory").iterdir())
        assert found == [".checkpoint"] * 3 + [".image"] * 3

    def test_the_image_file_beside_a_checkpoint(self, tmp_path):
        made = Path(aclog("snapshot", "create", "--log", LOG, "--out", tmp_path).ok().lines[0])
        [line] = aclog("snapshot", "list", tmp_path).ok().lines
        assert line.endswith(" other records, image file")
        assert aclog("snapshot", "verify", made).ok().lines[0].endswith(" other records, image file")
        damage(image_path(made))
        for command in (("list", tmp_path), ("verify", made)):
            [line] = aclog("snapshot", *command).ok().lines
            assert line.endswith(" other records, image file ignored: damaged: a checksum does not match")
        listed = aclog("acls", "list", "--log", tmp_path).ok()
        assert f"{image_path(made)}: damaged" in listed.err
        image_path(made).unlink()
        assert aclog("acls", "list", "--log", tmp_path).ok().out == listed.out
        assert aclog("snapshot", "list", tmp_path).ok().lines[0].endswith(" other records")

    def test_what_a_killed_create_left_is_removed_by_the_next(self, tmp_path):
        name = "00000000000000000009-0000000001-0123456789abcdef"
        left = [tmp_path / f"{name}.checkpoint.part", tmp_path / f"{name}.image.part"]
        for path in left:
            path.touch()
        made = aclog("snapshot", "create", "--log", LOG, "--out", tmp_path).ok()
        assert {path.name for path in tmp_path.iterdir()} == {
            Path(made.lines[0]).name,
            image_path(Path(made.lines[0])).name,
        }
        for path in left:
            assert f"{path}: removed: it was left unfinished by a process that was killed" in made.err
        kafka = shutil.copytree(LOG, tmp_path / "copy")
        (kafka / left[0].name).touch()
        aclog("snapshot", "create", "--log", LOG, "--out", kafka).ok()
        assert (kafka / left[0].name).exists(), "it may be Kafka's"

    def test_verify_finds_an_image_file_that_says_something_else(self, tmp_path, monkeypatch):
        """Nothing writes one; somebody may."""
        made = Path(aclog("snapshot", "create", "--log", LOG, "--out", tmp_path).ok().lines[0])
        with monkeypatch.context() as patched:
            patched.setattr(checkpoints, "flat_of", lambda _: AclsImage.empty().index.base.buffer)
            write_image_file(made)
        verified = aclog("snapshot", "verify", made)
        assert verified.code == 1
        assert verified.lines[0].endswith(f", but {image_path(made)} holds another state: remove it")

    def test_a_kafkas_directory_gets_no_image_file(self, tmp_path):
        directory = shutil.copytree(LOG, tmp_path / "copy")
        before = {path.name for path in directory.iterdir()}
        made = Path(aclog("snapshot", "create", "--log", directory, "--out", directory).ok().lines[0])
        assert {path.name for path in directory.iterdir()} == before | {made.name}
        empty = tmp_path / METADATA_DIRECTORY  # as a Kafka's, before its first start
        aclog("snapshot", "create", "--log", LOG, "--out", empty).ok()
        assert [path.name for path in empty.iterdir()] == [made.name]

    def test_no_image_file_is_no_failure(self, tmp_path, monkeypatch):
        def full(*_, **__):
            raise LogError("the disk is full")

        monkeypatch.setattr(snapshot, "write_image_file", full)
        made = aclog("snapshot", "create", "--log", LOG, "--out", tmp_path).ok()
        assert f"{image_path(Path(made.lines[0]))}: not written: the disk is full" in made.err

    def test_reading_writes_none(self, tmp_path):
        directory = shutil.copytree(LOG, tmp_path / "copy")
        before = {path.name for path in directory.iterdir()}
        aclog("acls", "list", "--log", directory).ok()
        aclog("snapshot", "list", directory).ok()
        assert {path.name for path in directory.iterdir()} == before

    def test_create_assigns_missing_ids(self, tmp_path):
        made = aclog("snapshot", "create", "--acls", SMALL / "expected/acls.jsonl", "--out", tmp_path).ok()
        rows = aclog("acls", "list", "--snapshot", made.lines[0], "--format", "jsonl").ok().lines
        ids = [json.loads(row)["id"] for row in rows]
        assert made.lines[0].endswith("/00000000000000000069-0000000001.checkpoint")
        assert aclog("acls", "list", "--log", tmp_path, "--format", "jsonl").ok().lines == rows
        assert len(set(ids)) == 68
        assert all(len(each) == 22 for each in ids)


def test_the_shell_gets_the_state():
    rule = "3aPpDAnMRlu4BAsYOn9-Bg"
    assert rule in aclog("shell", "--log", LOG, "ls", "/acl/id").ok().out
    assert '"resourceName"' in aclog("shell", "--log", LOG, "cat", f"/acl/id/{rule}").ok().out
    assert rule not in aclog("shell", "--log", LOG, "--as-of", "40", "ls", "/acl/id").ok().out
    assert aclog("shell", "--snapshot", CHECKPOINT, "cat", "/nothing").code == 1
    refused = aclog("shell", "--log", LOG, "fly")
    assert refused.code == 2
    assert "fly" in refused.complaint


def test_an_offset_inside_a_batch_is_lowered_with_a_note():
    lowered = aclog("acls", "list", "--log", LOG, "--as-of", "7", "--format", "jsonl").ok()
    assert re.search(r"aclog: note: offset 7 was lowered to 3, the end of the last whole batch", lowered.err)


@pytest.mark.parametrize("command", ["list", "add"])
def test_a_torn_tail_is_ignored_with_a_note(tmp_path, command):
    copy = tmp_path / "log"
    shutil.copytree(LOG, copy)
    (copy / SEGMENT.name).write_bytes(SEGMENT.read_bytes()[:-7])
    flags = ("--topic", "t", "--allow-principal", "User:x") if command == "add" else ()
    done = aclog("acls", command, "--log", copy, *flags).ok()
    assert re.search(r"aclog: note: .*(bytes that are not a whole batch|truncated a torn tail)", done.err)
