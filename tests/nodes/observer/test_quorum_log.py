"""A quorum's log over an unreliable network."""

import random
import re
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from aclog.client.errors import CommittedRecordsLostError, ObserverFailedError, QuorumRefusedError, UnreachableError
from aclog.client.fetching import EpochEnd, FetchBuffer, FetchResponse
from aclog.client.follower import Follower
from aclog.client.quorum_log import QuorumLog
from aclog.config.node_config import HostPort
from aclog.metalog.batches import iter_batches, read_header
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError
from aclog.metalog.filelog.files import checkpoint_name
from aclog.protocol.responses import ApiVersion, Features
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import Publisher, recover, recover_log
from tests.support.builders.acls import acl, acl_record
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.observers import QUICK
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.tier("test")

SMALL = Path(__file__).parents[2] / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"


@contextmanager
def observer(*servers, known=True, **options):
    with QuorumLog(servers=tuple(node.address for node in servers), options=evolve(QUICK, **options)) as log:
        if known:
            log.wait_known(30)
        yield log


def fill(quorum, count, size=20, seed=1):
    numbers = random.Random(seed)
    for number in range(count):
        quorum.append([numbers.randbytes(size)] * numbers.choice([1, 1, 3]), number)


def read_all(log, offset=None, until=None):
    offset = log.start_offset() if offset is None else offset
    found = b""
    while offset < (log.high_watermark() if until is None else until):
        data = log.read(offset, 1 << 16)
        found += data
        offset = max(header.end_offset for _, header in iter_batches(data))
    return found


def test_finds_the_leader_and_its_epoch(quorum, leader):
    with observer(leader) as log:
        assert (log.leader_id, log.leader_epoch, log.leader) == (1, 3, leader.address)
        assert log.name == f"quorum {leader.address}"


def test_follows_committed_records_only(quorum, leader):
    with observer(leader) as log:
        for number in range(20):
            quorum.append([b"a", b"b"], commit=False)
            assert not log.wait(2 * number, 0.005)
            assert log.high_watermark() == 2 * number
            quorum.commit()
            assert log.wait(2 * number + 1, 30)
        assert read_all(log) == quorum.committed


def test_a_large_log_fits_through_a_small_buffer(quorum, leader):
    fill(quorum, 300, size=1000)
    with observer(leader, buffer_bytes=20_000, kept_bytes=5_000, fetch_bytes=7_000) as log:
        wait_until(lambda: log._buffer.full)
        time.sleep(0.1)
        assert log._buffer._window.size < 40_000
        assert log.high_watermark() == quorum.high_watermark
        quorum.append([b"new"])
        assert log.wait(quorum.high_watermark - 1, 30)  # the mark arrives nevertheless
        assert leader.fetches[-1][1] == 1  # at the cost of one batch
        assert read_all(log) == quorum.committed
        assert read_all(log) == quorum.committed  # what is no longer buffered is fetched again
        assert log._buffer._window.size < 40_000


def test_uncommitted_batches_are_bounded(quorum, leader):
    for _ in range(200):
        quorum.append([b"x" * 1000], commit=False)
    with observer(leader, pending_bytes=10_000, fetch_bytes=5_000) as log:
        wait_until(lambda: log._fetcher.state.pending_bytes >= 10_000)
        time.sleep(0.1)
        assert log._fetcher.state.pending_bytes < 20_000
        quorum.commit()
        assert log.wait(199, 30)
        assert read_all(log) == quorum.committed


@pytest.mark.parametrize("max_bytes", [1, 5000])
def test_any_offset_can_be_read_with_a_small_buffer(quorum, leader, max_bytes):
    fill(quorum, 100, size=500)
    bases = [read_header(batch).base_offset for batch in quorum.batches]
    random.Random(2).shuffle(bases)
    with observer(leader, buffer_bytes=2_000, kept_bytes=1_000, fetch_bytes=1_500) as log:
        for base in bases[:40]:
            data = log.read(base, max_bytes)
            assert read_header(data).base_offset == base
            assert quorum.committed[quorum.committed.index(data) :].startswith(data)


def test_historical_reads_end_at_the_mark(quorum, leader):
    fill(quorum, 10, size=100)
    for _ in range(5):
        quorum.append([b"never"], commit=False)
    with observer(leader, kept_bytes=0) as log:
        read_all(log)
        assert log._buffer._window.size == 0
        data = log.read(0, 1 << 20)
        assert quorum.committed.startswith(data)
        assert log.read(log.high_watermark() - 1, 1 << 20) == quorum.batches[9]


