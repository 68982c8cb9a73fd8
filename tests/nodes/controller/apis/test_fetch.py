"""Fetch: errors, divergence, snapshot ids and long polls as recorded from a real quorum, and only committed bytes."""

import asyncio
import threading
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from aclog.config.node_config import HostPort
from aclog.metalog.batches import iter_batches
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.files import CheckpointFile
from aclog.protocol.api_keys import FETCH
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import build
from aclog.server.controller.fetch import METADATA_TOPIC_ID, FetchHandler, LeaderAndEpoch, Quorum
from tests.support.fakes.held_log import HeldLog
from tests.support.nodes.node_requests import answer, request
from tests.support.processes.waiting import SECONDS

VALUE = b"\x01\x14\x00\x00"


def checkpoint(end_offset, epoch):
    return CheckpointFile(end_offset=end_offset, epoch=epoch, path=Path("none"))


def quorum(epochs=((3, 0), (5, 4)), **options):
    return Quorum(
        cluster_id="a-cluster",
        node_id=1,
        directory_id=UUID(int=9),
        leader=lambda: LeaderAndEpoch(leader_id=1, epoch=5),
        epochs=[EpochStart(epoch=epoch, start_offset=start) for epoch, start in epochs],
        listener_names=("CONTROLLER",),
        advertised={"CONTROLLER": HostPort(host="c1", port=9093)},
        **options,
    )


class Log(HeldLog):
    """Return a log of ten batches with two records each, trimmed to `start`."""

    start = 0

    def start_offset(self):
        return self.start


def a_log():
    log = Log()
    for _ in range(10):
        log.append([VALUE, VALUE], timestamp=1)
    log.hold()
    return log


def fetching(log=None, **options):
    return FetchHandler(log=log or a_log(), quorum=quorum(**options))


def fetch_request(version=17, *, topic_id=METADATA_TOPIC_ID, partition=0, cluster_id=None, replica_id=-1, **values):
    values = {"current_leader_epoch": 5, "fetch_offset": 20, "last_fetched_epoch": 5, **values}
    top = {key: values.pop(key) for key in ("max_bytes",) if key in values}
    wait = timedelta(milliseconds=values.pop("max_wait", 0))
    wanted = build(FETCH, version, "request", "FetchPartition", partition=partition, **values)
    topic = build(FETCH, version, "request", "FetchTopic", topic_id=topic_id, partitions=(wanted,))
    if version >= 15:
        top["replica_state"] = build(FETCH, version, "request", "ReplicaState", replica_id=replica_id)
    else:
        top["replica_id"] = replica_id
    return request(
        FETCH, version, build(FETCH, version, "request", topics=(topic,), cluster_id=cluster_id, max_wait=wait, **top)
    )


async def fetched(served, version=17, **values):
    message = answer(FETCH, version, await served.fetch(fetch_request(version, **values)))
    assert message.error_code == 0
    (topic,) = message.responses
    assert topic.topic_id == METADATA_TOPIC_ID
    (partition,) = topic.partitions
    return message, partition


def bases(partition):
    return [header.base_offset for _, header in iter_batches(bytes(partition.records or b""))]


class TestRecords:
    @pytest.mark.parametrize("version", range(13, 19))
    async def test_whole_batches_from_the_one_containing_the_offset(self, version):
        message, found = await fetched(fetching(), version, fetch_offset=15)
        assert bases(found) == [14, 16, 18]
        assert found.high_watermark == 20
        assert found.log_start_offset == 0
        assert found.last_stable_offset == -1
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 5)
        assert found.aborted_transactions is None
        if version >= 17:
            assert [(node.node_id, node.host, node.port) for node in message.node_endpoints] == [(1, "c1", 9093)]

    async def test_at_least_one_batch_and_at_most_max_bytes(self):
        assert bases((await fetched(fetching(), fetch_offset=4, max_bytes=1))[1]) == [4]
        assert bases((await fetched(fetching(), fetch_offset=4, max_bytes=200))[1]) == [4, 6]

    async def test_nothing_above_the_high_water_mark(self):
        log = a_log()
        log.append([VALUE], timestamp=1)
        found = (await fetched(fetching(log), fetch_offset=18))[1]
        assert bases(found) == [18]
        assert found.high_watermark == 20

    async def test_a_follower_far_behind(self, monkeypatch):
        monkeypatch.setattr("aclog.server.controller.fetch._NEAR", 2)
        assert bases((await fetched(fetching(), fetch_offset=12))[1]) == [12, 14, 16, 18]


