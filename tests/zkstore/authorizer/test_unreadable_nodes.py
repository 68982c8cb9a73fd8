"""Nodes that cannot be decoded: Kafka may ignore their ACLs; ours does not start, or keeps the last known ACLs."""

import pytest

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.metalog.errors import DecodeError
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.differential import EVERYTHING, exactly, our_authorizer, ours_create, ours_delete, rules_of
from tests.support.zookeeper.real_acl_authorizer import RealError
from tests.support.zookeeper.server import zookeeper_client
from tests.zkstore.authorizer.test_faults import rule

PATH = "/kafka-acl/Topic/orders"
GOOD = b'{"version":1,"acls":[{"principal":"User:u1","permissionType":"Allow","host":"*","operation":"Read"}]}'
UNKNOWN_OPERATION = GOOD.replace(b"Read", b"Fly").replace(b"Allow", b"Deny")

BAD = {
    "no-json": (b"{", "no ACLs"),
    "no-utf-8": (GOOD.replace(b"u1", b"\xff"), "no ACLs"),
    "other-version": (GOOD.replace(b":1,", b":2,"), "throws"),
    "no-object": (b"[]", "throws"),
    "no-colon": (GOOD.replace(b"User:", b"User"), "throws"),
    "a-list-of-principals": (GOOD.replace(b'"principal":"User:u1"', b'"principals":["User:u1"]'), "throws"),
    "unknown-operation": (UNKNOWN_OPERATION, "an ACL that never matches"),
    "unknown-permission": (GOOD.replace(b"Allow", b"Maybe"), "an ACL that never matches"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_node_prevents_the_start(java, connect, name):
    data, theirs = BAD[name]
    with zookeeper_client(connect.partition("/")[0]) as client:
        client.create(f"/{connect.partition('/')[2]}{PATH}", data, makepath=True)
    with pytest.raises(DecodeError, match=f"^{PATH}: "):
        our_authorizer(connect).__enter__()
    try:
        java.configure({"zookeeper.connect": connect})
    except RealError:
        assert theirs == "throws"
        return
    assert len(java.acls()) == (theirs != "no ACLs")
    java.close()


@pytest.mark.parametrize("name", BAD)
def test_a_node_that_becomes_unreadable_keeps_its_last_acls(connect, name, caplog):
    with our_authorizer(connect) as ours, zookeeper_client(connect) as client:
        assert ours_create(ours, [rule(1), rule(1, "pay")]) == [None, None]
        client.set(PATH, BAD[name][0])
        client.create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequence=True)
        wait_until(lambda: ours.stale is not None, "the reported problem")
        assert ours.stale.startswith(f"{PATH}: ")
        assert rules_of(ours) == {rule(1), rule(1, "pay")}
        assert "keeping its last known ACLs" in caplog.text
        # the node is not overwritten, and other resources still work
        (error,) = ours_create(ours, [rule(2)])
        assert error.startswith(f"{PATH}: ")
        assert ours_delete(ours, [exactly(rule(1))]) == [error]
        assert client.get(PATH)[0] == BAD[name][0]
        assert ours_create(ours, [rule(2, "pay")]) == [None]
        # a reload keeps the last known ACLs too, until the node is repaired
        client.create("/kafka-acl-changes/acl_changes_", b"garbage", sequence=True)
        wait_until(lambda: "reloading all ACLs" in caplog.text, "a reload")
        assert rules_of(ours) == {rule(1), rule(1, "pay"), rule(2, "pay")}
        client.set(PATH, GOOD.replace(b"u1", b"u3"))
        client.create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequence=True)
        wait_until(lambda: ours.stale is None, "the recovery")
        assert rules_of(ours) == {rule(3), rule(1, "pay"), rule(2, "pay")}


def test_unknown_directories_are_ignored_and_logged(connect, caplog):
    with zookeeper_client(connect.partition("/")[0]) as client:
        client.create(f"/{connect.partition('/')[2]}/kafka-acl/Planet/x", GOOD, makepath=True)
    with our_authorizer(connect) as ours:
        assert rules_of(ours) == set()
        assert ours.stale is None
    assert "/kafka-acl/Planet: not a resource type of Kafka" in caplog.text


@pytest.mark.parametrize("directory", ["ConsumerGroup", "CONSUMER_GROUP"])
def test_acls_in_legacy_group_directories_are_in_force(connect, directory):
    """An ACL in both directories is one ACL, and deleting it deletes both copies."""
    group = ResourcePattern(resource_type=ResourceType.GROUP, name="g")
    asked = Action(operation=AclOperation.READ, resource_pattern=group)
    with our_authorizer(connect) as ours, zookeeper_client(connect) as client:
        old = f"/kafka-acl/{directory}/g"
        client.create(old, GOOD, makepath=True)
        client.create("/kafka-acl-changes/acl_changes_", f"{directory}:g".encode(), sequence=True)
        wait_until(lambda: ours.acl_count() == 1, "the rule")
        context = RequestContext(principal="User:u1", host="10.0.0.1")
        assert ours.authorize(context, [asked]) == [AuthorizationResult.ALLOWED]
        (found,) = rules_of(ours)
        assert ours_create(ours, [found]) == [None]
        assert ours.acl_count() == 1
        client.delete(old)
        client.create("/kafka-acl-changes/acl_changes_", b"GROUP:g", sequence=True)
        with our_authorizer(connect) as another:
            assert rules_of(another) == {found}
        client.create(old, GOOD)
        assert ours_delete(ours, [EVERYTHING]) == [{found}]
        client.create("/kafka-acl-changes/acl_changes_", b"GROUP:g", sequence=True)
        wait_until(lambda: ours.acl_count() == 1, "the ACL in the legacy directory")
        assert ours_delete(ours, [EVERYTHING]) == [{found}]
        assert client.exists(old) is None
