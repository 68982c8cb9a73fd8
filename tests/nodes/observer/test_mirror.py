"""A mirror of a quorum: live, after disconnects and elections, across a gap, never of another history."""

import random
import threading
from contextlib import ExitStack, contextmanager

import pytest
from attrs import define, evolve, field

from aclog.client.errors import CommittedRecordsLostError, OtherClusterError, QuorumRefusedError
from aclog.client.fetching import EpochEnd, LogIdentity, ObserverOptions
from aclog.client.quorum_log import QuorumLog, QuorumMirror
from aclog.metalog.batches import build_batch, end_offset, read_header
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.filelog.mirror import MirrorLog, open_mirror
from aclog.metalog.filelog.verify import verify
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import read_image_file, write_checkpoint, write_image_file
from aclog.snapshots.publisher import recover
from aclog.sources.logs import LogSource
from tests.nodes.observer.test_follower import acl
from tests.support.builders.log_files import segment_paths
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum
from tests.support.processes.mirror_zygote import MirrorZygote
from tests.support.processes.waiting import wait_until

QUICK = ObserverOptions(
    retry_backoff=0.005,
    max_retry_backoff=0.02,
    refused_backoff=0.02,
    response_seconds=5.0,
    max_wait_ms=100,
    read_seconds=0.5,
    fetch_bytes=2000,
)


@define
class Told:
    """The messages of a mirror, and a way to wait for one."""

    texts: list[str] = field(factory=list)
    _changed: threading.Condition = field(factory=threading.Condition)

    def __call__(self, text):
        with self._changed:
            self.texts.append(text)
            self._changed.notify_all()

    def wait(self, part):
        with self._changed:
            assert self._changed.wait_for(lambda: any(part in text for text in self.texts), 30), self.texts


@define
class Running:
    """A mirror that runs in a thread."""

    mirror: MirrorLog
    mirroring: QuorumMirror
    told: Told
    failure: list[MetadataError] = field(factory=list)
    thread: threading.Thread = field(init=False)

    def start(self, **how):
        def run():
            try:
                self.mirroring.run(**how)
            except MetadataError as error:
                self.failure.append(error)

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.mirroring.stop.set()
        self.join()

    def join(self):
        self.thread.join(30)
        assert not self.thread.is_alive()

    def wait_for(self, offset):
        """Wait until a reader of the mirror has reached the offset."""
        wait_until(lambda: segment_paths(self.mirror.directory))
        with open_reader(self.mirror.directory) as reader:
            assert reader.wait(offset - 1, 30), (self.failure, self.told.texts)


@contextmanager
def mirrored(directory, *servers, once=None, patience=None, fsync=lambda fd: None, **options):
    """Mirror these servers; `once` or live, by default as the test is parametrized."""
    with ExitStack() as stack:
        mirror = stack.enter_context(open_mirror(directory, segment_bytes=4000, fsync=fsync))
        end = mirror.end
        log = QuorumLog(
            servers=tuple(node.address for node in servers),
            options=evolve(QUICK, **options),
            cluster_id=mirror.cluster_id,
            after=None if end is None else EpochEnd(epoch=end.epoch, end_offset=end.end_offset),
            identity=LogIdentity.of(*mirror.outer_batches()),
        )
        stack.enter_context(log)
        told = Told()
        mirroring = QuorumMirror(quorum=log, mirror=mirror, stop=threading.Event(), notify=told, patience=patience)
        running = Running(mirror, mirroring, told)
        try:
            if once is not None:
                running.start(once=once)
            yield running
        finally:
            if once is not None:
                running.stop()


def mirror_once(directory, *servers, **options):
    """Mirror up to the mark and return the messages. Raises what stopped the mirror."""
    with mirrored(directory, *servers, **options) as running:
        running.mirroring.run(once=True)
        return running.told.texts


def fill(quorum, count, start=0):
    for number in range(start, start + count):
        quorum.append([acl(3 * number + part) for part in range(1 + number % 3)], timestamp=number)


def content(directory):
    return b"".join(path.read_bytes() for path in segment_paths(directory))


def assert_whole(directory):
    assert list(map(str, verify(directory))) == []


def forget(quorum, directory):
    """Apply retention: a snapshot replaces everything committed."""
    directory.mkdir(exist_ok=True)
    image = Applier().apply(quorum.whole)
    path = write_checkpoint(image, directory)
    quorum.forget_below(EpochEnd(epoch=image.epoch, end_offset=image.end_offset), path.read_bytes())
    return path