class RemoteLog(Log):
    """Nothing is in memory: each read waits for the network, until a test lets it return."""

    def __init__(self):
        super().__init__()
        self.reading, self.response, self.reads = threading.Event(), threading.Event(), 0

    def read_local(self, offset, max_bytes=1 << 20):
        return None

    def read(self, offset, max_bytes=1 << 20):
        self.reads += 1
        self.reading.set()
        self.response.wait(SECONDS)
        return super().read(offset, max_bytes)


@asynccontextmanager
async def remote(readers):
    """A handler, its log, and tasks that fetch from right below the end, of which the first one waits in a thread."""
    log = RemoteLog()
    for _ in range(10):
        log.append([VALUE, VALUE], timestamp=1)
    served = fetching(log)
    tasks = [asyncio.create_task(fetched(served, fetch_offset=18)) for _ in range(readers)]
    try:
        async with asyncio.timeout(SECONDS):
            while not log.reading.is_set():
                await asyncio.sleep(0)
        yield served, log, tasks
    finally:
        log.response.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        served.close()


class TestReadsOverTheNetwork:
    """A topic log has nothing in memory from before a takeover."""

    async def test_the_event_loop_continues_meanwhile(self):
        async with remote(1) as (_, log, (task,)):
            await asyncio.sleep(0.01)
            assert not task.done()
            log.response.set()
            assert bases((await task)[1]) == [18]

    async def test_only_one_waits_in_a_thread_and_the_default_executor_is_free(self):
        async with remote(40) as (_, log, tasks):
            async with asyncio.timeout(SECONDS):
                assert await asyncio.to_thread(lambda: log.reads) == 1
            log.response.set()
            assert [bases(partition) for _, partition in await asyncio.gather(*tasks)] == [[18]] * 40

    async def test_a_client_that_has_left_is_not_read_for(self):
        async with remote(40) as (_, log, tasks):
            for task in tasks[1:]:
                task.cancel()
            await asyncio.wait(tasks[1:])
            log.response.set()
            assert bases((await tasks[0])[1]) == [18]
            assert log.reads == 1

    async def test_a_closed_log_is_not_read(self):
        async with remote(40) as (served, log, tasks):
            served.close()
            log.response.set()
            outcomes = await asyncio.gather(*tasks, fetched(served, fetch_offset=18), return_exceptions=True)
            assert bases(outcomes[0][1]) == [18]
            assert {(type(each), str(each)) for each in outcomes[1:]} == {(LogError, "memory: closed")}
            assert log.reads == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("values", "code"),
        [
            ({"current_leader_epoch": -1}, 42),
            ({"current_leader_epoch": 0}, 74),
            ({"current_leader_epoch": 4}, 74),
            ({"current_leader_epoch": 6}, 75),
            ({"last_fetched_epoch": -1}, 42),
            ({"last_fetched_epoch": 6}, 42),
            ({"fetch_offset": -1}, 42),
            ({"max_wait": -1}, 42),
            ({"replica_id": 1}, -1),
        ],
    )
    async def test_of_the_partition_name_the_leader(self, values, code):
        message, found = await fetched(fetching(), **values)
        assert found.error_code == code
        assert not found.records
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 5)
        assert message.node_endpoints[0].port == 9093

    @pytest.mark.parametrize(
        ("values", "code"),
        [
            ({"topic_id": UUID(int=2)}, 42),
            ({"topic_id": None}, 42),
            ({"partition": 1}, 42),
            ({"cluster_id": "another"}, 104),
        ],
    )
    async def test_of_the_whole_request(self, values, code):
        with pytest.raises(RequestError) as refused:
            await fetching().fetch(fetch_request(**values))
        assert refused.value.code == code

    async def test_versions_without_topic_ids(self):
        body = build(FETCH, 12, "request", topics=(), max_wait=timedelta(0))
        found = answer(FETCH, 12, await fetching().fetch(request(FETCH, 12, body)))
        assert (found.error_code, found.responses) == (42, ())

    async def test_the_right_cluster_id(self):
        assert (await fetched(fetching(), cluster_id="a-cluster"))[1].error_code == 0


class TestDivergence:
    @pytest.mark.parametrize(
        ("offset", "epoch", "diverging"),
        [(10**6, 5, (5, 20)), (6, 3, (3, 4)), (10, 4, (3, 4)), (10, 0, (0, 0)), (21, 5, (5, 20))],
    )
    async def test_the_point_of_divergence(self, offset, epoch, diverging):
        found = (await fetched(fetching(), fetch_offset=offset, last_fetched_epoch=epoch))[1]
        assert found.error_code == 0
        assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == diverging
        assert not found.records
        assert found.snapshot_id.epoch == -1

    @pytest.mark.parametrize(("offset", "epoch"), [(0, 0), (2, 3), (4, 3), (6, 5)])
    async def test_no_divergence_if_the_logs_agree(self, offset, epoch):
        found = (await fetched(fetching(), fetch_offset=offset, last_fetched_epoch=epoch))[1]
        assert found.diverging_epoch.epoch == -1
        assert bases(found)[0] == offset