def test_lost_connections_are_reopened(quorum, leader):
    fill(quorum, 50)
    with observer(leader) as log:
        for number in range(20):
            leader.cut_all()
            quorum.append([b"after cut %d" % number])
            assert log.wait(quorum.high_watermark - 1, 30)
        assert read_all(log) == quorum.committed


def test_missing_and_truncated_responses_are_retried(quorum, leader):
    with observer(leader) as log:
        for number, fault in enumerate(["cut", "silent", "cut", "cut"]):
            setattr(leader.faults, fault, 2)
            quorum.append([b"after fault %d" % number])
            assert log.wait(quorum.high_watermark - 1, 30)
        assert read_all(log) == quorum.committed


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff" * 4,
        (8).to_bytes(4) + b"\0" * 8,
        (60).to_bytes(4) + bytes(range(60)),
        b"\x00",
    ],
)
def test_a_malformed_response_only_ends_the_connection(quorum, leader, garbage):
    with observer(leader) as log:
        leader.faults.garbage += [garbage] * 3
        quorum.append([b"after garbage"])
        assert log.wait(quorum.high_watermark - 1, 30)
        assert read_all(log) == quorum.committed


def test_delays_change_nothing(quorum, leader):
    leader.faults.delay = 0.03
    fill(quorum, 30)
    with observer(leader, fetch_bytes=200) as log:
        assert read_all(log) == quorum.committed


def test_bytes_damaged_in_transit_are_fetched_again(quorum, leader):
    fill(quorum, 20)
    left = [2]

    def tamper(answer):
        if not answer.records or not left[0]:
            return answer
        left[0] -= 1
        return evolve(answer, records=answer.records[:70] + b"\xff\xff" + answer.records[72:])

    leader.faults.tamper = tamper
    with observer(leader, known=False) as log:
        log.wait_known(30)
        assert read_all(log) == quorum.committed


def test_persistent_damage_is_reported_and_batches_before_it_are_readable(quorum, leader):
    fill(quorum, 20)
    bad = quorum.batches[10]
    offset = read_header(bad).base_offset
    quorum.batches[10] = bad[:-2] + bytes([bad[-2] ^ 1]) + bad[-1:]
    with observer(leader) as log:
        assert read_all(log, until=offset) == b"".join(quorum.batches[:10])
        with pytest.raises(DecodeError, match=f"{leader.address}: offset {offset}, byte 0: CRC"):
            log.read(offset)
        quorum.batches[10] = bad
        wait_until(lambda: log.error is None)
        assert read_all(log) == quorum.committed


def test_the_leader_moves_from_node_to_node(quorum, leader):
    with FakeLeader(quorum, node_id=2) as second, FakeLeader(quorum, node_id=3) as third:
        nodes = [leader, second, third]
        for node in nodes:
            node.endpoints = {each.node_id: each.address for each in nodes}
        with observer(leader) as log:  # it knows one address only
            for number in range(9):
                fill(quorum, 3, seed=number)
                quorum.append([b"perhaps"], commit=False)
                quorum.elect(number % 3 + 1, keep=number % 2)
                quorum.append([b"surely %d" % number])
                assert log.wait(quorum.high_watermark - 1, 30)
                assert (log.leader_id, log.leader_epoch) == (number % 3 + 1, quorum.epoch)
            assert read_all(log) == quorum.committed


def test_a_named_leader_is_tried_without_backoff(quorum, leader):
    with FakeLeader(quorum, node_id=2) as second, observer(leader, retry_backoff=600, max_retry_backoff=600) as log:
        leader.endpoints = {2: second.address}
        quorum.append([b"perhaps"], commit=False)
        wait_until(lambda: log._fetcher.state.pending_bytes)
        log._fetcher._retries = 20
        quorum.elect(2, keep=0)
        assert log.wait(quorum.high_watermark - 1, 30)
        assert read_all(log) == quorum.committed


def test_a_dead_leader_that_others_name_is_tried_once(quorum, leader):
    leader.endpoints = {9: HostPort(host="127.0.0.1", port=free_port())}
    with observer(leader) as log:
        quorum.elect(9, commit=False)
        time.sleep(0.1)
        quorum.elect(1)
        assert log.wait(quorum.high_watermark - 1, 30)