@pytest.fixture(autouse=True)
def _whole_log(quorum):
    """`whole` keeps all that was ever committed, whatever retention removes."""

    class Remembered(FakeQuorum):
        forgotten = b""

        @property
        def whole(self):
            return self.forgotten + self.committed

        def forget_below(self, snapshot, data):
            self.forgotten = self.whole
            assert end_offset(self.forgotten) == snapshot.end_offset
            super().forget_below(snapshot, data)

    quorum.__class__ = Remembered


def test_once_ends_at_the_mark(tmp_path, quorum, leader):
    fill(quorum, 200)
    quorum.append([acl(9999)], commit=False)
    assert mirror_once(tmp_path / "log", leader) == []
    assert content(tmp_path / "log") == quorum.committed
    quorum.commit()
    quorum.elect(1)
    fill(quorum, 100, start=200)
    assert mirror_once(tmp_path / "log", leader) == []
    assert mirror_once(tmp_path / "log", leader) == []  # nothing new
    assert content(tmp_path / "log") == quorum.committed
    assert_whole(tmp_path / "log")
    fetched = [position.offset for position, max_bytes in leader.fetches if max_bytes > 1]
    assert fetched.count(0) <= 4  # the second and third mirror start where the first ended


def test_an_empty_log(tmp_path, quorum, leader):
    mirror_once(tmp_path / "log", leader)
    assert content(tmp_path / "log") == b""
    fill(quorum, 1)
    mirror_once(tmp_path / "log", leader)
    assert content(tmp_path / "log") == quorum.committed


def test_live_and_nothing_above_the_mark(tmp_path, quorum, leader):
    fill(quorum, 5)
    with mirrored(tmp_path / "log", leader, once=False) as running:
        for number in range(5, 25):
            quorum.append([acl(100 + number)], commit=False)
            with open_reader(running.mirror.directory) if number > 5 else ExitStack() as reader:
                assert number == 5 or not reader.wait(quorum.high_watermark, 0.01)
            assert quorum.committed.startswith(content(tmp_path / "log"))
            quorum.commit()
            running.wait_for(quorum.high_watermark)
        running.stop()
        assert (running.failure, running.told.texts) == ([], [])
        assert running.mirroring.batches == 25
        assert running.mirroring.size == len(quorum.committed)
    assert content(tmp_path / "log") == quorum.committed


def test_states_of_the_past_are_those_of_the_quorum(tmp_path, quorum, leader):
    for number in range(60):
        fill(quorum, 1, start=number)
        if number % 10 == 9:
            quorum.elect(1)
    mirror_once(tmp_path / "log", leader)
    for batch in quorum.batches:
        end = read_header(batch).end_offset
        expected = Applier().apply(b"".join(b for b in quorum.batches if read_header(b).end_offset <= end))
        assert recover(tmp_path / "log", as_of=end).image.acls.digest() == expected.acls.digest()


def test_elections_and_the_records_they_truncate(tmp_path, quorum):
    with FakeLeader(quorum, node_id=1) as one, FakeLeader(quorum, node_id=2) as two:
        one.endpoints = two.endpoints = {1: one.address, 2: two.address}
        fill(quorum, 5)
        with mirrored(tmp_path / "log", one, two, once=False) as running:
            for turn in range(6):
                quorum.append([acl(1000 + turn)], commit=False)
                quorum.append([acl(2000 + turn)], commit=False)
                quorum.elect(1 + (turn + 1) % 2, keep=turn % 2)
                fill(quorum, 2, start=100 + 10 * turn)
                running.wait_for(quorum.high_watermark)
            running.stop()
            assert running.failure == []
    assert content(tmp_path / "log") == quorum.committed
    assert_whole(tmp_path / "log")


@pytest.mark.tier("test")
def test_a_lost_connection_is_reported_once_and_retried(tmp_path, quorum, leader):
    fill(quorum, 5)
    with mirrored(tmp_path / "log", leader, once=False) as running:
        running.wait_for(quorum.high_watermark)
        leader.faults.cut = 1 << 30
        leader.cut_all()
        fill(quorum, 5, start=5)
        running.told.wait("trying again")
        leader.faults.cut = 0
        running.told.wait("following again from offset")
        running.wait_for(quorum.high_watermark)
        running.stop()
        assert running.failure == []
    assert len(set(running.told.texts)) == len(running.told.texts)
    assert content(tmp_path / "log") == quorum.committed


