"""Plans for a ZooKeeper: each resource changes at once; under a second writer, and a server that is killed."""

import json
import threading
import time
from contextlib import closing

import pytest

from aclog.authorizer.acl import object_of_rule, resource_of
from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import MetadataError
from aclog.planning.plan import Batching, PlaceAddress, PlaceKind, parse_plan
from aclog.targets.opening import PlaceSettings, find_place
from aclog.targets.zookeeper import ZooKeeperPlace, open_zookeeper_place
from aclog.zookeeper.client import StoreError, zk_settings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.znodes import entry_of, resource_path
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.chroots import made_chroot
from tests.support.zookeeper.differential import rules_of
from tests.support.zookeeper.impatience import impatient
from tests.support.zookeeper.server import ZooKeeperServer

pytestmark = pytest.mark.server

DENY = AclPermissionType.DENY
CLOSED = "--no-allow-everyone-if-no-acl-found"


class Source:
    """Rules for a ZooKeeper, with their journal."""

    def __init__(self, home, connect):
        home.mkdir(exist_ok=True)
        self.rules, self.journal, self.plan_file = home / "rules.jsonl", home / "journal", home / "PLAN"
        self.place = ("--authorizer-properties", f"zookeeper.connect={connect}")

    def plan(self, *acls, flags=(CLOSED,)):
        self.rules.write_text("".join(f"{json.dumps(object_of_rule(each))}\n" for each in acls))
        return aclog(
            "plan", *self.place, "--want", self.rules, "--journal", self.journal, "--out", self.plan_file, *flags
        )

    def apply(self, *flags):
        return aclog("apply", self.plan_file, "--yes", *flags)

    def make(self, *acls):
        assert self.plan(*acls).code == 1
        self.apply().ok()


@pytest.fixture
def source(tmp_path, connect):
    return Source(tmp_path, connect)


@pytest.fixture
def client(connect):
    with closing(open_client(zk_settings({"zookeeper.connect": connect}))) as found:
        yield found


@pytest.mark.tier("test")
def test_planned_applied_and_rolled_back_as_the_real_authorizer_sees_it(source, real, ours):
    first = [acl("a"), acl("a", "User:b"), acl("pre", pattern_type=PatternType.PREFIXED, permission_type=DENY)]
    source.make(*first)
    wait_until(lambda: rules_of(ours) == set(first))
    wait_until(lambda: real.acls() == set(first))
    second = [acl("a", "User:c"), first[0], acl("b")]
    source.make(*second)
    wait_until(lambda: rules_of(ours) == real.acls() == set(second))
    back = aclog("rollback", *source.place, "--journal", source.journal, "--out", source.plan_file, CLOSED)
    assert back.code == 1
    source.apply().ok()
    wait_until(lambda: rules_of(ours) == set(first))
    assert source.plan(*first).code == 0


def test_what_changes_on_a_resource_becomes_visible_at_once(source, store):
    source.make(acl("a"), acl("a", "User:b"), acl("z"))
    source.plan(acl("a", "User:c"), acl("a", "User:d", permission_type=DENY), acl("z", "User:z"))
    plan = parse_plan(source.plan_file.read_bytes().splitlines(), "PLAN")
    assert plan.place.batching is Batching.RESOURCE
    assert {step.acl.resource_name: step.batch for step in plan.steps} == {"a": 0, "z": 1}
    path = resource_path(acl_resource("a"))
    before = store.client.get(path).version
    source.apply().ok()
    assert store.client.get(path).version == before + 1, "one write"


def acl_resource(name):
    return resource_of(acl(name))


@pytest.mark.tier("test")
def test_a_second_writer_loses_nothing_and_nothing_of_it_is_lost(source, connect, store):
    """It adds and removes its own rules on the same resources while the plan is applied."""
    names = [f"t{number}" for number in range(60)]
    source.make(*(acl(name) for name in names))
    assert source.plan(*(acl(name, "User:new") for name in names), flags=(CLOSED, "--max-deletes", "100%")).code == 1
    stop, rounds = threading.Event(), []

    def write():
        while not stop.is_set():
            for name in names:
                entry = entry_of(acl(name, f"User:other{len(rounds)}"))
                store.update(resource_path(acl_resource(name)), lambda held, entry=entry: held | {entry})
            rounds.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(rounds) > 0)
        source.apply().ok()
    finally:
        stop.set()
        writer.join()
    held = {entry.on(node.pattern) for node in store.load().resources.values() for entry in node.entries}
    expected = {acl(name, "User:new") for name in names}
    expected |= {acl(name, f"User:other{number}") for name in names for number in range(len(rounds))}
    assert held == expected


def test_killed_and_started_again_it_goes_on_where_it_ended(tmp_path, monkeypatch):
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        source = Source(tmp_path, made_chroot(f"{server.connect}/chroot"))
        wanted = [acl(f"t{number}") for number in range(8)]
        assert source.plan(*wanted).code == 1
        address = parse_plan(source.plan_file.read_bytes().splitlines(), "PLAN").place.address
        written = []
        write = ZooKeeperPlace.write

        def killing(place, piece):
            if len(written) == 3:
                server.kill()
            written.append(piece)
            write(place, piece)

        with monkeypatch.context() as patched, impatient():
            patched.setattr(ZooKeeperPlace, "write", killing)
            stopped = source.apply()
        assert stopped.code == 2
        assert "stopped after 3 of 8 steps; the journal lists the steps that may have been made" in stopped.complaint
        server.start()
        assert "(3 steps were already done)" in source.apply("--resume").ok().out
        found = find_place(address, PlaceSettings(), source.journal, print)
        assert len(found.holdings.owned) == len(found.state.contents) == 8


