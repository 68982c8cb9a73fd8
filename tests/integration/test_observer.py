"""A real Kafka's quorum, followed through its controller's listener."""

import asyncio
import threading

import pytest

from aclog.client.connection import connect
from aclog.client.errors import LoginError, QuorumRefusedError
from aclog.client.fetching import ObserverOptions
from aclog.client.follower import Follower
from aclog.client.quorum_log import QuorumLog
from aclog.client.requests import Status, describe_scram, describe_status
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.credentials.scram import UserCredentials
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_reader
from aclog.protocol.session import SecurityProtocol
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher, recover
from aclog.sources.live import QuorumSource
from tests.integration.conftest import CONTROLLER_PORT
from tests.support.builders.acls import acl_row
from tests.support.kafka.server import AdminClient, KafkaServer
from tests.support.processes.waiting import wait_until

CONTROLLER = HostPort(host="localhost", port=CONTROLLER_PORT)
RULES = 200


def security(password: str = "admin-secret") -> ClientSecurity:
    return ClientSecurity(
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism="PLAIN",
        username="admin",
        password=password,
    )


def rule(number: int) -> dict[str, str]:
    return acl_row(f"observed-{number}", principal="User:observer")


def content(image: Image) -> list:
    """All that is interpreted. What is not depends on where replay began: Kafka's own checkpoints hold less of it."""
    credentials = [*image.scram.records(), *image.tokens.records(), *image.features.records()]
    return [image.provenance, image.acls.digest(), sorted(map(encode_record, credentials))]


def assert_is_what_the_files_say(image: Image, kafka: KafkaServer) -> None:
    """The same as what recovery makes of the server's own files."""
    assert content(image) == content(recover(kafka.log_directory, as_of=image.end_offset).image)


def assert_any_batch_can_be_read(start: int, end: int, kafka: KafkaServer) -> None:
    """By an observer that holds next to nothing, so that it must ask for most of them again; from the last one down."""
    little = ObserverOptions(buffer_bytes=1000, kept_bytes=100, fetch_bytes=500)
    with (
        open_reader(kafka.log_directory) as files,
        QuorumLog(servers=(CONTROLLER,), security=security(), options=little) as log,
    ):
        log.wait_known(60)
        for offset in range(end - 1, start - 1, -1):
            assert log.read(offset, 1) == files.read(offset, 1)


def assert_status(server: HostPort, *, controller: bool) -> None:
    """What a server tells of its cluster, a controller or a broker."""

    async def ask() -> tuple[Status, list[UserCredentials]]:
        async with await connect(server, security()) as connection:
            users = [] if controller else await describe_scram(connection)
            return await describe_status(connection, security(), controller=controller), users

    status, users = asyncio.run(ask())
    assert [node.node_id for node in status.cluster.nodes] == [1]
    assert status.cluster.nodes[0].address == server
    assert (status.quorum.leader_id, [voter.replica_id for voter in status.quorum.voters]) == (1, [1])
    assert status.quorum.observers == ()  # whoever only looks on is not seen
    assert status.quorum.high_watermark > 200
    assert status.features.finalized["metadata.version"] == 30
    assert controller or {user.user for user in users} >= {"admin", "alice", "bob"}


def names(image: Image) -> set[str]:
    return {entry.acl.resource_name for entry in image.acls if entry.acl.resource_name.startswith("observed-")}


@pytest.mark.slow(5)
def test_a_real_quorum_is_followed_across_restarts(stopped_kafka: KafkaServer) -> None:
    """From a snapshot, live, through a restart in a new epoch; and every state is the one in the server's files."""
    publisher, shown = Publisher(), []
    publisher.subscribe(lambda image: shown.append(image.end_offset))
    log = QuorumLog(servers=(CONTROLLER,), security=security())
    follower = Follower(log=log, publisher=publisher)
    follower.start()  # nobody is there yet
    try:
        with stopped_kafka as kafka, AdminClient(kafka.port) as admin:
            assert publisher.wait_ready(60), log.error
            assert log.start_offset() > 0  # the fixture has a snapshot, and a real leader hands out no log from 0 then
            assert_is_what_the_files_say(publisher.current, kafka)
            for number in range(5):
                admin("createAcls", acls=[rule(number)])
                wait_until(lambda number=number: f"observed-{number}" in names(publisher.current))
            admin("deleteAcls", acls=[rule(0)])
            wait_until(lambda: len(names(publisher.current)) == 4)
            assert_is_what_the_files_say(publisher.current, kafka)
            epoch, reached = log.leader_epoch, publisher.current.end_offset
            wait_until(lambda: log.freshness().seconds < 2)
        wait_until(lambda: log.freshness().seconds > 2)  # nobody is there: the state grows old
        with stopped_kafka as kafka, AdminClient(kafka.port) as admin:
            admin("createAcls", acls=[rule(number) for number in range(100, 100 + RULES)])
            wait_until(lambda: len(names(publisher.current)) == 4 + RULES)
            wait_until(lambda: log.freshness().seconds < 2)
            assert log.leader_epoch > epoch
            assert publisher.current.end_offset > reached
            assert_is_what_the_files_say(publisher.current, kafka)
            assert follower.failure is None
            assert shown == sorted(shown)
    finally:
        log.close()
        assert follower.stop(30)


def test_a_real_quorum_as_a_source_of_states_and_who_may_not_follow_it(stopped_kafka: KafkaServer) -> None:
    before = set(threading.enumerate())
    with stopped_kafka as kafka:
        source = QuorumSource(controllers=(CONTROLLER,), security=security(), notify=print)
        try:
            image = source.image()
            assert_is_what_the_files_say(image, kafka)
            past = source.image_at(image.end_offset - 3)
            assert past.end_offset <= image.end_offset - 3
            assert_is_what_the_files_say(past, kafka)
            assert_any_batch_can_be_read(source.log.start_offset(), image.end_offset, kafka)
            assert source.log.wait(image.end_offset, 60)  # records of nothing come by themselves
            assert source.image().end_offset > image.end_offset
        finally:
            source.close()
        assert_status(CONTROLLER, controller=True)
        assert_status(HostPort(host="localhost", port=kafka.port), controller=False)
        with (
            pytest.raises(LoginError, match="Invalid username or password"),
            QuorumLog(servers=(CONTROLLER,), security=security("guessed")) as log,
        ):
            log.wait_known(60)
        with (
            pytest.raises(QuorumRefusedError, match="not a controller's listener"),
            QuorumLog(servers=(HostPort(host="localhost", port=kafka.port),), security=security()) as log,
        ):
            log.wait_known(60)
        assert not [each for each in set(threading.enumerate()) - before if each.name == "quorum-observer"]
