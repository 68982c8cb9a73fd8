"""A ZooKeeper that a KRaft controller owns: nothing is written to it, and who reads it is warned.

The znodes are those of a Kafka 3.9.1, before its migration and in it. See tests/integration/test_migrating_kafka.py.
"""

import json

import pytest

from aclog.authorizer.acl import AclBindingFilter, object_of_rule
from aclog.zookeeper.client import DisconnectedError
from aclog.zookeeper.connect import kraft_controller
from aclog.zookeeper.session import ZkClient
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.processes.waiting import SECONDS
from tests.support.zookeeper.differential import ADMIN, our_authorizer, ours_create, rules_of

BROKER = b'{"version":2,"brokerid":0,"timestamp":"1795541632656","kraftControllerEpoch":-1}'
KRAFT = b'{"version":2,"brokerid":3000,"timestamp":"1795541667456","kraftControllerEpoch":1}'
OLDER = b'{"version":1,"brokerid":0,"timestamp":"1518620400000"}'
ALLOWED = ("--allow-principal", "User:a", "--operation", "Read", "--topic", "t")
SAID = "KRaft controller 3000 owns the cluster"

pytestmark = pytest.mark.server


@pytest.fixture
def owned(store):
    """Make the znode of a controller, or change it."""

    def make(data):
        store.client.ensure("/controller")
        store.client._kazoo.set("/controller", data)

    return make


def test_only_an_epoch_of_kraft_owns(store, owned):
    assert kraft_controller(store.client) is None
    for data, expected in ((BROKER, None), (OLDER, None), (KRAFT, 3000), (BROKER, None)):
        owned(data)
        owner = kraft_controller(store.client)
        assert (owner and owner.node_id) == expected


@pytest.mark.parametrize("data", [b"", b"{", b'{"kraftControllerEpoch":"1"}', b'{"kraftControllerEpoch":1}'])
def test_what_does_not_tell_stops_writers(owned, connect, data):
    owned(data)
    added = aclog("acls", "add", "--authorizer-properties", f"zookeeper.connect={connect}", *ALLOWED)
    assert added.code == 2
    assert "/controller" in added.complaint


def test_every_writer_is_refused_and_every_reader_is_warned(owned, store, connect, tmp_path):
    place = ("--authorizer-properties", f"zookeeper.connect={connect}")
    wanted, plan = tmp_path / "wanted.jsonl", tmp_path / "PLAN"
    wanted.write_text(json.dumps(object_of_rule(acl("planned"))) + "\n")
    planned = ("plan", *place, "--want", wanted, "--journal", tmp_path / "journal", "--out", plan)
    closed = ("--no-allow-everyone-if-no-acl-found",)
    owned(BROKER)
    aclog("acls", "add", *place, *ALLOWED).ok()
    assert aclog(*planned, *closed).code == 1
    with our_authorizer(connect) as ours:
        owned(KRAFT)
        before = store.load().resources
        assert SAID in ours_create(ours, [acl("u")])[0]
        (removed,) = ours.delete_acls(ADMIN, [AclBindingFilter()]).result(SECONDS)
        assert SAID in str(removed.error)
        assert len(rules_of(ours)) == 1
    for command in (("acls", "add"), ("acls", "remove", "--force")):
        changed = aclog(*command, *place, *ALLOWED)
        assert changed.code != 0
        assert SAID in changed.err
    applied = aclog("apply", plan, "--yes")
    assert applied.code == 2
    assert SAID in applied.err
    assert not (tmp_path / "journal").exists()
    again = aclog(*planned, *closed)
    assert again.code == 2
    assert SAID in again.err
    assert store.load().resources == before
    listed = aclog("acls", "list", *place).ok()
    assert "User:a" in listed.out
    assert SAID in listed.err


def test_a_node_waits_for_a_connection_that_is_lost_for_a_moment(owned, connect, monkeypatch):
    owned(BROKER)
    get, lost = ZkClient.get, []

    def losing(client, path):
        if path == "/controller" and not lost:
            lost.append(path)
            raise DisconnectedError("for a moment")
        return get(client, path)

    with our_authorizer(connect) as ours:
        monkeypatch.setattr(ZkClient, "get", losing)
        assert ours_create(ours, [acl("u")]) == [None]
        assert lost