@pytest.mark.tier("test")
def test_two_unreachable_servers_are_reported_once_each(tmp_path, quorum):
    with FakeLeader(quorum, node_id=1) as one, FakeLeader(quorum, node_id=2) as two:
        pass
    with mirrored(tmp_path / "log", one, two, once=False) as running:
        for node in (one, two):
            running.told.wait(str(node.port))
        with FakeLeader(quorum, port=one.port):
            running.told.wait("following again")
    assert len(set(running.told.texts)) == len(running.told.texts)


def test_a_stop_does_not_wait_for_a_snapshot(tmp_path, quorum, leader):
    fill(quorum, 5)
    forget(quorum, tmp_path / "given")
    leader.faults.tamper_chunk = lambda chunk: evolve(chunk, error=-1)
    with mirrored(tmp_path / "log", leader, once=False, read_seconds=3600.0) as running:
        wait_until(lambda: leader.requests.get(59))
        running.mirroring.stop.set()
        running.mirroring.quorum.close()
        running.join()
    assert (running.failure, running.told.texts) == ([], [])


@pytest.mark.tier("test")
def test_no_server_at_first(tmp_path, quorum):
    with FakeLeader(quorum) as gone:
        port = gone.port
    with mirrored(tmp_path / "log", gone, once=False) as running:
        running.told.wait("trying again")
        with FakeLeader(quorum, port=port):
            fill(quorum, 5)
            running.told.wait("following again")
            fill(quorum, 5, start=5)
            wait_until(lambda: content(tmp_path / "log") == quorum.committed)
        assert running.failure == []


def test_once_gives_up_without_progress(tmp_path, quorum, leader):
    fill(quorum, 5)
    leader.faults.cut = 1 << 30
    with pytest.raises(MetadataError, match=str(leader.address)):
        mirror_once(tmp_path / "log", leader, patience=0.05)


def test_damaged_responses_are_never_written(tmp_path, quorum, leader):
    fill(quorum, 50)

    def damaged(answer):
        if not answer.records or numbers.random() < 0.5:
            return answer
        at = numbers.randrange(len(answer.records))
        return evolve(answer, records=answer.records[:at] + bytes([answer.records[at] ^ 4]) + answer.records[at + 1 :])

    numbers = random.Random(1)
    leader.faults.tamper = damaged
    mirror_once(tmp_path / "log", leader)
    assert content(tmp_path / "log") == quorum.committed