@pytest.mark.parametrize("port", [-1, 0, 1 << 16])
def test_a_leader_with_an_invalid_port(quorum, leader, port):
    leader.endpoints = {9: HostPort(host="127.0.0.1", port=port)}
    with observer(leader, known=False) as log:
        with pytest.raises(DecodeError, match=f"{leader.address}: node 9 at port {port}: expected 1 to 65535"):
            log.wait_known(30)
        leader.endpoints = {}
        wait_until(lambda: log.high_watermark() >= 0)


def test_an_unreachable_server_is_skipped(quorum, leader):
    dead = HostPort(host="127.0.0.1", port=free_port())
    with QuorumLog(servers=(dead, leader.address), options=QUICK) as log:
        log.wait_known(30)
        assert log.leader == leader.address


def test_no_server_there(quorum):
    dead = HostPort(host="127.0.0.1", port=free_port())
    with QuorumLog(servers=(dead,), options=QUICK) as log:
        with pytest.raises(UnreachableError, match=f"{dead}: no connection: "):
            log.wait_known(0.2)
        with pytest.raises(UnreachableError):
            log.read(0)
        assert log.high_watermark() == -1
        assert not log.wait(0, 0.01)


def test_an_older_leader_without_the_followers_mark(quorum):
    apis = (ApiVersion(1, 4, 17), ApiVersion(18, 0, 4), ApiVersion(59, 0, 0))
    fill(quorum, 20)
    with FakeLeader(quorum, apis=apis) as old, observer(old) as log:
        assert read_all(log) == quorum.committed


def test_a_leader_that_is_too_old(quorum):
    with (
        FakeLeader(quorum, apis=(ApiVersion(1, 4, 16), ApiVersion(18, 0, 4))) as old,
        observer(old, known=False) as log,
        pytest.raises(ConfigError, match="Fetch is supported in versions 4 to 16: expected versions 17 to 18"),
    ):
        log.wait_known(30)


def test_a_refusal_is_reported_at_once_and_retried(quorum, leader):
    leader.faults.tamper = lambda answer: FetchResponse(error=31)
    with observer(leader, known=False) as log:
        with pytest.raises(QuorumRefusedError, match=f"{leader.address}: CLUSTER_AUTHORIZATION_FAILED"):
            log.wait_known(30)
        with pytest.raises(QuorumRefusedError):
            log.wait(0, 30)
        leader.faults.tamper = lambda answer: answer
        wait_until(lambda: log.high_watermark() >= 0)
        quorum.append([b"x"])
        assert log.wait(0, 30)


def test_lost_committed_records_are_final(quorum, leader):
    fill(quorum, 10)
    with observer(leader) as log:
        before, mark = quorum.committed, log.high_watermark()
        read_all(log)
        quorum.lose(5)
        with pytest.raises(CommittedRecordsLostError, match="expected every committed record to be there"):
            log.wait(mark + 100, 30)
        assert log.high_watermark() == mark
        assert read_all(log) == before  # what was read stays the same


def checkpoint_of_small(tmp_path):
    image = recover(SMALL).image
    path = write_checkpoint(image, tmp_path)
    return image, EpochEnd(epoch=image.epoch, end_offset=image.end_offset), path.read_bytes()


@pytest.mark.parametrize("chunk", [100, 1000, 1 << 20])
def test_a_log_that_begins_after_a_snapshot(quorum, leader, tmp_path, chunk):
    _, snapshot, data = checkpoint_of_small(tmp_path)
    quorum.forget_below(snapshot, data)
    quorum.commit()
    fill(quorum, 5)
    with observer(leader, fetch_bytes=chunk) as log:
        assert log.start_offset() == snapshot.end_offset
        assert log.high_watermark() == quorum.high_watermark
        found = log.latest_snapshot()
        assert found.path.name == checkpoint_name(snapshot.end_offset, snapshot.epoch)
        assert found.path.read_bytes() == data
        assert log.latest_snapshot() is found
        assert read_all(log) == quorum.committed
        with pytest.raises(LogError, match="outside"):
            log.read(snapshot.end_offset - 1)
        directory = found.path.parent
        assert directory.stat().st_mode & 0o77 == 0  # it contains credentials
    assert not directory.exists()


