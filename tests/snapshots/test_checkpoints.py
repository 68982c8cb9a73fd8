"""Checkpoints, read: the same image as was written, and refused if damaged or cut."""

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.metalog.batches import build_batch, decode_batch, iter_batches
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import LeaderChange, SnapshotFooter, SnapshotHeader, control_batch
from aclog.metalog.errors import CheckpointError, DecodeError
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.records import BeginTransactionRecord, FeatureLevelRecord
from aclog.snapshots.checkpoints import checkpoint_batches, decode_checkpoint, read_checkpoint, write_checkpoint
from aclog.snapshots.image import ClusterImage, Image, NewerKafka
from tests.support.builders.random_log import random_image
from tests.support.builders.state_records import acl
from tests.support.models.naive_replay import state_of
from tests.support.runs.profiles import examples

DATA = Path(__file__).parents[1] / "data"
SMALL = DATA / "kafka-4.3.1-small/__cluster_metadata-0"
CHECKPOINTS = [
    file.path
    for name in ("small", "churn")
    for file in list_checkpoints(DATA / f"kafka-4.3.1-{name}/__cluster_metadata-0")
]


def tiny_checkpoint(epoch=1, values=None, first=None, last=None):
    """Return the bytes of a checkpoint with one data batch."""
    values = [encode_record(acl(1)), encode_record(acl(2))] if values is None else values
    at = {"leader_epoch": epoch, "timestamp": 5}
    header = first or control_batch(SnapshotHeader(last_contained_log_timestamp=5), base_offset=0, **at)
    data = build_batch(values, base_offset=1, **at) if values else b""
    return header + data + (last or control_batch(SnapshotFooter(), base_offset=1 + len(values), **at))


def rewritten(image):
    """The image with its registrations in the version in which a checkpoint has them."""
    return evolve(image, cluster=ClusterImage.EMPTY.apply(enumerate(image.cluster.records(30))))


def same(one, other):
    assert state_of(rewritten(one)) == state_of(rewritten(other))
    assert one.acls.digest() == other.acls.digest()
    assert one.provenance == other.provenance
    assert (one.opaque.count, one.opaque.size) == (other.opaque.count, other.opaque.size)


def test_the_order_of_acls_in_a_checkpoint_means_nothing():
    """A Kafka writes them as its hash map has them (KIP-801: in no deterministic order)."""
    values = [encode_record(acl(number, name=f"t{number}")) for number in range(1, 40)]
    images = [
        decode_checkpoint(tiny_checkpoint(values=order), end_offset=50, epoch=1)
        for order in (values, values[::-1], sorted(values, key=lambda value: value[::-1]))
    ]
    assert len({image.acls.digest() for image in images}) == 1
    assert {len(image.acls) for image in images} == {39}