class TestSnapshots:
    def test_a_new_mirror_begins_after_a_snapshot(self, tmp_path, quorum, leader):
        fill(quorum, 30)
        snapshot = forget(quorum, tmp_path / "given")
        fill(quorum, 30, start=30)
        with mirrored(tmp_path / "log", leader) as running:
            running.mirroring.checkpointed = write_image_file
            running.mirroring.run(once=True)
            (told,) = running.told.texts
        start = read_header(quorum.committed).base_offset
        assert f"begins after the snapshot of offset {start}" in told
        (copy,) = list_checkpoints(tmp_path / "log")
        assert (copy.path.name, copy.path.read_bytes()) == (snapshot.name, snapshot.read_bytes())
        assert read_image_file(copy.path) is not None
        assert content(tmp_path / "log") == quorum.committed
        assert_whole(tmp_path / "log")
        assert recover(tmp_path / "log").image.acls.digest() == Applier().apply(quorum.whole).acls.digest()

    def test_later_snapshots_are_not_used(self, tmp_path, quorum, leader):
        """The mirror keeps what the quorum's retention removes."""
        fill(quorum, 10)
        with mirrored(tmp_path / "log", leader, once=False) as running:
            for turn in range(4):
                running.wait_for(quorum.high_watermark)
                forget(quorum, tmp_path / "given")
                fill(quorum, 10, start=10 * (turn + 1))
            running.wait_for(quorum.high_watermark)
        assert (running.failure, running.told.texts) == ([], [])
        assert content(tmp_path / "log") == quorum.whole
        assert list_checkpoints(tmp_path / "log") == ()
        assert_whole(tmp_path / "log")

    def test_a_gap_while_the_mirror_was_stopped(self, tmp_path, quorum, leader):
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        old, end = quorum.committed, quorum.high_watermark
        fill(quorum, 20, start=20)
        forget(quorum, tmp_path / "given")
        fill(quorum, 20, start=40)
        source = LogSource(tmp_path / "log", print)
        assert source.image().end_offset == end
        (told,) = mirror_once(tmp_path / "log", leader)
        assert source.image().acls.digest() == Applier().apply(quorum.whole).acls.digest()
        source.close()
        archive = tmp_path / "log" / f"archive-{end:020d}"
        assert f"the mirror up to {end} is kept in {archive}" in told
        assert (content(archive), content(tmp_path / "log")) == (old, quorum.committed)
        for directory in (archive, tmp_path / "log"):
            assert_whole(directory)
        assert recover(tmp_path / "log").image.acls.digest() == Applier().apply(quorum.whole).acls.digest()
        assert recover(archive, as_of=end).image.acls.digest() == Applier().apply(old).acls.digest()

    def test_a_gap_while_no_server_was_reached(self, tmp_path, quorum, leader):
        """The observer detects that it fell behind; a reader of the mirror continues after the gap."""
        fill(quorum, 20)
        with mirrored(tmp_path / "log", leader, once=False) as running:
            running.wait_for(quorum.high_watermark)
            leader.faults.cut = 1 << 30
            leader.cut_all()
            fill(quorum, 20, start=20)
            forget(quorum, tmp_path / "given")
            fill(quorum, 5, start=40)
            leader.faults.cut = 0
            running.told.wait("and a new one begins after the snapshot")
            running.wait_for(quorum.high_watermark)
        assert running.failure == []
        assert content(tmp_path / "log") == quorum.committed
        assert_whole(tmp_path / "log")

    def test_a_new_leaders_log_reaches_further_back(self, tmp_path, quorum, leader):
        """It is elected between the offer of a snapshot and its fetch: then there is no gap."""
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        kept, end = list(quorum.batches), quorum.high_watermark
        fill(quorum, 20, start=20)
        later = list(quorum.batches[len(kept) :])
        whole = quorum.committed
        forget(quorum, tmp_path / "given")
        offered = quorum.snapshot
        fill(quorum, 1, start=40)
        older = Applier().apply(b"".join(kept[:10]))
        data = write_checkpoint(older, tmp_path / "given").read_bytes()

        def other_leader(chunk):
            """It does not know the snapshot, as it has another one and a longer log."""
            if quorum.snapshot == offered:
                with quorum.lock:
                    quorum.batches = [*kept[10:], *later, *quorum.batches]
                    quorum.log_start = older.end_offset
                    quorum.snapshot = EpochEnd(epoch=older.epoch, end_offset=older.end_offset), data
                return evolve(chunk, error=-1)
            return chunk

        leader.faults.tamper_chunk = other_leader
        mirror_once(tmp_path / "log", leader)
        assert content(tmp_path / "log").startswith(whole)
        assert end_offset(content(tmp_path / "log")) > end
        assert not list((tmp_path / "log").glob("archive-*"))
        assert_whole(tmp_path / "log")


