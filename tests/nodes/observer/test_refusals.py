"""Servers that refuse: a single one is skipped, refusals by all are reported, another cluster is final."""

from contextlib import ExitStack

import pytest

from aclog.client.errors import FollowingEndedError, LoginError, OtherClusterError, QuorumRefusedError, UnreachableError
from aclog.client.fetching import Fetcher, FetchResponse, Position, Refusals, fetch_request
from aclog.client.follower import Follower
from aclog.client.quorum_log import QuorumLog
from aclog.client.snapshots import EpochEnd, snapshot_request
from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError, LogError
from aclog.protocol.api_keys import DESCRIBE_CLUSTER
from aclog.protocol.responses import CONTROLLER_APIS
from aclog.snapshots.publisher import Publisher
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.observers import QUICK
from tests.support.fakes.quorum import FakeQuorum
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import wait_until

ONE, TWO, THREE = (HostPort(host="h", port=port) for port in (1, 2, 3))


@pytest.fixture
def quorums():
    return FakeQuorum(epoch=3), FakeQuorum(epoch=5)


@pytest.fixture
def leaders(quorums):
    """Leaders of two clusters."""
    with ExitStack() as stack:
        yield [stack.enter_context(FakeLeader(quorum)) for quorum in quorums]


def observer(*leaders, cluster_id=None):
    servers = tuple(leader if isinstance(leader, HostPort) else leader.address for leader in leaders)
    return QuorumLog(servers=servers, options=QUICK, cluster_id=cluster_id)


@pytest.mark.parametrize("kind", [QuorumRefusedError, LoginError, ConfigError])
def test_a_refusal_is_permanent_once_all_servers_failed(kind):
    refusals = Refusals((ONE, TWO))
    refusals.note(ONE, kind("no"))
    assert refusals.permanent is None
    refusals.note(TWO, UnreachableError("nobody there"))
    assert str(refusals.permanent) == "no"
    refusals.clear()
    assert refusals.permanent is None


def test_unreachable_servers_do_not_refuse():
    refusals = Refusals((ONE,))
    refusals.note(ONE, UnreachableError("nobody there"))
    assert refusals.permanent is None


def test_a_named_leaders_refusal_counts_once_all_servers_were_tried():
    refusals = Refusals((ONE,))
    refusals.note(TWO, QuorumRefusedError("not you"))
    assert refusals.permanent is None
    refusals.note(ONE, LogError("not the leader"))
    assert str(refusals.permanent) == "not you"


@pytest.mark.parametrize("error", [UnreachableError("nobody there"), LogError("not the leader")])
def test_another_cluster_is_not_permanent_while_a_server_may_belong_to_the_expected_one(error):
    refusals = Refusals((ONE, TWO))
    refusals.note(ONE, OtherClusterError("another"))
    refusals.note(TWO, error)
    assert refusals.permanent is None
    refusals.note(TWO, LoginError("wrong password"))
    assert str(refusals.permanent) == "another"


def test_another_cluster_is_final_once_all_servers_belong_to_it():
    refusals = Refusals((ONE, TWO))
    told = refusals.note(ONE, OtherClusterError("another"))
    assert not isinstance(told, FollowingEndedError)
    refusals.note(THREE, OtherClusterError("another"))
    refusals.note(TWO, UnreachableError("nobody there"))
    assert refusals.final is None
    assert not isinstance(refusals.permanent, FollowingEndedError)
    refusals.note(TWO, OtherClusterError("another too"))
    assert str(refusals.final) == "another"


def test_another_cluster_is_refused_permanently(leaders):
    with observer(*leaders, cluster_id="mine") as log:
        with pytest.raises(OtherClusterError, match=r"INCONSISTENT_CLUSTER_ID: it is another cluster: expected mine"):
            log.wait_known(30)
        asked = sum(leader.connections for leader in leaders)
        with pytest.raises(OtherClusterError):
            log.wait(0, 0.2)
        assert sum(leader.connections for leader in leaders) == asked  # no server is tried again


def test_a_node_that_follows_another_cluster_ends(leaders):
    log = observer(leaders[0], cluster_id="mine")
    follower = Follower(log=log, publisher=Publisher())
    follower.start()
    try:
        assert follower.wait_ended(30)
        assert isinstance(follower.failure, OtherClusterError)
    finally:
        log.close()