def test_the_cluster_id_is_its_identity(source, connect, client):
    source.make(acl("a"))
    client.ensure("/cluster")
    client._kazoo.create("/cluster/id", b'{"version":"1","id":"abc"}')
    with open_zookeeper_place({"zookeeper.connect": connect}, print) as place:
        assert place.identity() == "abc"
    source.make(acl("b"))
    client._kazoo.set("/cluster/id", b'{"version":"1","id":"another"}')
    assert "expected the same target" in source.plan(acl("c")).complaint
    client._kazoo.set("/cluster/id", b"{}")
    assert source.plan(acl("c")).code == 2


def test_without_a_cluster_id_it_is_known_by_when_its_rules_began(source, connect, tmp_path, client):
    source.make(acl("a"))
    assert source.plan(acl("a"), acl("b")).code == 1
    client._kazoo.delete("/kafka-acl", recursive=True)
    time.sleep(0.01)  # another millisecond
    other = Source(tmp_path / "other", connect)
    other.make(acl("a"))
    assert "not the target that the plan was made for" in source.apply().complaint
    assert source.plan(acl("a"), acl("b")).code == 1
    source.apply().ok()


def test_an_apply_that_began_before_there_was_a_cluster_id_goes_on(source, client, monkeypatch):
    source.make(acl("a"))
    assert source.plan(acl("a"), acl("b"), acl("c")).code == 1
    write, written = ZooKeeperPlace.write, []

    def failing(place, piece):
        if written:
            raise StoreError("gone")
        written.append(piece)
        write(place, piece)

    monkeypatch.setattr(ZooKeeperPlace, "write", failing)
    assert "stopped after 1 of 2 steps" in source.apply().complaint
    monkeypatch.undo()
    client.ensure("/cluster")
    client._kazoo.create("/cluster/id", b'{"version":"1","id":"abc"}')
    assert "(1 steps were already done)" in source.apply("--resume").ok().out


def test_more_rules_than_a_server_takes_at_once_are_told_from_a_lost_connection(source):
    assert source.plan(*(acl("a", f"User:{'u' * 200}{number}") for number in range(4_000))).code == 1
    with impatient():
        stopped = source.apply()
    assert "/kafka-acl/Topic/a: the connection is lost when 1," in stopped.complaint
    assert "more than its jute.maxbuffer" in stopped.complaint


def test_what_kafka_3_9_cannot_hold_is_refused_before_anything_is_written(source, ours, monkeypatch):
    source.make(acl("a"))
    old = ("--authorizer-properties", "inter.broker.protocol.version=1.1")
    prefixed = acl("p", pattern_type=PatternType.PREFIXED)
    before = source.journal.read_bytes()
    for acls, flags, why in (
        ((acl("a"), acl("b"), acl("a/b")), (CLOSED,), "Kafka 3.9 cannot hold it: expected no /"),
        ((acl("a"), acl("b"), prefixed), (CLOSED, *old), "requires inter.broker.protocol.version of 2.0-IV1"),
    ):
        refused = source.plan(*acls, flags=flags)
        assert refused.code == 2
        assert why in refused.complaint
        assert not source.plan_file.exists()
        with monkeypatch.context() as patched:  # a plan that was made before that was known
            patched.setattr(ZooKeeperPlace, "check", lambda *_: None)
            assert source.plan(*acls, flags=flags).code == 1
        assert why in source.apply().complaint
        assert source.journal.read_bytes() == before, "not even begun"
    assert rules_of(ours) == {acl("a")}


def test_a_rule_that_kafka_3_9_does_not_read_is_not_taken_for_there(source, store, ours):
    group = acl("g", resource_type=ResourceType.GROUP, permission_type=DENY)
    legacy = "/kafka-acl/ConsumerGroup/g"
    store.update(legacy, lambda held: held | {entry_of(group)})
    refused = source.plan(group)
    assert refused.code == 2
    assert f"{legacy}: ACLs of a group in a legacy directory" in refused.complaint
    store.update(legacy, lambda _: frozenset())
    source.make(group)
    wait_until(lambda: rules_of(ours) == {group})
    assert store.client.get(resource_path(resource_of(group))) is not None


def test_no_password_is_in_a_plan(source):
    source.plan(acl("a"), flags=(CLOSED, "--authorizer-properties", "zookeeper.ssl.keystore.password=tell-nobody"))
    assert "tell-nobody" not in source.plan_file.read_text()
    place = parse_plan(source.plan_file.read_bytes().splitlines(), "PLAN").place.address
    assert place.kind is PlaceKind.ZOOKEEPER
    assert "tell-nobody" not in repr(PlaceAddress(kind=place.kind, value="", properties={"a.password": "tell-nobody"}))


def test_nobody_listens(source):
    place = ("--authorizer-properties", "zookeeper.connect=127.0.0.1:1")
    flags = (*place, "--authorizer-properties", "zookeeper.connection.timeout.ms=500")
    assert aclog("plan", *flags, "--change", source.rules, "--journal", source.journal).code == 2
    with (
        pytest.raises(MetadataError),
        open_zookeeper_place({"zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": "500"}, print),
    ):
        pass  # fmt: skip
