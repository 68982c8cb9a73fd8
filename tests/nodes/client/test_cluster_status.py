"""Requests of commands about a cluster."""

import asyncio
from uuid import UUID

import pytest
from attrs import evolve

from aclog.client.connection import connect
from aclog.client.requests import ClusterNode, QuorumDescription, ReplicaDescription, describe_scram, describe_status
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.credentials.scram import CredentialInfo, UserCredentials
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import build
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS, ApiVersion
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum

PLAINTEXT = ClientSecurity()
DIRECTORY = UUID(int=7)


def run(node, what):
    async def go():
        async with await connect(node.address, PLAINTEXT) as connection:
            return await what(connection)

    return asyncio.run(go())


def status(node, *, controller=True):
    return run(node, lambda connection: describe_status(connection, PLAINTEXT, controller=controller))


def cluster_of(nodes, controller_id):
    def answer(version, body):
        brokers = tuple(
            build(60, version, "response", "DescribeClusterBroker", broker_id=id_, host=at.host, port=at.port)
            for id_, at in nodes().items()
        )
        kind = body.endpoint_type
        return build(
            60, version, "response", endpoint_type=kind, cluster_id="c", controller_id=controller_id, brokers=brokers
        )

    return answer


def quorum_of(error=0, **changes):
    def answer(version, _):
        def nested(kind, /, **values):
            return build(55, version, "response", kind, **values)

        voter = nested("ReplicaState", replica_id=1, replica_directory_id=DIRECTORY, log_end_offset=12)
        observer = nested("ReplicaState", replica_id=5, log_end_offset=9, last_fetch_timestamp=77)
        values = {"leader_id": 1, "leader_epoch": 3, "high_watermark": 12}
        voters = {"current_voters": (voter,), "observers": (observer,)}
        found = nested("PartitionData", error_code=error, **(voters | values | changes))
        topic = nested("TopicData", topic_name="__cluster_metadata", partitions=(found,))
        return build(55, version, "response", topics=(topic,))

    return answer


def expected_quorum(directory_id=DIRECTORY):
    return QuorumDescription(
        leader_id=1,
        leader_epoch=3,
        high_watermark=12,
        voters=(ReplicaDescription(replica_id=1, directory_id=directory_id, log_end_offset=12),),
        observers=(ReplicaDescription(replica_id=5, directory_id=None, log_end_offset=9, last_fetch_timestamp=77),),
    )


@pytest.fixture
def leader():
    nodes = {}
    handlers = {60: cluster_of(lambda: nodes, 1), 55: quorum_of()}
    with FakeLeader(FakeQuorum(), handlers=handlers) as node:
        nodes[1] = node.address
        yield node


def test_the_leader_is_asked_for_everything(leader):
    found = status(leader)
    assert found.quorum == expected_quorum()
    assert found.cluster.nodes == (ClusterNode(node_id=1, address=leader.address),)
    assert (found.cluster.cluster_id, found.cluster.controller_id, found.controller) == ("c", 1, True)
    assert found.features.finalized == {"metadata.version": 30}
    assert found.address == leader.address


def test_a_standby_controller_names_the_active_one(leader):
    nodes = {1: leader.address, 2: HostPort(host="unused", port=1)}
    handlers = {60: cluster_of(lambda: nodes, 1), 55: quorum_of(error=6, leader_id=0, leader_epoch=0)}
    with FakeLeader(FakeQuorum(), node_id=2, handlers=handlers) as follower:
        found = status(follower)
    assert found.quorum == expected_quorum()
    assert found.address == follower.address


def acls_of(error):
    return lambda version, _: build(29, version, "response", error_code=error)


@pytest.mark.parametrize(("error", "has_one"), [(0, True), (31, None), (54, False), (-1, None)])
def test_whether_a_node_has_an_authorizer(leader, error, has_one):
    leader.handlers[29] = acls_of(error)
    found = status(leader)
    assert found.authorizers == {leader.address: has_one}
    assert found.open_nodes == (() if has_one in (True, None) else (leader.address,))
    assert found.warnings == ()  # without a login nobody expects one
    [warning] = evolve(found, authorizers={leader.address: False}, logged_in=True).warnings
    assert warning.startswith(f"no authorizer at {leader.address}: every client may perform every operation there.")


def test_one_of_two_nodes_has_no_authorizer(leader):
    with FakeLeader(FakeQuorum(), node_id=2, handlers={29: acls_of(54)}) as other:
        nodes = {1: leader.address, 2: other.address}
        leader.handlers |= {29: acls_of(0), 60: cluster_of(lambda: nodes, 1)}
        [warning] = status(leader).warnings
    assert f"no authorizer at {other.address}: " in warning


def test_a_node_too_old_for_acls(leader):
    apis = tuple(each for each in CONTROLLER_APIS if each.api_key != 29)
    with FakeLeader(FakeQuorum(), node_id=2, apis=apis) as other:
        leader.handlers[60] = cluster_of(lambda: {1: leader.address, 2: other.address}, 1)
        found = status(leader)
    assert found.authorizers[other.address] is None
    assert found.cidr[other.address] is False


@pytest.mark.parametrize("error", [31, 6])
def test_a_refusal(leader, error):
    leader.handlers[55] = quorum_of(error=error)
    with pytest.raises(RequestError) as caught:
        status(leader)
    assert caught.value.code == error


def test_an_older_broker():
    apis = (ApiVersion(18, 0, 4), ApiVersion(55, 0, 0), ApiVersion(60, 0, 0))

    def cluster(version, _):
        return build(60, version, "response", cluster_id="c", controller_id=4)

    def observed(version, body):
        return quorum_of(
            current_voters=(build(55, version, "response", "ReplicaState", replica_id=1, log_end_offset=12),),
            observers=(),
        )(version, body)

    with FakeLeader(FakeQuorum(), apis=apis, handlers={60: cluster, 55: observed}) as node:
        found = status(node, controller=False)
    assert found.quorum.voters == (ReplicaDescription(replica_id=1, directory_id=None, log_end_offset=12),)
    assert found.cluster.controller_id == 4


def scram(version, body):
    assert body.users is None
    info = build(50, version, "response", "CredentialInfo", mechanism=2, iterations=8192)
    result = build(50, version, "response", "DescribeUserScramCredentialsResult", user="bob", credential_infos=(info,))
    return build(50, version, "response", results=(result,))


def test_scram_users():
    with FakeLeader(FakeQuorum(), apis=BROKER_APIS, handlers={50: scram}) as node:
        infos = (CredentialInfo(mechanism=2, iterations=8192),)
        assert run(node, describe_scram) == [UserCredentials(user="bob", credential_infos=infos)]


def test_scram_users_refused():
    def refused(version, _):
        return build(50, version, "response", error_code=31, error_message="no")

    with (
        FakeLeader(FakeQuorum(), apis=BROKER_APIS, handlers={50: refused}) as node,
        pytest.raises(RequestError, match="no"),
    ):
        run(node, describe_scram)
