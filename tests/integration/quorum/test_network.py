"""A real Kafka of three nodes, whose network is cut between them and to its observers, and whose log is kept short."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from aclog.client.connection import connect
from aclog.client.errors import OtherClusterError, QuorumRefusedError
from aclog.client.fetching import EpochEnd, ObserverOptions
from aclog.client.quorum_log import QuorumLog
from aclog.client.requests import Status, describe_status
from aclog.config.node_config import HostPort
from aclog.metalog.errors import MetadataError
from tests.support.builders.acls import acl, acl_row
from tests.support.kafka.quorum import KafkaQuorum, QuorumNode
from tests.support.kafka.quorum_changes import RuleChanges, make
from tests.support.kafka.quorum_observer import (
    QuorumObserver,
    assert_same,
    assert_same_bytes,
    assert_unseen,
    end_of,
    segment_bytes,
)
from tests.support.kafka.server import AdminClient
from tests.support.nodes.acl_client import AclClient, login
from tests.support.nodes.server_properties import CLUSTER_ID
from tests.support.processes.waiting import SECONDS, wait_until

SHORT = {
    "controller.quorum.fetch.timeout.ms": "4000",
    "metadata.max.idle.interval.ms": "100",
    "metadata.log.max.record.bytes.between.snapshots": "10000",
    "internal.metadata.log.segment.bytes": "20000",
    "internal.metadata.max.batch.size.in.bytes": "8192",
}
NEVER = "never-committed"
LITTLE = ObserverOptions(fetch_bytes=300)


def admin_of(node: QuorumNode) -> AdminClient:
    """Kafka's own client, which asks the active controller: brokers may be cut off from theirs."""
    return AdminClient(f"localhost:{node.ports.controller}", controllers=True)


def change_rules(kafka: KafkaQuorum, observer: QuorumObserver, changes: RuleChanges, count: int = 10) -> None:
    """Changes by Kafka's own client; then all is the same."""
    with admin_of(kafka.leader()) as admin:
        for _ in range(count):
            make(admin, changes.next())
        assert_same(observer, admin, changes)


@contextmanager
def written_alone(leader: QuorumNode) -> Iterator[list[object]]:
    """Have a leader that is cut off write a rule; what it answered, in the end."""
    answers: list[object] = []

    async def create() -> None:
        client = await AclClient.open(leader.ports.controller)
        async with client.connection:
            answers.extend(await client.create([acl(NEVER)]))

    def write() -> None:
        try:
            asyncio.run(create())
        except MetadataError as error:
            answers.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield answers
    finally:
        writer.join(SECONDS)


def cut_off_the_leader(kafka: KafkaQuorum, changes: RuleChanges) -> None:
    """It goes on for a while as the leader of a minority, with an observer; the others elect another one, and write.

    Neither its followers nor the new leader reach it until the end; its observers and clients do all the time.
    """
    lonely = kafka.leader()
    seen: set[str] = set()
    with QuorumObserver([lonely.controller]) as observer:
        observer.publisher.subscribe(lambda image: seen.update(entry.acl.resource_name for entry in image.acls))
        wait_until(lambda: observer.rows == changes.rows)
        kafka.proxies[lonely.node_id].hold()
        with written_alone(lonely) as answers:
            wait_until(lambda: NEVER.encode() in observer.pending)
            assert_unseen(observer, NEVER, observer.log.high_watermark())
            wait_until(lambda: kafka.leader() is not lonely)
            change_rules(kafka, observer, changes)
        assert isinstance(answers[0], MetadataError) or answers[0][0] != 0  # it was not acknowledged
        assert NEVER not in seen
        assert NEVER.encode() not in observer.read
        kafka.proxies[lonely.node_id].release()
        wait_until(lambda: NEVER.encode() not in segment_bytes(lonely.log_directory))


def pause_the_leader(kafka: KafkaQuorum, observer: QuorumObserver, changes: RuleChanges) -> None:
    """It holds its connections and says nothing, until it wakes up in a quorum that has another one."""
    paused = kafka.leader()
    paused.pause()
    wait_until(lambda: kafka.leader() is not paused)
    change_rules(kafka, observer, changes)
    paused.resume()
    change_rules(kafka, observer, changes)