class TestRoundTrip:
    @pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: f"{path.parts[-3][12:]}-{path.stem[:20]}")
    def test_a_real_checkpoint(self, path, tmp_path):
        image = read_checkpoint(path)
        written = write_checkpoint(image, tmp_path)
        assert written.name == path.name
        same(read_checkpoint(written), image)

    @settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(seed=st.integers(0, 2**32), limit=st.sampled_from((300, 1000, 1 << 23)))
    def test_a_random_image(self, seed, limit):
        image = random_image(seed)
        if image.provenance.kraft_version and image.provenance.voters is None:
            return
        batches = list(checkpoint_batches(image, max_batch_bytes=limit))
        read = decode_checkpoint(b"".join(batches), end_offset=image.end_offset, epoch=image.epoch)
        when = max(image.timestamp, 0)  # an empty log has no timestamp, its checkpoint has one
        same(read, image.at(image.provenance._replace(timestamp=when)))
        assert list(checkpoint_batches(read, max_batch_bytes=limit)) == batches
        assert all(len(batch) <= limit or decode_batch(batch).header.record_count == 1 for batch in batches[1:-1])

    def test_the_empty_image(self, tmp_path):
        path = write_checkpoint(Image.EMPTY, tmp_path)
        assert path.name == "00000000000000000000-0000000000.checkpoint"
        assert len(read_checkpoint(path).acls) == 0

    def test_progress_ends_at_the_size_of_the_file(self, tmp_path):
        told = []
        path = write_checkpoint(random_image(1), tmp_path, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == path.stat().st_size


class TestDamage:
    def refused(self, data, match=None, **name):
        with pytest.raises(DecodeError, match=match) as e:
            decode_checkpoint(data, **{"end_offset": 9, "epoch": 1} | name)
        return e.value

    def test_every_single_bit_flip_is_detected(self, sample):
        data = tiny_checkpoint()
        assert len(decode_checkpoint(data, end_offset=9, epoch=1).acls) == 2
        for position in sample(range(len(data)), 60):
            for bit in range(8):
                flipped = data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]
                self.refused(flipped)

    def test_every_truncation_is_refused(self, sample):
        data = list_checkpoints(SMALL)[1].path.read_bytes()
        assert decode_checkpoint(data, end_offset=69, epoch=1).end_offset == 69
        for size in sample(range(len(data)), 300):
            self.refused(data[:size], end_offset=69)

    def test_a_truncation_at_a_batch_reports_the_missing_footer(self):
        data = tiny_checkpoint()
        position = [position for position, _ in iter_batches(data)][-1]
        self.refused(data[:position], match="no footer: the checkpoint is truncated")

    def test_bytes_after_the_footer(self):
        self.refused(tiny_checkpoint() + b"\0")

    def test_another_epoch_than_the_name_says(self):
        self.refused(tiny_checkpoint(epoch=2), match="epoch 1 as in the checkpoint's name")

    def test_no_header(self):
        first = control_batch(
            LeaderChange(leader_id=1, voters=(), granting_voters=()), base_offset=0, leader_epoch=1, timestamp=5
        )
        self.refused(tiny_checkpoint(first=first), match="no SnapshotHeader")

    def test_no_footer(self):
        last = control_batch(SnapshotHeader(last_contained_log_timestamp=5), base_offset=3, leader_epoch=1, timestamp=5)
        self.refused(tiny_checkpoint(last=last), match="no SnapshotFooter")

    def test_an_acl_twice(self):
        value = encode_record(acl(1))
        assert "exists already" in str(self.refused(tiny_checkpoint(values=[value, value])))

    def test_an_open_transaction(self):
        values = [encode_record(BeginTransactionRecord())]
        self.refused(tiny_checkpoint(values=values), match="inside a transaction")

    def test_one_of_a_newer_kafka(self):
        value = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=34))
        self.refused(tiny_checkpoint(values=[value]), match="metadata.version 34 of a newer Kafka")
        newer = NewerKafka(strict=False)
        decode_checkpoint(tiny_checkpoint(values=[value]), end_offset=9, epoch=1, newer=newer)
        assert len(newer.warnings()) == 1


class TestRead:
    def test_damage_is_reported_with_path_and_position(self, tmp_path):
        path = tmp_path / "00000000000000000009-0000000001.checkpoint"
        data = tiny_checkpoint()
        path.write_bytes(data[:100] + b"\0" + data[101:])
        with pytest.raises(CheckpointError) as e:
            read_checkpoint(path)
        assert str(e.value).startswith(f"{path}: ")
        assert "\n" not in str(e.value)
        assert "byte" in str(e.value)

    @pytest.mark.parametrize(
        "name", ["x.checkpoint", "00000000000000000009-0000000001.checkpoint.deleted", "1-1.checkpoint"]
    )
    def test_other_file_names_are_refused(self, tmp_path, name):
        (tmp_path / name).write_bytes(tiny_checkpoint())
        with pytest.raises(CheckpointError, match="not a checkpoint file name"):
            read_checkpoint(tmp_path / name)

    def test_an_unfinished_checkpoint(self, tmp_path):
        path = tmp_path / "00000000000000000009-0000000001-abc.checkpoint.part"
        path.write_bytes(tiny_checkpoint())
        with pytest.raises(CheckpointError, match="an unfinished checkpoint"):
            read_checkpoint(path)

    def test_no_such_file(self, tmp_path):
        with pytest.raises(CheckpointError, match="No such file"):
            read_checkpoint(tmp_path / "00000000000000000009-0000000001.checkpoint")

    def test_the_bootstrap_checkpoint(self):
        image = read_checkpoint(DATA / "kafka-4.3.1-small/bootstrap.checkpoint")
        assert (image.end_offset, image.features.level("metadata.version"), len(image.scram)) == (0, 30, 2)