class TestCheckpoints:
    async def test_the_checkpoint_of_format_does_not_count(self):
        served = fetching(checkpoints=(checkpoint(0, 0),))
        assert bases((await fetched(served, fetch_offset=0, last_fetched_epoch=0))[1])[0] == 0

    async def test_a_new_follower_gets_the_newest_even_if_the_log_starts_at_0(self):
        served = fetching(checkpoints=(checkpoint(0, 0), checkpoint(6, 5), checkpoint(8, 5)))
        found = (await fetched(served, fetch_offset=0, last_fetched_epoch=0))[1]
        assert (found.snapshot_id.end_offset, found.snapshot_id.epoch) == (8, 5)
        assert not found.records

    async def test_below_the_log_start(self):
        log = a_log()
        log.start = 8
        served = fetching(log, checkpoints=(checkpoint(8, 5),))
        for offset, epoch in ((6, 5), (2, 3), (9, 3)):
            found = (await fetched(served, fetch_offset=offset, last_fetched_epoch=epoch))[1]
            assert (found.snapshot_id.end_offset, found.snapshot_id.epoch) == (8, 5)
            assert found.log_start_offset == 8

    async def test_a_follower_continues_from_its_checkpoint(self):
        """Also if the log starts there, in a later epoch than the checkpoint's."""
        log = a_log()
        log.start = 4
        served = fetching(log, epochs=((5, 4),), checkpoints=(checkpoint(4, 3),))
        assert bases((await fetched(served, fetch_offset=4, last_fetched_epoch=3))[1])[0] == 4

    async def test_a_segment_that_retention_has_just_removed(self):
        log = a_log()
        served = fetching(log, checkpoints=(checkpoint(10, 5),))
        real = log.read

        def removed(offset, max_bytes):
            log.start = 10
            from aclog.metalog.errors import LogError

            raise LogError("removed by retention")

        log.read = removed
        found = (await fetched(served, fetch_offset=6))[1]
        assert found.snapshot_id.end_offset == 10
        log.read = real


class TestLongPoll:
    async def test_it_is_woken_by_a_commit(self):
        log = a_log()
        served = fetching(log)
        polling = asyncio.create_task(fetched(served, max_wait=30_000))
        log.append([VALUE], timestamp=1)
        await asyncio.sleep(0)
        assert not polling.done()
        log.release()
        served.wake(21)
        assert bases((await polling)[1]) == [20]
        assert not served._waiting

    async def test_it_is_empty_after_max_wait(self):
        served = fetching()
        found = (await fetched(served, max_wait=10))[1]
        assert (found.error_code, bases(found)) == (0, [])
        assert not served._waiting

    async def test_errors_do_not_wait(self):
        async with asyncio.timeout(10):
            await fetched(fetching(), current_leader_epoch=4, max_wait=30_000)

    async def test_a_cancelled_poll_is_forgotten(self):
        served = fetching()
        polling = asyncio.create_task(fetched(served, max_wait=30_000))
        await asyncio.sleep(0)
        assert served._waiting
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        assert not served._waiting

    async def test_closing_completes_waiting_polls(self):
        served = fetching()
        polling = asyncio.create_task(fetched(served, max_wait=30_000))
        await asyncio.sleep(0)
        served.close()
        assert bases((await polling)[1]) == []
        assert bases((await fetched(served, max_wait=30_000))[1]) == []


class TestObservers:
    async def test_only_fetches_with_a_replica_id_are_recorded(self):
        served = fetching()
        await fetched(served)
        await fetched(served, replica_id=7, fetch_offset=12, replica_directory_id=UUID(int=3))
        await fetched(served, replica_id=7, fetch_offset=20, replica_directory_id=UUID(int=3))
        await fetched(served, 13, replica_id=8, fetch_offset=2, last_fetched_epoch=3)
        await fetched(served, replica_id=9, current_leader_epoch=4)
        now = int(served.clock() * 1000)
        seen = {each.replica_id: each for each in served.quorum.observers(now)}
        assert set(seen) == {7, 8}
        assert (seen[7].log_end_offset, seen[7].directory_id) == (20, UUID(int=3))
        assert seen[7].last_caught_up_timestamp > 0 > seen[8].last_caught_up_timestamp
        assert served.quorum.observers(now + 301_000) == ()

    async def test_their_number_is_bounded(self):
        told = quorum()
        for number in range(3000):
            told.observe(number, None, 1, end_offset=1, now=5)
        assert len(told.observers(5)) == 1000