def test_recovery_starts_from_the_snapshot(quorum, leader, tmp_path):
    image, snapshot, data = checkpoint_of_small(tmp_path)
    quorum.forget_below(snapshot, data)
    quorum.elect(1)
    with observer(leader) as log:
        found = recover_log(log, log.checkpoints())
        assert found.image.end_offset == quorum.high_watermark
        assert set(found.image.acls) == set(image.acls)


def test_no_snapshot_is_needed_where_the_log_begins_at_0(quorum, leader):
    with observer(leader) as log:
        assert log.latest_snapshot() is None
        assert log.checkpoints() == ()


def test_an_interrupted_download_is_continued(quorum, leader, tmp_path):
    _, snapshot, data = checkpoint_of_small(tmp_path)
    quorum.forget_below(snapshot, data)
    quorum.commit()
    with observer(leader, fetch_bytes=500) as log:
        asked = []

        def tamper(chunk):
            asked.append(chunk.position)
            if len(asked) in (3, 7):
                leader.cut_all_soon()
            return chunk

        leader.faults.tamper_chunk = tamper
        assert log.latest_snapshot().path.read_bytes() == data
        assert asked.count(0) == 1
        assert len(set(asked)) == -(-len(data) // 500)


def test_a_download_restarts_with_another_leader(quorum, leader, tmp_path):
    """The new leader's snapshot of the same offset is a different file."""
    _, snapshot, data = checkpoint_of_small(tmp_path)
    quorum.forget_below(snapshot, data)
    quorum.commit()
    with FakeLeader(quorum, node_id=2) as second, observer(leader, second, fetch_bytes=500) as log:
        asked = []

        def moves(chunk):
            if chunk.position == 1000:
                quorum.elect(2)
            return chunk

        leader.faults.tamper_chunk = moves
        second.faults.tamper_chunk = lambda chunk: asked.append(chunk.position) or chunk
        assert log.latest_snapshot().path.read_bytes() == data
        assert asked[0] == 0


def test_a_deleted_snapshot_is_replaced_by_a_newer_one(quorum, leader, tmp_path):
    _, snapshot, data = checkpoint_of_small(tmp_path)
    older = EpochEnd(epoch=1, end_offset=snapshot.end_offset - 10)
    quorum.forget_below(older, b"x" * 5000)
    quorum.commit()
    with observer(leader, fetch_bytes=500) as log:

        def tamper(chunk):
            if chunk.position == 1000 and not quorum.batches:
                quorum.forget_below(snapshot, data)
                quorum.commit()
                quorum.elect(1)
            return chunk

        leader.faults.tamper_chunk = tamper
        assert log.latest_snapshot().path.read_bytes() == data
        assert log.start_offset() == snapshot.end_offset


def refusal_of(log: QuorumLog) -> str:
    """Why no snapshot is to be had; that a busy machine was too slow to answer is no reason."""
    for _ in range(100):
        with pytest.raises(MetadataError) as refused:
            log.latest_snapshot()
        if "no response within" not in str(refused.value):
            break
    return str(refused.value)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda chunk: evolve(chunk, data=b""),
        lambda chunk: evolve(chunk, position=chunk.position + 1),
        lambda chunk: evolve(chunk, size=0),
        lambda chunk: evolve(chunk, size=chunk.size + chunk.position),
        lambda chunk: evolve(chunk, data=chunk.data * 99),
        lambda chunk: evolve(chunk, data=bytes(len(chunk.data))),
        lambda chunk: evolve(chunk, error=98),
    ],
)
def test_an_invalid_snapshot_is_refused(quorum, leader, tmp_path, tamper):
    _, snapshot, data = checkpoint_of_small(tmp_path)
    quorum.forget_below(snapshot, data)
    quorum.commit()
    leader.faults.tamper_chunk = tamper
    with observer(leader, fetch_bytes=500, read_seconds=0.2) as log:
        assert re.search(r"snapshot|checkpoint|damaged", refusal_of(log))
        leader.faults.tamper_chunk = lambda chunk: chunk
        assert log.latest_snapshot().path.read_bytes() == data


