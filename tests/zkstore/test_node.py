"""A node with authorizer.class.name=kafka.security.authorizer.AclAuthorizer: its clients change ACLs in ZooKeeper."""

import asyncio

import pytest
from attrs import evolve

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.codes import AclOperation, PatternType
from aclog.client.connection import connect as log_in
from aclog.client.requests import create_acls, delete_acls, describe_acls
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.protocol.session import SecurityProtocol
from tests.support.kafka.server import free_port
from tests.support.nodes.aclog_node import AclogNode, NodeError
from tests.support.nodes.server_properties import Ports, password, server_properties
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.differential import EVERYTHING, exactly
from tests.zkstore.authorizer.test_faults import rule

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


def node_on(home, connect, **changes):
    ports = Ports.free()
    properties = server_properties(
        ports, **{"authorizer.class.name": ACL_AUTHORIZER, "zookeeper.connect": connect, **changes}
    )
    return AclogNode(home, ports, properties).format()


def asked(node, user, work):
    """Run a request as a user, and return its result."""

    async def ask():
        security = ClientSecurity(
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            sasl_mechanism="PLAIN",
            username=user,
            password=password(user),
        )
        async with await log_in(HostPort(host="localhost", port=node.ports.broker), security) as connection:
            return await work(connection)

    return asyncio.run(ask())


def test_acls_of_its_clients_are_in_zookeeper_and_in_force(tmp_path, connect, real):
    alter = {"resource_type": 4, "resource_name": "kafka-cluster", "principal": "User:alice"}
    with node_on(tmp_path / "node", connect, **{"inter.broker.protocol.version": "1.1"}) as node:
        prefixed = evolve(rule(1), pattern_type=PatternType.PREFIXED)
        created, gated = asked(node, "admin", lambda c: create_acls(c, [rule(1), prefixed]))
        assert created.error is None
        assert "requires inter.broker.protocol.version of 2.0-IV1 or greater" in str(gated.error)
        wait_until(lambda: real.acls() == {rule(1)}, "the view of the real one")
        (refused,) = asked(node, "alice", lambda c: create_acls(c, [rule(2)]))
        assert refused.error is not None
        allowed = real_rule(**alter)
        assert real.create([allowed]) == [None]
        wait_until(lambda: asked(node, "alice", lambda c: create_acls(c, [rule(2)]))[0].error is None, "what alice may")
        found = asked(node, "admin", lambda c: describe_acls(c, EVERYTHING))
        assert set(found) == {rule(1), rule(2), allowed}
        wait_until(lambda: real.acls() == set(found), "the view of the real one, which follows change events")
        assert node.metric("aclog_acls") == len(found)
        (deleted,) = asked(node, "admin", lambda c: delete_acls(c, [exactly(rule(1))]))
        assert [each.acl for each in deleted.deleted] == [rule(1)]
        wait_until(lambda: real.acls(AclBindingFilter(principal="User:u1")) == set(), "the removal")
    assert "operation = ALTER from host = 127.0.0.1 on resource = Cluster:LITERAL:kafka-cluster" in node.output


def real_rule(**changes):
    return evolve(rule(0), operation=AclOperation.ALL, **changes)


@pytest.mark.server
def test_without_zookeeper_it_does_not_start(tmp_path):
    nobody = f"127.0.0.1:{free_port()}"
    node = node_on(tmp_path / "node", nobody, **{"zookeeper.connection.timeout.ms": "500"})
    with pytest.raises(NodeError, match=f"stopped: ZooKeeper at {nobody}: no connection within 0.5 s"):
        node.start()
    assert "Traceback" not in node.output
    assert "unknown keys" not in node.output
