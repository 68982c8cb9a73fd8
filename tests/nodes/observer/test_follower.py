"""A follower keeps a node's image up to date with a quorum's log."""

import threading
import time

import pytest
from attrs import define, evolve, field

from aclog.client.errors import CommittedRecordsLostError
from aclog.client.fetching import EpochEnd
from aclog.client.follower import Follower, Lag
from aclog.client.quorum_log import QuorumLog
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RemoveAccessControlEntryRecord,
)
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import Publisher
from tests.support.builders.ids import uuid_of
from tests.support.fakes.memory_log import MemoryLog
from tests.support.fakes.observers import QUICK


def acl(number):
    return encode_record(
        AccessControlEntryRecord(
            id=uuid_of(number),
            resource_type=2,
            resource_name=f"topic-{number}",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        )
    )


def removal(number):
    return encode_record(RemoveAccessControlEntryRecord(id=uuid_of(number)))


@define(slots=False)
class Troubled:
    """A log in memory that fails on demand."""

    log: MemoryLog = field(factory=MemoryLog)
    error: Exception | None = None
    name: str = "troubled"

    def checkpoints(self):
        return ()

    def start_offset(self):
        return 0

    def high_watermark(self):
        return self.log.high_watermark()

    def read(self, offset, max_bytes):
        if self.error is not None:
            raise self.error
        return self.log.read(offset, max_bytes)

    def wait(self, offset, timeout):
        return self.log.wait(offset, timeout)

    def close(self):
        self.log.close()


class Following:
    """A follower, the images and messages it published, and ways to wait for them."""

    def __init__(self, log):
        self.shown, self.said, self._changed = [], [], threading.Condition()
        self.publisher = Publisher()
        self.publisher.subscribe(self._see)
        self.follower = Follower(log=log, publisher=self.publisher, notify=self._hear)
        self.follower.start()

    def _see(self, image):
        with self._changed:
            self.shown.append(image)
            self._changed.notify_all()

    def _hear(self, text):
        with self._changed:
            self.said.append(text)
            self._changed.notify_all()

    def until(self, what):
        with self._changed:
            assert self._changed.wait_for(what, 30), (self.shown, self.said)

    def until_offset(self, offset):
        self.until(lambda: self.publisher.current.end_offset >= offset)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.follower.stop(30)


@pytest.fixture
def memory():
    log = Troubled()
    yield log
    log.close()


def test_existing_and_new_records_are_replayed(memory):
    memory.log.append([acl(1)], timestamp=5)
    with Following(memory) as following:
        assert following.publisher.wait_ready(30)
        for number in range(2, 30):
            offset = memory.log.append([acl(number), removal(number - 1)], timestamp=number).result().last_offset
            following.until_offset(offset + 1)
        assert {entry.id for entry in following.publisher.current.acls} == {uuid_of(29)}
        offsets = [image.end_offset for image in following.shown]
        assert offsets == sorted(offsets)


def test_what_the_log_holds_at_the_start_is_published_at_once(memory):
    """In bulk, however many reads it takes: readers of a node that starts see no state of the past."""
    for number in range(5):
        memory.log.append([acl(number)], timestamp=number)
    memory.read = lambda offset, max_bytes: memory.log.read(offset, 1)
    with Following(memory) as following:
        following.until_offset(5)
        assert [image.end_offset for image in following.shown] == [5]


def test_a_batch_is_published_whole(memory):
    memory.log.append([acl(number) for number in range(1000)], timestamp=5)
    with Following(memory) as following:
        following.until_offset(1000)
        memory.log.append([removal(number) for number in range(1000)], timestamp=6)
        following.until_offset(2000)
        assert {len(image.acls) for image in following.shown} == {1000, 0}


def test_an_empty_log_is_not_ready_before_its_first_record(memory):
    with Following(memory) as following:
        assert not following.publisher.wait_ready(0.05)
        memory.log.append([acl(1)], timestamp=5)
        assert following.publisher.wait_ready(30)


def test_a_metadata_transaction_is_published_at_its_end(memory):
    memory.log.append([acl(1)], timestamp=5)
    memory.log.append([encode_record(BeginTransactionRecord()), acl(2)], timestamp=6)
    with Following(memory) as following:
        following.until_offset(1)
        assert following.follower.lag().records == 2
        memory.log.append([acl(3), encode_record(EndTransactionRecord())], timestamp=7)
        following.until_offset(5)
        assert {len(image.acls) for image in following.shown} == {1, 3}


def test_transient_errors_are_reported_once_and_retried(memory):
    memory.log.append([acl(1)], timestamp=5)
    with Following(memory) as following:
        following.until_offset(1)
        memory.error = LogError("no way")
        memory.log.append([acl(2)], timestamp=6)
        following.until(lambda: following.said)
        assert following.follower.error is memory.error
        time.sleep(0.15)
        memory.error = None
        following.until_offset(2)
        following.until(lambda: len(following.said) > 1)
        assert following.said == ["no way; trying again", "troubled: following again from offset 2"]
        assert following.follower.error is None


