"""A real Kafka of three nodes is followed while its leaders are killed, restarted, and left alone."""

import threading
from pathlib import Path
from random import Random

import pytest

from tests.support.builders.acls import acl_row
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.quorum_changes import RuleChanges, make
from tests.support.kafka.quorum_observer import (
    QuorumObserver,
    assert_same,
    assert_same_bytes,
    assert_unseen,
    segment_bytes,
)
from tests.support.kafka.server import AdminClient, KafkaError
from tests.support.processes.waiting import SECONDS, wait_until

QUICK = {"controller.quorum.fetch.timeout.ms": "4000", "metadata.max.idle.interval.ms": "100"}
"""A leader without followers stays one for half as long again; records of nothing tell soon what goes on."""
NEVER = "never-committed"


def change_rules(admin: AdminClient, changes: RuleChanges, count: int) -> None:
    for _ in range(count):
        make(admin, changes.next())


def write_what_is_never_committed(kafka: KafkaQuorum, observer: QuorumObserver) -> None:
    """Records that a leader writes alone, and that the observer is given but does not show; then the leader dies.

    Its followers go on without it.
    """
    leader, followers = kafka.leader(), kafka.followers()
    failed: list[str] = []

    def write() -> None:
        try:
            alone("createAcls", acls=[acl_row(NEVER)])
        except KafkaError as error:
            failed.append(str(error))

    with AdminClient(f"localhost:{leader.ports.controller}", controllers=True) as alone:
        assert alone.acls()
        wait_until(lambda: observer.log.leader_id == leader.node_id)
        for follower in followers:
            follower.pause()
        wait_until(lambda: observer.held_batches >= 3)  # each fetch of theirs that waited for records has been answered
        writer = threading.Thread(target=write)
        writer.start()
        wait_until(lambda: NEVER.encode() in observer.pending)
        assert_unseen(observer, NEVER, observer.log.high_watermark())
        assert writer.is_alive()  # no answer has come
        alone.kill()  # it would ask the next leader for the same
        writer.join(SECONDS)
    assert "the admin client died" in failed[0]
    leader.kill()
    for follower in followers:
        follower.resume()


@pytest.mark.slow(19)
def test_what_a_leader_wrote_alone_is_never_seen_and_all_else_is(tmp_path: Path) -> None:
    changes, seen = RuleChanges(Random(11), steady=60), set()
    with (
        KafkaQuorum(tmp_path / "kafka", changes=QUICK) as kafka,
        AdminClient(kafka.bootstrap) as admin,
        QuorumObserver(kafka.controllers) as observer,
    ):
        observer.publisher.subscribe(lambda image: seen.update(entry.acl.resource_name for entry in image.acls))
        change_rules(admin, changes, 10)
        assert_same(observer, admin, changes)
        epoch, lonely = observer.log.leader_epoch, kafka.leader()
        write_what_is_never_committed(kafka, observer)
        change_rules(admin, changes, 10)
        assert_same(observer, admin, changes)
        assert observer.log.leader_epoch > epoch

        lonely.start()
        wait_until(lambda: NEVER.encode() not in segment_bytes(lonely.log_directory))
        change_rules(admin, changes, 10)
        assert_same(observer, admin, changes)
        assert NEVER not in seen
        for node in kafka.nodes:
            assert assert_same_bytes(observer.read, node.log_directory) == 0