def fill_until_a_snapshot(kafka: KafkaQuorum, observer: QuorumObserver, changes: RuleChanges) -> None:
    """Until the leader has a snapshot, and so offers no log from 0 on."""

    def begins_later() -> bool:
        with QuorumLog(servers=[kafka.leader().controller], security=login("admin")) as log:
            log.wait_known(60)
            return log.start_offset() > 0

    while not begins_later():
        change_rules(kafka, observer, changes, count=40)


def begin_with_a_snapshot(kafka: KafkaQuorum, changes: RuleChanges) -> None:
    """By FetchSnapshot, in small pieces. One that is gone is overcome: Kafka answers UNKNOWN_SERVER_ERROR."""
    with QuorumObserver(kafka.controllers, options=LITTLE) as late:
        wait_until(lambda: late.rows == changes.rows)
        assert late.log.start_offset() > 0
        late.check()
        late.log._buffer.snapshot = EpochEnd(epoch=1, end_offset=7)
        assert late.log.latest_snapshot().end_offset == late.log.start_offset() > 7


def lose_the_leader_during_a_snapshot(kafka: KafkaQuorum, changes: RuleChanges) -> None:
    """The next leader's is taken from its beginning."""
    lost = kafka.leader()
    proxy = kafka.proxies[lost.node_id]
    proxy.delay = 0.005
    servers = [HostPort(host="localhost", port=each.port) for each in kafka.proxies.values()]
    with QuorumObserver(servers, options=LITTLE) as late:
        wait_until(lambda: late.log._snapshots.directory is not None, every=0.001)
        proxy.hold()
        wait_until(lambda: kafka.leader() is not lost)
        wait_until(lambda: late.rows == changes.rows)
        late.check()
        proxy.delay = 0.0
        proxy.release()
        change_rules(kafka, late, changes)


def who_may_follow(kafka: KafkaQuorum) -> None:
    """Whoever may act for the cluster, and of this cluster only."""
    with (
        pytest.raises(OtherClusterError, match="INCONSISTENT_CLUSTER_ID: it is another cluster: expected xxx"),
        QuorumLog(servers=kafka.controllers, security=login("admin"), cluster_id="x" * 22) as log,
    ):
        log.wait_known(60)
    with (
        pytest.raises(QuorumRefusedError, match="CLUSTER_AUTHORIZATION_FAILED: expected a user with CLUSTER_ACTION"),
        QuorumLog(servers=kafka.controllers, security=login("bob")) as log,
    ):
        log.wait_known(60)
    with admin_of(kafka.leader()) as admin:
        right = acl_row("kafka-cluster", resourceType="CLUSTER", principal="User:bob", operation="CLUSTER_ACTION")
        admin("createAcls", acls=[right])
    for user, known in (("admin", CLUSTER_ID), ("bob", None)):  # to be told the cluster's id one needs ALTER
        with QuorumObserver(kafka.controllers, user=user) as observer:
            wait_until(lambda observer=observer: right in observer.rows)
            assert observer.log.known_cluster_id == known


def status(kafka: KafkaQuorum) -> Status:
    async def ask() -> Status:
        async with await connect(kafka.leader().controller, login("admin")) as connection:
            return await describe_status(connection, login("admin"), controller=True)

    return asyncio.run(ask())


@pytest.mark.slow(30)
def test_cuts_pauses_and_snapshots(tmp_path: Path) -> None:
    changes = RuleChanges(Random(12), steady=60)
    with (
        KafkaQuorum(tmp_path / "kafka", static=True, proxied=True, changes=SHORT) as kafka,
        QuorumObserver(kafka.controllers) as observer,
    ):
        change_rules(kafka, observer, changes)
        cut_off_the_leader(kafka, changes)
        wait_until(lambda: observer.rows == changes.rows)
        pause_the_leader(kafka, observer, changes)
        fill_until_a_snapshot(kafka, observer, changes)
        begin_with_a_snapshot(kafka, changes)
        lose_the_leader_during_a_snapshot(kafka, changes)
        wait_until(lambda: observer.rows == changes.rows)
        told = status(kafka).quorum
        assert [voter.replica_id for voter in told.voters] == [1, 2, 3]
        assert told.observers == ()  # whoever only looks on is not seen
        wait_until(lambda: end_of(observer.read) >= told.high_watermark)
        assert_same_bytes(observer.read, kafka.leader().log_directory)
        who_may_follow(kafka)