def test_an_observer_that_falls_behind_the_logs_start(quorum, leader, tmp_path):
    _, snapshot, data = checkpoint_of_small(tmp_path)
    snapshot = evolve(snapshot, epoch=quorum.epoch)
    fill(quorum, 3)
    with observer(leader) as log:
        read_all(log)
        leader.faults.cut = 1 << 30
        leader.cut_all()
        quorum.forget_below(snapshot, data)
        quorum.elect(1)
        leader.faults.cut = 0
        assert log.wait(snapshot.end_offset, 30)
        assert log.start_offset() == snapshot.end_offset
        assert log.latest_snapshot().path.read_bytes() == data
        assert log._buffer._window.start == snapshot.end_offset
        assert read_all(log) == quorum.committed


def test_closing_wakes_waiting_threads(quorum, leader):
    log = QuorumLog(servers=(leader.address,), options=QUICK)
    log.wait_known(30)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(log.wait(5, 60)))
    waiting.start()
    time.sleep(0.05)
    log.close()
    waiting.join(30)
    assert answers == [False] or not answers
    for call in (lambda: log.read(0), log.latest_snapshot):
        with pytest.raises(LogError, match="closed"):
            call()


def test_random_faults(quorum):
    """Elections, disconnects, damage and growth at once: committed records are read in order, each once."""
    numbers = random.Random(5)
    with FakeLeader(quorum) as first, FakeLeader(quorum, node_id=2) as second:
        for node in (first, second):
            node.endpoints = {1: first.address, 2: second.address}
        with observer(first, second, fetch_bytes=2_000, buffer_bytes=5_000, kept_bytes=1_000) as log:
            found, offset = b"", 0
            for _ in range(150):
                quorum.append([numbers.randbytes(100)] * numbers.choice([1, 2]), commit=numbers.random() < 0.7)
                trouble = numbers.random()
                node = numbers.choice([first, second])
                if trouble < 0.05:
                    quorum.elect(numbers.choice([1, 2]), keep=numbers.choice([0, 1, 2]))
                elif trouble < 0.1:
                    node.cut_all()
                elif trouble < 0.15:
                    node.faults.cut = 1
                elif trouble < 0.2:
                    node.faults.garbage.append(numbers.randbytes(40))
                if log.wait(offset, 0.005):
                    found += (data := log.read(offset, 3_000))
                    offset = max(header.end_offset for _, header in iter_batches(data))
            quorum.commit()
            assert log.wait(quorum.high_watermark - 1, 60)
            found += read_all(log, offset)
            assert found == quorum.committed


def test_an_observer_that_fails_ends_its_follower(quorum, leader, monkeypatch):
    """An error that is none of a network or a log: a follower that went on would serve an old state for good."""
    quorum.append([encode_record(acl_record(1, acl("orders", "User:a")))])
    with observer(leader) as log:
        follower = Follower(log=log, publisher=Publisher(), notify=lambda _: None)
        follower.start()
        wait_until(lambda: follower.publisher.current.end_offset)

        def fail(*_args, **_kwargs):
            raise MemoryError("no memory")

        monkeypatch.setattr(FetchBuffer, "add", fail)
        quorum.append([encode_record(acl_record(2, acl("orders", "User:b")))])
        assert follower.wait_ended(60)
        assert type(follower.failure) is ObserverFailedError
        assert "the observer failed: MemoryError: no memory" in str(follower.failure)


def test_no_file_descriptor_for_an_event_loop(monkeypatch):
    def full():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("asyncio.runners.events.new_event_loop", full)
    with pytest.raises(LogError, match="no event loop: Too many open files"):
        QuorumLog(servers=(HostPort(host="h", port=1),))


def test_a_snapshot_file_that_was_removed_is_downloaded_again(quorum, leader, tmp_path):
    _, snapshot, data = checkpoint_of_small(tmp_path)
    quorum.forget_below(snapshot, data)
    quorum.commit()
    with observer(leader) as log:
        log.latest_snapshot().path.unlink()
        assert log.latest_snapshot().path.read_bytes() == data


def test_a_server_that_could_raise_the_cluster_beyond_us_is_warned_of_once(quorum, leader):
    leader.features = Features(supported={"metadata.version": (7, 34)}, finalized={"metadata.version": 33})
    told = []
    with QuorumLog(servers=(leader.address,), options=QUICK, notify=told.append) as log:
        log.wait_known(30)
        leader.cut_all()
        quorum.append([b"x"], 1)
        assert log.wait(0, 30)
    assert leader.connections > 1
    (warning,) = told
    assert warning.startswith(f"{leader.address} supports metadata.version up to 34, and this aclog up to 33")
