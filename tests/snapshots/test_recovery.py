"""Recovery and moments in the past: what is read, what is skipped, and the notes about it."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import CheckpointError, ConfigError, DecodeError, LogError, ReplayError
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.committed_mark import CommittedMark
from aclog.metalog.filelog.files import METADATA_DIRECTORY, image_path, list_checkpoints, segment_name
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots import checkpoints, publisher
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint, write_image_file
from aclog.snapshots.publisher import recover, recover_log
from tests.support.builders.ids import uuid_of
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal

SMALL = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def numbers(image, most=20):
    ids = {rule.id for rule in image.acls}
    return [number for number in range(most) if uuid_of(number) in ids]


def checkpoint_at(directory, offset):
    return write_checkpoint(recover(directory, offset).image, directory)


@pytest.fixture
def log(tmp_path):
    """Offsets 0 to 5, one batch and one ACL each."""
    return write_log(tmp_path / "log", *([acl(number)] for number in range(6)))


def test_what_a_node_had_committed_and_is_not_there_any_more_is_said(tmp_path):
    directory = write_log(tmp_path / METADATA_DIRECTORY, *([acl(number)] for number in range(6)))
    checkpoint_at(directory, 6)
    before = recover(directory).notes
    mark = CommittedMark.beside(directory, cluster_id="c", end_offset=6, epoch=1)
    mark.write()
    assert recover(directory).notes == before
    mark.moved(7, 1).write()
    said, *others = recover(directory).notes
    assert said == (
        f"{directory}: ends at offset 6, but {mark.path} records the log as committed up to 7: this state is older "
        "than the node's, and unless the rest is in the log, no node starts on it"
    )
    assert others == list(before)
    (directory / segment_name(0)).unlink()
    with pytest.raises(LogError, match=r"no log, but .*aclog\.committed records one committed up to offset 7"):
        recover(directory)


class TestWhatIsRead:
    def test_the_newest_checkpoint_then_the_log(self, log):
        path = checkpoint_at(log, 4)
        found = recover(log)
        assert numbers(found.image) == [0, 1, 2, 3, 4, 5]
        assert found.source == f"{path}, then {log} from offset 4"

    def test_a_damaged_checkpoint_is_reported_and_an_older_one_used(self, log):
        before, newest = checkpoint_at(log, 2), checkpoint_at(log, 4)
        damage(newest)
        found = recover(log)
        assert numbers(found.image) == [0, 1, 2, 3, 4, 5]
        assert found.source.startswith(str(before))
        assert any(
            note.startswith(f"{newest}: ") and "falling back to an older checkpoint or the log" in note
            for note in found.notes
        )

    def test_all_checkpoints_damaged_the_log_from_its_start(self, log):
        damage(checkpoint_at(log, 4))
        found = recover(log)
        assert numbers(found.image) == [0, 1, 2, 3, 4, 5]
        assert found.source == f"{log} from offset 0"

    def test_a_damaged_checkpoint_that_nothing_replaces_is_an_error(self, tmp_path, log):
        image = recover(log, 4).image
        short = write_log(tmp_path / "short", [acl(4)], [acl(5)], base=4)
        path = write_checkpoint(image, short)
        assert numbers(recover(short).image) == [0, 1, 2, 3, 4, 5]
        damage(path)
        with pytest.raises(CheckpointError, match=str(path)):
            recover(short)

    def test_a_log_that_does_not_reach_back_is_an_error(self, tmp_path):
        with pytest.raises(LogError, match="begins at offset 4, and no checkpoint"):
            recover(write_log(tmp_path / "short", [acl(4)], base=4))

    def test_an_older_checkpoint_that_the_log_does_not_continue_is_not_used(self, tmp_path, log):
        older, newer = recover(log, 2).image, recover(log, 4).image
        short = write_log(tmp_path / "short", [acl(4)], base=4)
        write_checkpoint(older, short)
        damage(write_checkpoint(newer, short))
        with pytest.raises(CheckpointError):
            recover(short)
        assert numbers(recover(short, 2).image) == [0, 1]

    def test_a_damaged_checkpoint_ahead_of_the_log_is_an_error(self, tmp_path, log):
        image = recover(log).image
        behind = write_log(tmp_path / "behind", *([acl(number)] for number in range(3)))
        path = write_checkpoint(image, behind)
        assert numbers(recover(behind).image) == [0, 1, 2, 3, 4, 5]
        for offset in (4, 5):  # neither the log nor a checkpoint reaches these states
            with pytest.raises(LogError, match=f"as of {offset}: expected an offset or a time from 0 to 3"):
                recover(behind, offset)
        damage(path)
        with pytest.raises(CheckpointError, match=str(path)):
            recover(behind)
        assert numbers(recover(behind, 3).image) == [0, 1, 2]

    def test_a_live_node_that_replaces_segments_by_a_checkpoint(self, log, monkeypatch):
        segment = log / segment_name(0)
        start = read_header(segment.read_bytes()).size * 3
        (log / segment_name(3)).write_bytes(segment.read_bytes()[start:])
        segment.write_bytes(segment.read_bytes()[:start])
        older, newest = checkpoint_at(log, 2), recover(log).image
        real = publisher.read_state

        def meanwhile(path, **options):
            if older.exists():
                write_checkpoint(newest, log)
                segment.unlink()
                older.unlink()
            return real(path, **options)

        monkeypatch.setattr(publisher, "read_state", meanwhile)
        found = recover(log)
        assert numbers(found.image) == [0, 1, 2, 3, 4, 5]
        assert not any("falling back to an older checkpoint or the log" in note for note in found.notes)

    def test_an_image_file_is_used_and_the_log_after_it(self, log, monkeypatch):
        path = checkpoint_at(log, 4)
        write_image_file(path)
        expected = [numbers(recover(log).image), numbers(recover(log, 4).image), numbers(recover(path).image)]

        def not_needed(*_, **__):
            raise AssertionError("the checkpoint was replayed")

        with monkeypatch.context() as patched:
            patched.setattr(checkpoints, "read_checkpoint", not_needed)
            found = [recover(log), recover(log, 4), recover(path)]
        assert [numbers(each.image) for each in found] == expected == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3], [0, 1, 2, 3]]
        assert not any("ignored" in note for each in found for note in each.notes)

    def test_a_bad_image_file_is_said(self, log):
        path = checkpoint_at(log, 4)
        damage(write_image_file(path))
        for place in (log, path):
            found = recover(place)
            why = "damaged: a checksum does not match; ignored: reading the checkpoint instead"
            assert f"{image_path(path)}: {why}" in found.notes
            assert numbers(found.image)[:4] == [0, 1, 2, 3]

    def test_an_image_file_of_a_damaged_checkpoint_does_not_stand_in_for_it(self, log):
        path = checkpoint_at(log, 4)
        write_image_file(path)
        damage(path)
        with pytest.raises(CheckpointError, match="CRC mismatch"):
            recover(path)
        assert numbers(recover(log).image) == [0, 1, 2, 3, 4, 5]
        assert any("falling back to an older checkpoint or the log" in note for note in recover(log).notes)

    def test_a_checkpoint_file_alone(self, log):
        path = checkpoint_at(log, 4)
        assert numbers(recover(path).image) == [0, 1, 2, 3]
        assert numbers(recover(path, 4).image) == [0, 1, 2, 3]
        assert numbers(recover(path, at(4000)).image) == [0, 1, 2, 3]
        for moment in (3, 5, at(3999)):
            with pytest.raises(LogError, match="expected 4, the end offset of this checkpoint"):
                recover(path, moment)

    def test_a_directory_of_checkpoints_alone(self, tmp_path, log):
        only = tmp_path / "only"
        only.mkdir()
        for offset in (2, 4):
            write_checkpoint(recover(log, offset).image, only)
        assert numbers(recover(only).image) == [0, 1, 2, 3]
        assert numbers(recover(only, 2).image) == [0, 1]
        with pytest.raises(LogError, match="expected one of the end offsets 2, 4"):
            recover(only, 3)

    def test_unfinished_and_deleted_checkpoints_are_ignored(self, log):
        path = checkpoint_at(log, 4)
        path.rename(f"{path}.deleted")
        (log / "00000000000000000005-0000000001-x.checkpoint.part").write_bytes(b"")
        assert recover(log).notes[1:] == ()

    def test_a_log_of_ours_goes_no_further_than_its_mark(self, tmp_path):
        with open_log(tmp_path / "ours", create=True) as ours:
            ours.append([encode_record(acl(1))], timestamp=5).result(60)
        with open_reader(tmp_path / "ours") as reader:
            end = reader.high_watermark()
        image = recover(tmp_path / "ours").image
        assert (numbers(image), image.end_offset) == ([1], end)

    @pytest.mark.parametrize("name", ["none", "empty"])
    def test_other_directories_are_refused(self, tmp_path, name):
        (tmp_path / "empty").mkdir()
        with pytest.raises(LogError, match=str(tmp_path / name)):
            recover(tmp_path / name)

    def test_damage_in_the_log_is_reported_with_its_offset(self, tmp_path):
        log = write_log(tmp_path / "log", [acl(1)], [acl(2)], [acl(1)], [acl(3)])
        with pytest.raises(ReplayError, match=rf"^{log}: offset 2: ACL .* exists already"):
            recover(log)
        assert numbers(recover(log, 2).image) == [1, 2]

    def test_progress(self, log):
        told = []
        recover(log, progress=lambda done, total: told.append((done, total)))
        assert told == [(0, 6), (6, 6)]

    def test_a_newer_kafkas_log(self, tmp_path):
        log = write_log(tmp_path / "log", [acl(1)])
        unknown = build_batch([b"\1\x1e\0abc"], base_offset=1, leader_epoch=1, timestamp=5)
        with (log / segment_name(0)).open("ab") as file:
            file.write(unknown)
        with pytest.raises(ReplayError, match="apiKey 30, written by a newer Kafka"):
            recover(log)
        found = recover(log, strict=False)
        assert numbers(found.image) == [1]
        assert any("apiKey 30" in note for note in found.notes)


class TestOffsets:
    @pytest.mark.parametrize("offset", range(7))
    @pytest.mark.parametrize("checkpoint", [None, 3])
    def test_every_offset(self, log, offset, checkpoint):
        if checkpoint is not None:
            checkpoint_at(log, checkpoint)
        found = recover(log, offset)
        assert numbers(found.image) == list(range(offset))
        assert found.image.end_offset == found.applier.next_offset == offset

    def test_inside_a_batch_it_is_lowered(self, tmp_path):
        log = write_log(tmp_path / "log", [acl(0)], [acl(1), acl(2), acl(3)])
        for offset in (1, 2, 3):
            found = recover(log, offset)
            assert numbers(found.image) == [0]
            assert found.image.end_offset == 1
            lowered = f"offset {offset} was lowered to 1, the end of the last whole batch: {offset} is inside a batch"
            assert (lowered in found.notes) == (offset > 1)

    def test_inside_a_transaction_it_is_lowered(self, tmp_path):
        begin, end, abort = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
        log = write_log(tmp_path / "log", [acl(0)], [begin], [acl(1)], [end], [begin], [acl(2)], [abort])
        assert [numbers(recover(log, offset).image) for offset in range(8)] == [
            [], [0], [0], [0], [0, 1], [0, 1], [0, 1], [0, 1]
        ]  # fmt: skip
        assert [recover(log, offset).image.end_offset for offset in range(8)] == [0, 1, 1, 1, 4, 4, 4, 7]
        assert any("lowered to 1" in note and "transaction" in note for note in recover(log, 3).notes)

    def test_an_open_transaction_at_the_end_is_noted(self, tmp_path):
        log = write_log(tmp_path / "log", [acl(0)], [BeginTransactionRecord(), acl(1)])
        found = recover(log)
        assert numbers(found.image) == [0]
        assert any("a transaction is open at 3" in note for note in found.notes)
        assert found.applier.next_offset == 3

    @pytest.mark.parametrize("offset", [7, 10**12])
    def test_beyond_the_end(self, log, offset):
        with pytest.raises(LogError, match=f"as of {offset}: expected an offset or a time from 0 to 6"):
            recover(log, offset)

    def test_before_what_can_be_reached(self, tmp_path, log):
        image = recover(log, 4).image
        short = write_log(tmp_path / "short", [acl(4)], [acl(5)], base=4)
        write_checkpoint(image, short)
        with pytest.raises(LogError, match="as of 3: expected an offset or a time from 4 to 6"):
            recover(short, 3)

    def test_the_applier_continues_where_recovery_ended(self, log):
        found = recover(log, 3)
        with open_reader(log) as reader:
            assert numbers(found.applier.apply(reader.read(3))) == [0, 1, 2, 3, 4, 5]


class TestTimes:
    @pytest.mark.parametrize(("ms", "count"), [(1000, 1), (1999, 1), (3000, 3), (10**6, 6)])
    @pytest.mark.parametrize("checkpoint", [None, 3])
    def test_the_state_before_the_first_later_batch(self, log, ms, count, checkpoint):
        if checkpoint is not None:
            checkpoint_at(log, checkpoint)
        assert numbers(recover(log, at(ms)).image) == list(range(count))

    @pytest.mark.parametrize("checkpoint", [None, 0, 3])
    def test_before_the_first_record_the_state_is_unknown(self, log, checkpoint):
        if checkpoint is not None:
            checkpoint_at(log, checkpoint)
        for ms in (0, 999):
            with pytest.raises(
                LogError, match="the state is unknown: the log's first record is of 1970-01-01T00:00:01Z"
            ):
                recover(log, at(ms))
        assert numbers(recover(log, 0).image) == []

    def test_without_a_record_no_state_is_known_at_any_time(self, tmp_path, log):
        (tmp_path / "empty").mkdir()
        (tmp_path / "empty" / segment_name(0)).write_bytes(b"")
        with pytest.raises(LogError, match="the state is unknown: the log has no record"):
            recover(tmp_path / "empty", at(10**12))
        only = tmp_path / "only"
        only.mkdir()
        path = write_checkpoint(recover(log, 0).image, only)
        for source in (path, only):
            with pytest.raises(LogError, match="as of"):
                recover(source, at(10**12))
            assert numbers(recover(source, 0).image) == []

    def test_timestamps_that_go_back_do_not_include_later_batches(self, tmp_path):
        log = write_log(tmp_path / "log", [acl(0)], [acl(1)], [acl(2)], times=[1000, 5000, 2000])
        assert numbers(recover(log, at(3000)).image) == [0]
        checkpoint_at(log, 3)
        assert numbers(recover(log, at(3000)).image) == [0]

    def test_before_the_start_of_a_shortened_log(self, tmp_path, log):
        image = recover(log, 4).image
        short = write_log(tmp_path / "short", [acl(4)], base=4, times=[5000])
        write_checkpoint(image, short)
        assert numbers(recover(short, at(4500)).image) == [0, 1, 2, 3]
        with pytest.raises(LogError, match="as of 1970-01-01 00:00:03"):
            recover(short, at(3000))

    def test_a_time_without_a_zone_is_refused(self, log):
        with pytest.raises(ConfigError, match="no time zone"):
            recover(log, datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_reader_with_checkpoints_from_elsewhere(log, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_checkpoint(recover(log, 5).image, elsewhere)
    with open_reader(log) as reader:
        found = recover_log(reader, list_checkpoints(elsewhere))
    assert numbers(found.image) == [0, 1, 2, 3, 4, 5]
    assert str(elsewhere) in found.source


def test_a_removed_acl_is_absent(tmp_path):
    log = write_log(tmp_path / "log", [acl(0)], [removal(0)])
    assert numbers(recover(log, 1).image) == [0]
    assert numbers(recover(log).image) == []


@pytest.mark.parametrize("offset", [60, 69, 100, 163, 190, 231])
def test_the_same_with_and_without_checkpoints(tmp_path, offset):
    bare = tmp_path / "bare"
    shutil.copytree(SMALL, bare)
    for file in list_checkpoints(bare):
        file.path.unlink()
    with_them, without = recover(SMALL, offset).image, recover(bare, offset).image
    assert with_them.acls.digest() == without.acls.digest()
    assert with_them.provenance == without.provenance
    assert (with_them.scram, with_them.tokens) == (without.scram, without.tokens)


def test_a_torn_segment_of_a_kafka(tmp_path):
    torn = tmp_path / "torn"
    shutil.copytree(SMALL, torn)
    for file in list_checkpoints(torn)[1:]:
        file.path.unlink()
    segment = torn / segment_name(183)
    segment.write_bytes(segment.read_bytes()[:-10])
    assert recover(torn).image.end_offset == 230
    assert isinstance(recover(torn).applier, Applier)
    segment.write_bytes(segment.read_bytes()[:200] + b"\0" + segment.read_bytes()[201:])
    with pytest.raises(DecodeError, match=r"00000000000000000183\.log"):
        recover(torn)


def test_many_changes_after_a_checkpoint_are_merged_into_the_base(log, monkeypatch):
    checkpoint_at(log, 3)
    assert recover(log).image.acls.overlay_size > 0
    monkeypatch.setattr(publisher, "fold_at", lambda rules: 3)
    found = recover(log)
    assert found.image.acls.overlay_size == 0
    assert numbers(found.image) == [0, 1, 2, 3, 4, 5]
    assert found.applier.image is found.image