class TestAnotherHistory:
    def test_lost_committed_records(self, tmp_path, quorum, leader):
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        before = content(tmp_path / "log")
        quorum.lose(10)
        fill(quorum, 20, start=100)
        with pytest.raises(CommittedRecordsLostError, match="expected every committed record to be there"):
            mirror_once(tmp_path / "log", leader)
        assert content(tmp_path / "log") == before
        assert_whole(tmp_path / "log")

    def test_while_it_runs(self, tmp_path, quorum, leader):
        fill(quorum, 20)
        with mirrored(tmp_path / "log", leader, once=False) as running:
            running.wait_for(quorum.high_watermark)
            before = content(tmp_path / "log")
            quorum.lose(10)
            fill(quorum, 20, start=100)
            running.join()
            assert isinstance(running.failure[0], CommittedRecordsLostError)
        assert content(tmp_path / "log") == before

    def test_a_leader_whose_snapshot_no_later_one_has(self, tmp_path, quorum, leader):
        """The end is final although the snapshot that the mirror waits for cannot be fetched."""
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        before, kept = content(tmp_path / "log"), list(quorum.batches)
        fill(quorum, 20, start=20)
        forget(quorum, tmp_path / "given")

        def restored(chunk):
            quorum.wipe(quorum.epoch, *kept)
            return evolve(chunk, error=-1)

        leader.faults.tamper_chunk = restored
        with mirrored(tmp_path / "log", leader, once=False) as running:
            running.join()
            assert isinstance(running.failure[0], CommittedRecordsLostError)
        assert content(tmp_path / "log") == before

    @pytest.mark.parametrize("more", [0, 30])
    def test_a_restored_quorum_with_the_same_epochs(self, tmp_path, quorum, leader, more):
        """Offsets, epochs and the cluster id are the same: only the last batch differs."""
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        before, end = content(tmp_path / "log"), quorum.high_watermark
        with quorum.lock:
            quorum.batches = quorum.batches[:5]
        while quorum.end < end + more:
            quorum.append([acl(500 + quorum.end)])
        assert (quorum.epoch, quorum.high_watermark) == (3, end + more)
        with pytest.raises(CommittedRecordsLostError, match=f"another batch than was committed before offset {end}"):
            mirror_once(tmp_path / "log", leader)
        assert content(tmp_path / "log") == before

    @pytest.mark.tier("test")
    def test_a_restored_quorum_while_it_runs(self, tmp_path, quorum, leader):
        fill(quorum, 20)
        with mirrored(tmp_path / "log", leader, once=False) as running:
            running.wait_for(quorum.high_watermark)
            before = content(tmp_path / "log")
            leader.faults.cut = 1 << 30
            leader.cut_all()
            running.told.wait("trying again")
            with quorum.lock:
                quorum.batches = quorum.batches[:5]
            fill(quorum, 30, start=100)
            leader.faults.cut = 0
            running.join()
            assert isinstance(running.failure[0], CommittedRecordsLostError)
        assert content(tmp_path / "log") == before

    @pytest.mark.parametrize("epoch", [1, 3, 4])
    @pytest.mark.parametrize("count", [1, 5, 60])
    def test_a_quorum_that_is_formatted_again_while_it_runs(self, tmp_path, quorum, leader, epoch, count):
        """Whatever its epoch, be its log shorter or longer, and be it back before anybody has noticed."""
        fill(quorum, 20)
        with mirrored(tmp_path / "log", leader, once=False) as running:
            running.wait_for(quorum.high_watermark)
            before = content(tmp_path / "log")
            with leader.down():
                quorum.wipe(epoch)
                fill(quorum, count, start=100)
            running.join()
            (failure,) = running.failure
            assert isinstance(failure, CommittedRecordsLostError)
            assert str(leader.address) in str(failure)
        assert content(tmp_path / "log") == before

    def test_what_could_not_be_compared_is_not_taken_over(self, tmp_path, quorum, leader):
        """The leader of a log that was formatted again loses its leadership for a moment, between two answers."""
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        before = content(tmp_path / "log")
        quorum.wipe(3)
        fill(quorum, 60, start=100)
        good = iter(range(1 << 30))

        def tamper(answer):
            return evolve(answer, error=6, records=b"") if not answer.error and next(good) == 1 else answer

        leader.faults.tamper = tamper
        with mirrored(tmp_path / "log", leader) as running, pytest.raises(CommittedRecordsLostError):
            running.mirroring.run(once=True)
        assert content(tmp_path / "log") == before

    @pytest.mark.parametrize("epoch", [1, 3, 4])
    @pytest.mark.parametrize("count", [1, 60])
    def test_a_quorum_that_is_formatted_again_before_it_starts(self, tmp_path, quorum, leader, epoch, count):
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        before = content(tmp_path / "log")
        quorum.wipe(epoch)
        fill(quorum, count, start=100)
        for once in (True, False):
            with mirrored(tmp_path / "log", leader) as running, pytest.raises(CommittedRecordsLostError):
                running.mirroring.run(once=once)
        assert content(tmp_path / "log") == before

    def test_a_quorum_that_is_restored_to_an_older_epoch_while_it_runs(self, tmp_path, quorum, leader):
        """What is left of its log is the same, so only a leader that keeps to an epoch of the past tells of it."""
        fill(quorum, 20)
        with mirrored(tmp_path / "log", leader, once=False, older_leader_seconds=0.3) as running:
            running.wait_for(quorum.high_watermark)
            before = content(tmp_path / "log")
            with leader.down():
                quorum.wipe(2, *quorum.batches[:5])
            running.join()
            (failure,) = running.failure
            assert isinstance(failure, CommittedRecordsLostError)
            assert "leading in epoch 2" in str(failure)
        assert content(tmp_path / "log") == before

    @pytest.mark.tier("test")
    def test_a_controller_that_lags_behind_does_not_end_it(self, tmp_path, quorum, leader):
        """It knows an older epoch only, for whatever time, but does not lead in it."""
        fill(quorum, 5)
        behind = FakeQuorum(epoch=2, leader_id=7)
        with (
            FakeLeader(behind) as lagging,
            mirrored(tmp_path / "log", leader, lagging, once=False, older_leader_seconds=0.001) as running,
        ):
            running.wait_for(quorum.high_watermark)
            leader.faults.cut = 1 << 30
            leader.cut_all()
            running.told.wait("does not know leader epoch 3, only 2")
            leader.faults.cut = 0
            fill(quorum, 5, start=5)
            running.wait_for(quorum.high_watermark)
            assert running.failure == []
        assert content(tmp_path / "log") == quorum.committed

    def test_another_cluster(self, tmp_path, quorum, leader):
        fill(quorum, 20)
        mirror_once(tmp_path / "log", leader)
        before = content(tmp_path / "log")
        leader.cluster_id = "another"
        fill(quorum, 20, start=20)
        with pytest.raises(OtherClusterError, match="expected fake-cluster"):
            mirror_once(tmp_path / "log", leader)
        assert content(tmp_path / "log") == before


