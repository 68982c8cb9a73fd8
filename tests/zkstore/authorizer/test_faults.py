"""Concurrent writers, expired sessions, server outages and purged events: no change is lost."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.metalog.errors import ConfigError
from aclog.zookeeper.client import DisconnectedError, StoreError
from aclog.zookeeper.znodes import PREFIXED_TREE, TREES, entry_of, resource_path
from tests.support.builders.acls import acl
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.differential import ADMIN, exactly, our_authorizer, ours_create, ours_delete, rules_of
from tests.support.zookeeper.impatience import impatient
from tests.support.zookeeper.real_acl_authorizer import RealAclAuthorizer
from tests.support.zookeeper.server import ZooKeeperServer, expire, zookeeper_client

ORDERS = ResourcePattern(resource_type=ResourceType.TOPIC, name="orders")
PATH = resource_path(ORDERS)


def rule(number, name="orders", pattern_type=PatternType.LITERAL):
    return acl(name, f"User:u{number}", pattern_type=pattern_type)


@pytest.fixture
def own_zookeeper(tmp_path):
    """A server that the test can stop and kill."""
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        yield server


def test_many_writers_on_one_resource_lose_nothing(connect):
    """Three of ours and the real one concurrently add ACLs to one resource; ours delete every second one again."""
    with RealAclAuthorizer({"zookeeper.connect": connect}) as real, ThreadPoolExecutor(4) as threads:

        def writer(number):
            with our_authorizer(connect) as mine:
                for step in range(15):
                    assert ours_create(mine, [rule(f"{number}-{step}")]) == [None]
                    if step % 2:
                        assert ours_delete(mine, [exactly(rule(f"{number}-{step}"))]) == [{rule(f"{number}-{step}")}]

        def real_writer():
            for step in range(15):
                created = real.create([rule(f"real-{step}")])
                while created != [None]:  # Kafka gives up after 11 attempts
                    assert "maximum" in created[0]
                    created = real.create([rule(f"real-{step}")])

        work = [threads.submit(writer, number) for number in range(3)]
        real_writer()
        for done in work:
            done.result()
        expected = {rule(f"{number}-{step}") for number in range(3) for step in range(0, 15, 2)}
        expected |= {rule(f"real-{step}") for step in range(15)}
        with our_authorizer(connect) as reader:
            assert rules_of(reader) == expected
        wait_until(lambda: real.acls() == expected, "the view of the real one")


def test_a_conflicting_write_is_retried_on_the_current_acls(store):
    """Another client writes between the read and the write of each of the first three attempts."""
    store.create_paths()
    met = []

    def change(held):
        if len(met) < 3:
            met.append(len(held))
            store.update(PATH, lambda others: others | {entry_of(rule(f"other-{len(met)}"))})
        return held | {entry_of(rule("mine"))}

    after = store.update(PATH, change)
    assert met == [0, 1, 2]
    assert {entry.principal for entry in after.entries} == {"User:umine", *(f"User:uother-{n}" for n in (1, 2, 3))}
    assert store.read(ORDERS) == after


def test_known_acls_may_be_stale(store):
    store.create_paths()
    old = store.update(PATH, lambda held: held | {entry_of(rule(1))})
    store.update(PATH, lambda held: held | {entry_of(rule(2))})
    store.update(PATH, lambda held: held - {entry_of(rule(1))})
    for known in (old, None):
        after = store.update(PATH, lambda held: held | {entry_of(rule(1))}, last_read=known)
        assert {entry.principal for entry in after.entries} == {"User:u1", "User:u2"}
    gone = store.update(PATH, lambda held: held - {entry_of(rule(1)), entry_of(rule(2))}, last_read=old)
    assert gone.entries == frozenset()
    assert store.client.get(PATH) is None
    again = store.update(PATH, lambda held: held | {entry_of(rule(3))}, last_read=old)
    assert store.read(ORDERS) == again


def test_too_many_conflicts_are_an_error(store):
    store.create_paths()
    numbers = iter(range(1000))

    def change(held):
        store.client.commit([_written(store, rule(f"other-{next(numbers)}"))])
        return held | {entry_of(rule("mine"))}

    with pytest.raises(StoreError, match=r"orders: not changed in 30 attempts: .*(BadVersion|NodeExists)"):
        store.update(PATH, change)
    assert "User:umine" not in {entry.principal for entry in store.read(ORDERS).entries}


def _written(store, acl):
    from aclog.zookeeper.client import CreateNode, SetNode
    from aclog.zookeeper.znodes import encode_acls

    there = store.client.get(PATH)
    data = encode_acls([entry_of(acl)])
    return SetNode(path=PATH, data=data) if there else CreateNode(path=PATH, data=data)


def test_no_change_is_missed_when_a_session_expires(connect, real):
    with our_authorizer(connect) as ours:
        assert real.create([rule(1)]) == [None]
        wait_until(lambda: rules_of(ours) == {rule(1)}, "the first rule")
        for number in range(2, 5):
            old = ours._store.client.session[0]
            expire(connect.partition("/")[0], ours._store.client.session)
            assert real.create([rule(number)]) == [None]
            assert real.create([rule(number, "pay.", PatternType.PREFIXED)]) == [None]
            wait_until(lambda number=number: len(rules_of(ours)) == 2 * number - 1, "the changes of the meantime")
            wait_until(lambda: ours.stale is None, "a new session")
            assert ours._store.client.session[0] != old
            assert ours_create(ours, [rule(number)]) == [None]
        assert rules_of(ours) == real.acls()


@pytest.mark.slow(9)
def test_server_restarts_during_writes_lose_nothing(own_zookeeper):
    """Ours writes continuously while the server is stopped, killed and paused; the real one follows."""
    connect = own_zookeeper.connect
    timeouts = {"zookeeper.session.timeout.ms": "8000", "zookeeper.connection.timeout.ms": "8000"}
    properties = {"zookeeper.connect": connect, **timeouts}
    with RealAclAuthorizer(properties) as real, our_authorizer(connect, timeouts) as ours:
        acknowledged, stop, failed = set(), threading.Event(), []

        def write():
            number = 0
            while not stop.is_set():
                number += 1
                made = rule(number, f"t{number % 5}")
                (error,) = ours_create(ours, [made])
                if error is None:
                    acknowledged.add(made)
                else:
                    failed.append(error)
                    time.sleep(0.05)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for end in (own_zookeeper.stop, own_zookeeper.kill):
                before = len(acknowledged)
                wait_until(lambda before=before: len(acknowledged) > before + 20, "writes before")
                end()
                wait_until(lambda: ours.stale is not None, "the reported loss")
                assert "the connection is lost" in ours.stale
                own_zookeeper.start()
                wait_until(lambda: ours.stale is None, "the reconnect")
            own_zookeeper.pause()
            own_zookeeper.resume()
            before = len(acknowledged)
            wait_until(lambda: len(acknowledged) > before + 20, "writes after")
        finally:
            stop.set()
            writer.join()
        assert acknowledged <= rules_of(ours)
        wait_until(lambda: real.acls() == rules_of(ours), "one view")
        with our_authorizer(connect) as another:
            assert rules_of(another) == rules_of(ours)


def test_the_last_known_acls_are_in_force_during_an_outage(own_zookeeper, caplog):
    with our_authorizer(own_zookeeper.connect) as ours:
        assert ours_create(ours, [rule(1)]) == [None]
        own_zookeeper.stop()
        wait_until(lambda: ours.stale is not None, "the reported loss")
        asked = Action(operation=AclOperation.READ, resource_pattern=ORDERS)
        assert ours.authorize(RequestContext(principal="User:u1", host="10.0.0.1"), [asked]) == [
            AuthorizationResult.ALLOWED
        ]
        assert ours.authorize(RequestContext(principal="User:u2", host="10.0.0.1"), [asked]) == [
            AuthorizationResult.DENIED
        ]
        with impatient():
            (error,) = ours_create(ours, [rule(2)])
        assert "the connection is lost" in error
        assert rules_of(ours) == {rule(1)}
        own_zookeeper.start()
        wait_until(lambda: ours.stale is None, "the reconnect")
        assert ours_create(ours, [rule(2)]) == [None]
    assert "authorizing with the last known ACLs" in caplog.text


def test_it_does_not_start_without_zookeeper():
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(StoreError, match=r"ZooKeeper at 127\.0\.0\.1:\d+: no connection within 0\.5 s"):
        our_authorizer(nobody, {"zookeeper.connection.timeout.ms": "500"}).__enter__()


@pytest.mark.parametrize("purged", [True, False], ids=["events-purged", "events-there"])
def test_changes_during_a_disconnect_are_caught_up(connect, real, purged):
    """Purged events are noticed by the gap in their sequence numbers."""
    with our_authorizer(connect) as ours:
        assert not any(ours_create(ours, [rule(1), rule(2), rule(1, "pay.", PatternType.PREFIXED)]))
        wait_until(lambda: len(real.acls()) == 3, "the real one")
        with ours._lock:  # the follower cannot update the cache, as if it were disconnected
            assert real.delete([exactly(rule(1))]) == [{rule(1)}]
            assert real.create([rule(3), rule(3, "pay.", PatternType.PREFIXED)]) == [None, None]
            if purged:
                with zookeeper_client(connect) as client:
                    for tree in TREES:
                        for name in client.get_children(tree.changes):
                            client.delete(f"{tree.changes}/{name}")
            expire(connect.partition("/")[0], ours._store.client.session)
        wait_until(lambda: rules_of(ours) == real.acls(), "the same view")
        assert rules_of(ours) == {
            rule(2), rule(3), rule(1, "pay.", PatternType.PREFIXED), rule(3, "pay.", PatternType.PREFIXED)
        }  # fmt: skip


def test_malformed_events_cause_a_reload(connect, real, caplog):
    with our_authorizer(connect) as ours, zookeeper_client(connect) as client:
        (tree, _) = TREES
        data = b'{"version":1,"acls":[{"principal":"User:u7","permissionType":"Allow","host":"*","operation":"Read"}]}'
        client.create(f"{tree.root}/Topic/orders", data)
        client.create(f"{tree.changes}/acl_changes_", b"\xffgarbage", sequence=True)
        wait_until(lambda: rules_of(ours) == {rule(7)}, "the ACL without an event")
        client.create(f"{PREFIXED_TREE.changes}/acl_changes_", b'{"version":2}', sequence=True)
        assert real.create([rule(8)]) == [None]
        wait_until(lambda: rules_of(ours) == {rule(7), rule(8)}, "the next rule")
        assert ours.stale is None
    assert "reloading all ACLs" in caplog.text


def test_events_of_older_kafka_releases_are_processed(connect):
    with our_authorizer(connect) as ours, zookeeper_client(connect) as client:
        (tree, _) = TREES
        data = b'{"version":1,"acls":[{"principal":"User:u7","permissionType":"Allow","host":"*","operation":"Read"}]}'
        for number, (kind, event) in enumerate(
            [("Topic", b"Topic:t"), ("Group", b"Group:t"), ("Group", b"GROUP:u")], 1
        ):
            client.create(f"{tree.root}/{kind}/{event.decode().partition(':')[2]}", data)
            client.create(f"{tree.changes}/acl_changes_", event, sequence=True)
            wait_until(lambda number=number: len(rules_of(ours)) == number, "the rule")


def test_expired_change_events_are_deleted(connect, store, monkeypatch):
    store.create_paths()
    for number in range(5):
        store.update(PATH, lambda held, number=number: held | {entry_of(rule(number))})
    monkeypatch.setattr("aclog.zookeeper.acl_store.CHANGE_EXPIRATION_MS", -1_000_000)
    monkeypatch.setattr("aclog.zookeeper.acl_store._PURGE_INTERVAL_S", 0)
    with our_authorizer(connect) as ours:
        store.update(PATH, lambda held: held | {entry_of(rule(5))})
        wait_until(lambda: not store.client.children("/kafka-acl-changes").names, "the purge")
        store.update(PATH, lambda held: held | {entry_of(rule(6))})
        wait_until(lambda: len(rules_of(ours)) == 7, "a rule after the purge")


def test_a_deletion_whose_response_was_lost_is_reported(connect, ours, monkeypatch):
    """The first response is lost after the deletion: the second attempt finds no ACL, but the deletion is reported."""
    assert ours_create(ours, [rule(1), rule(2)]) == [None, None]
    client, lost = ours._store.client, []
    commit = type(client).commit

    def losing(self, operations):
        done = commit(self, operations)
        if not lost:
            lost.append(done)
            raise DisconnectedError("the response is lost")
        return done

    monkeypatch.setattr(type(client), "commit", losing)
    assert ours_delete(ours, [exactly(rule(1))]) == [{rule(1)}]
    assert rules_of(ours) == {rule(2)}
    lost.clear()
    assert ours_create(ours, [rule(3)]) == [None]
    assert rules_of(ours) == {rule(2), rule(3)}


def test_changes_are_rejected_before_configure_and_after_close(connect):
    from aclog.zookeeper.authorizer import AclAuthorizer

    authorizer = AclAuthorizer()
    with pytest.raises(ConfigError, match="not configured"):
        authorizer.create_acls(ADMIN, [rule(1)])
    authorizer.configure({"zookeeper.connect": connect})
    with pytest.raises(ConfigError, match="already configured"):
        authorizer.configure({"zookeeper.connect": connect})
    authorizer.close()
    with pytest.raises(ConfigError, match="closed"):
        authorizer.delete_acls(ADMIN, [AclBindingFilter()])