def test_a_refusal_that_is_faster_than_the_constructor_is_reported_by_the_log(monkeypatch):
    async def refused_at_once(fetcher):
        fetcher.buffer.fail(OtherClusterError("another"))

    monkeypatch.setattr(Fetcher, "run", refused_at_once)
    with observer(ONE) as log:
        with pytest.raises(OtherClusterError):
            log.wait_known(30)
        assert isinstance(log.error, OtherClusterError)


def test_one_server_of_another_cluster_is_skipped(quorums, leaders):
    leaders[0].cluster_id = "another"
    quorums[1].append([b"x"])
    with observer(*leaders, cluster_id="fake-cluster") as log:
        log.wait_known(30)
        assert log.leader == leaders[1].address
        assert log.error is None


def test_the_first_servers_cluster_is_pinned(quorums, leaders):
    """A server of another cluster with fitting epochs must not continue the log."""
    quorums[0].append([b"mine"])
    for _ in range(5):
        quorums[1].append([b"not mine"])
    with observer(*leaders) as log:
        log.wait_known(30)
        leaders[1].cluster_id = "another"
        leaders[0].close()
        wait_until(lambda: isinstance(log.error, QuorumRefusedError))
        assert log.high_watermark() == 1
        assert log.read(0) == quorums[0].batches[0]
        with FakeLeader(quorums[0], port=leaders[0].port):
            quorums[0].append([b"mine too"])
            wait_until(lambda: log.high_watermark() == 2)
            assert log.read(1) == quorums[0].batches[1]


def test_servers_of_two_clusters_are_refused_until_one_is_known(quorums, leaders):
    """A new observer cannot know which one is meant; with the cluster's id, the other one is skipped."""
    leaders[1].cluster_id = "another"
    quorums[0].append([b"mine"])
    with observer(*leaders) as log:
        with pytest.raises(QuorumRefusedError, match="expected servers of one cluster"):
            log.wait_known(30)
        assert log.high_watermark() == -1
    notes = []
    servers = tuple(each.address for each in reversed(leaders))
    with QuorumLog(servers=servers, options=QUICK, cluster_id="fake-cluster", notify=notes.append) as log:
        log.wait_known(30)
        assert log.leader == leaders[0].address
    assert [each for each in notes if "not followed" in each] == [
        f"{leaders[1].address}: INCONSISTENT_CLUSTER_ID: it is another cluster: expected fake-cluster: not followed"
    ]


def test_a_controller_that_denies_its_cluster_id_is_followed(quorums):
    apis = tuple(api for api in CONTROLLER_APIS if api.api_key != DESCRIBE_CLUSTER)
    with FakeLeader(quorums[0], apis=apis) as leader, observer(leader) as log:
        log.wait_known(30)
        assert leader.requests.get(DESCRIBE_CLUSTER) is None


def test_a_refusal_of_one_of_several_servers_does_not_end_waits(quorums, leaders):
    leaders[0].faults.tamper = lambda answer: FetchResponse(error=31)
    quorums[1].append([b"x"])
    with observer(*leaders) as log:
        assert log.wait(0, 30)
        assert log.read(0) == quorums[1].batches[0]


def test_a_refusal_takes_precedence_over_unreachable_servers(leaders):
    leaders[0].faults.tamper = lambda answer: FetchResponse(error=31)
    away = HostPort(host="127.0.0.1", port=free_port())
    with (
        observer(away, leaders[0]) as log,
        pytest.raises(QuorumRefusedError, match="CLUSTER_AUTHORIZATION_FAILED"),
    ):
        log.wait_known(30)


@pytest.mark.parametrize("version", [17, 18])
def test_an_observer_is_never_counted_as_a_replica(version):
    """A voter's id in a request would count towards the majority."""
    position = Position(offset=1, last_fetched_epoch=1, leader_epoch=1, high_watermark=1)
    request = fetch_request(position, version, max_bytes=1, max_wait_ms=1)
    assert request.replica_state.replica_id == -1
    wanted = snapshot_request(EpochEnd(epoch=1, end_offset=1), 0, 1, version - 17, max_bytes=1, cluster_id=None)
    assert wanted.replica_id == -1