@pytest.mark.parametrize("error", [DecodeError("damaged"), LogError("gone")])
def test_an_unreadable_log_changes_nothing(memory, error):
    memory.log.append([acl(1)], timestamp=5)
    with Following(memory) as following:
        following.until_offset(1)
        memory.error = error
        memory.log.append([acl(2)], timestamp=6)
        following.until(lambda: following.said)
        assert len(following.publisher.current.acls) == 1
        assert following.follower.failure is None


@pytest.mark.parametrize("first", [0, 1])
def test_a_record_that_fails_to_replay_stops_it_and_readers_keep_their_image(memory, first):
    for _ in range(first):
        memory.log.append([acl(1)], timestamp=5)
    with Following(memory) as following:
        if first:
            following.until_offset(1)
        memory.log.append([removal(7)], timestamp=6)
        assert following.follower.wait_ended(30)
        memory.log.append([acl(8)], timestamp=7)
        assert isinstance(following.follower.failure, ReplayError)
        assert len(following.publisher.current.acls) == first
        assert "replay has stopped" in following.said[-1]


def test_lost_committed_records_stop_it(memory):
    memory.log.append([acl(1)], timestamp=5)
    with Following(memory) as following:
        following.until_offset(1)
        memory.error = CommittedRecordsLostError("lost")
        memory.log.append([acl(2)], timestamp=6)
        assert following.follower.wait_ended(30)
        assert following.follower.failure is memory.error


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_quorum_that_is_formatted_again_stops_it(quorum, leader, epoch):
    quorum.append([acl(number) for number in range(10)])
    with QuorumLog(servers=(leader.address,), options=QUICK) as log, Following(log) as following:
        following.until_offset(10)
        with leader.down():
            quorum.wipe(epoch)
            for number in range(20, 50):
                quorum.append([acl(number)])
        assert following.follower.wait_ended(30)
        assert isinstance(following.follower.failure, CommittedRecordsLostError)
        assert following.publisher.current.end_offset == 10


def test_an_unexpected_error_of_the_log_is_reported(memory):
    with Following(memory) as following:
        memory.error = RuntimeError("a mistake")
        memory.log.append([acl(1)], timestamp=5)
        assert following.follower.wait_ended(30)
        assert following.follower.failure is memory.error


def test_its_end_is_reported_once_to_each_caller(memory):
    before, after = threading.Event(), threading.Event()
    with Following(memory) as following:
        following.follower.when_ended(before.set)
        assert not before.is_set()
        memory.error = RuntimeError("a mistake")
        memory.log.append([acl(1)], timestamp=5)
        assert before.wait(30)
        following.follower.when_ended(after.set)
        assert after.is_set()


def test_lag(memory):
    memory.log.append([acl(1)], timestamp=5_000)
    with Following(memory) as following:
        following.until_offset(1)
        assert following.follower.lag() == Lag(records=0, milliseconds=0)
        memory.error = LogError("no")
        memory.log.append([acl(2), acl(3)], timestamp=6_000)
        assert following.follower.lag(now_ms=9_000) == Lag(records=2, milliseconds=4_000)


def snapshot_of(quorum, directory):
    """Write the quorum's committed state as a checkpoint that replaces the log."""
    image = Applier().apply(quorum.committed)
    path = write_checkpoint(image, directory)
    quorum.forget_below(EpochEnd(epoch=image.epoch, end_offset=image.end_offset), path.read_bytes())


def test_starts_from_a_snapshot_and_the_records_after_it(quorum, leader, tmp_path):
    quorum.append([acl(number) for number in range(50)])
    snapshot_of(quorum, tmp_path)
    quorum.append([acl(50)])
    with QuorumLog(servers=(leader.address,), options=QUICK) as log, Following(log) as following:
        assert following.publisher.wait_ready(30)
        assert len(following.publisher.current.acls) == 51
        assert following.publisher.current.end_offset == 51


def test_a_node_that_fell_behind_loads_a_snapshot_at_once(quorum, leader, tmp_path):
    quorum.append([acl(number) for number in range(50)])
    with QuorumLog(servers=(leader.address,), options=QUICK) as log, Following(log) as following:
        following.until_offset(50)
        leader.faults.cut = 1 << 30
        leader.cut_all()
        quorum.append([removal(number) for number in range(50)])
        quorum.append([acl(number) for number in range(60, 80)])
        snapshot_of(quorum, tmp_path)
        quorum.append([acl(90)])
        leader.faults.cut = 0
        following.until_offset(quorum.high_watermark)
        assert {len(image.acls) for image in following.shown} <= {50, 20, 21}
        offsets = [image.end_offset for image in following.shown]
        assert offsets == sorted(offsets)
        assert not following.follower.failure
        assert "a snapshot replaces the image of 50" in " ".join(following.said)


def test_a_snapshot_that_cannot_be_replayed_stops_it(quorum, leader):
    quorum.append([acl(1)])
    data = quorum.batches[0]
    quorum.append([encode_record(NoOpRecord())])
    quorum.forget_below(EpochEnd(epoch=3, end_offset=2), data)
    quorum.commit()
    with (
        QuorumLog(servers=(leader.address,), options=evolve(QUICK, read_seconds=0.1)) as log,
        Following(log) as following,
    ):
        following.until(lambda: following.said)
        assert "not a checkpoint" in following.said[0]
        assert following.publisher.current.end_offset == 0
        assert not following.publisher.ready