class TestRefusals:
    def test_from_the_start(self, tmp_path, quorum, leader):
        leader.faults.tamper = lambda answer: evolve(answer, error=31)
        with mirrored(tmp_path / "log", leader) as running, pytest.raises(QuorumRefusedError, match="CLUSTER_ACTION"):
            running.mirroring.run(once=False)

    def test_a_later_refusal_is_reported_and_retried(self, tmp_path, quorum, leader):
        fill(quorum, 5)
        with mirrored(tmp_path / "log", leader, once=False) as running:
            running.wait_for(quorum.high_watermark)
            leader.faults.tamper = lambda answer: evolve(answer, error=31)
            fill(quorum, 5, start=5)
            running.told.wait("CLUSTER_ACTION")
            leader.faults.tamper = lambda answer: answer
            fill(quorum, 5, start=10)
            running.wait_for(quorum.high_watermark)
            running.stop()
            assert running.failure == []
        assert content(tmp_path / "log") == quorum.committed

    def test_a_controller_that_denies_its_cluster_id(self, tmp_path, quorum):
        def refuse(version, body):
            from aclog.protocol.messages import build

            return build(60, version, "response", error_code=31, error_message="no", cluster_id="", brokers=())

        with (
            FakeLeader(quorum, handlers={60: refuse}) as node,
            mirrored(tmp_path / "log", node) as running,
            pytest.raises(LogError, match="no cluster id: a new mirror needs ALTER on the cluster once"),
        ):
            running.mirroring.run(once=True)


def test_a_failing_disk_ends_it_and_is_not_retried(tmp_path, quorum, leader):
    fill(quorum, 5)
    failing = []

    def fsync(fd):
        if failing:
            raise OSError(28, "No space left on device")

    with mirrored(tmp_path / "log", leader, once=False, fsync=fsync) as running:
        running.wait_for(quorum.high_watermark)
        before = quorum.committed
        failing.append(True)
        fill(quorum, 5, start=5)
        running.join()
        assert "the disk is full" in str(running.failure[0])
        assert running.told.texts == []
    assert content(tmp_path / "log") == before
    mirror_once(tmp_path / "log", leader)
    assert content(tmp_path / "log") == quorum.committed


KILLS = 25


@pytest.mark.slow(3)
def test_a_mirror_killed_at_any_moment_loses_and_repeats_nothing(tmp_path, quorum, leader):
    """Meanwhile the quorum continues to commit, and sometimes elects a leader."""
    directory, stop = tmp_path / "log", threading.Event()
    numbers = random.Random(5)

    def write():
        number = 0
        while not stop.wait(0.01):
            number += 1
            quorum.append([acl(number)] if number % 5 else [acl(number), b"\1\2\0" + b"x" * numbers.choice([9, 3000])])
            if number % 20 == 0:
                quorum.elect(1)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    ends = []
    try:
        with MirrorZygote() as zygote:
            for _ in range(KILLS):
                zygote.follow_and_die(directory, leader.address, numbers.randrange(8), numbers.uniform(0.0, 0.01))
                if segment_paths(directory):
                    with open_reader(directory) as reader:
                        ends.append(reader.high_watermark())
                    assert_whole(directory)
    finally:
        stop.set()
        writer.join(30)
    mirror_once(directory, leader)
    assert content(directory) == quorum.committed
    assert ends == sorted(ends)
    assert len(set(ends)) > KILLS // 2
    assert_whole(directory)


def test_a_batch_as_large_as_can_be(tmp_path, quorum, leader):
    batch = build_batch([b"\1\2\0" + b"x" * (6 << 20)], base_offset=0, leader_epoch=3, timestamp=0)
    quorum.batches.append(batch)
    quorum.commit()
    fill(quorum, 3)
    mirror_once(tmp_path / "log", leader, response_seconds=20.0)
    assert content(tmp_path / "log") == quorum.committed
