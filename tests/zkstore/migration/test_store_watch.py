"""Watched copies of a store: after a catch-up the copy equals the store, whatever happens in between."""

import random
import threading

import pytest
from attrs import define
from kazoo.security import CREATOR_ALL_ACL

from aclog.zookeeper.client import StoreError, ZkSettings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.migration import StoreWatch
from tests.scenarios.migration.estate import Changes, fill, in_state, in_store
from tests.support.processes.waiting import SECONDS
from tests.support.zookeeper.server import expire, zookeeper_client

RULE = b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","host":"*","operation":"Read"}]}'


@pytest.fixture
def client(connect):
    client = open_client(ZkSettings(connect=connect, in_flight=64))
    yield client
    client.close()


@pytest.fixture
def plain(connect, client):
    """A kazoo client of the same store."""
    with zookeeper_client(connect) as found:
        yield found


def known(watch):
    watch.catch_up(SECONDS)
    return in_state(watch.state().state)


def test_new_entries_in_an_empty_store_are_seen(client, plain):
    watch = StoreWatch(client)
    assert known(watch) == set()
    assert not watch.has_directories()
    fill(plain, acls=20, users=3, tokens=3)
    assert known(watch) == in_store(plain)
    assert watch.has_directories()
    assert watch.catch_up(SECONDS) == 0


def test_deleted_nodes_and_directories_are_forgotten(client, plain):
    fill(plain, acls=20, users=3, tokens=3)
    watch = StoreWatch(client)
    known(watch)
    plain.delete("/config/users/user%200")
    plain.delete("/delegation_token", recursive=True)
    plain.delete("/kafka-acl", recursive=True)
    assert known(watch) == in_store(plain)
    plain.ensure_path("/kafka-acl/Topic")
    plain.create("/kafka-acl/Topic/back", RULE)
    assert known(watch) == in_store(plain)


def test_unknown_directories_are_reported_until_deleted(client, plain):
    watch = StoreWatch(client)
    for path in ("/kafka-acl/Nonsense/a", "/kafka-acl-extended/suffixed/Topic/a"):
        plain.ensure_path(path)
    known(watch)
    assert [each.path for each in watch.state().left_out] == ["/kafka-acl-extended/suffixed", "/kafka-acl/Nonsense"]
    plain.delete("/kafka-acl/Nonsense", recursive=True)
    known(watch)
    assert [each.path for each in watch.state().left_out] == ["/kafka-acl-extended/suffixed"]


def test_an_expired_session_loses_nothing(client, connect, plain):
    fill(plain, acls=20, users=3, tokens=3)
    plain.ensure_path("/kafka-acl/Topic")
    watch = StoreWatch(client)
    known(watch)
    for number in range(3):
        expire(connect, client.session)
        plain.create(f"/kafka-acl/Topic/after-{number}", RULE)
        assert known(watch) == in_store(plain)


def test_an_unauthorized_node_is_an_immediate_error(client, plain):
    fill(plain, acls=4, users=1, tokens=1)
    plain.add_auth("digest", "owner:secret")
    plain.create("/config/users/own", b"{}", acl=list(CREATOR_ALL_ACL))
    with pytest.raises(StoreError, match="/config/users/own: not authorized"):
        StoreWatch(client).catch_up(SECONDS)


@define
class Meddler:
    """A client that runs one hook right before znodes are read, and the next one right after."""

    client: object
    hooks: list

    def __getattr__(self, name):
        return getattr(self.client, name)

    def get_many(self, paths, watch=None):
        self._meddle()
        yield from self.client.get_many(paths, watch)
        self._meddle()

    def _meddle(self):
        if self.hooks:
            self.hooks.pop(0)()


def test_a_node_deleted_before_its_read_and_recreated_after_is_seen(client, plain):
    """It is listed before and after, but has no watch in between."""
    path = "/kafka-acl/Topic/t"
    plain.ensure_path("/kafka-acl/Topic")
    plain.create(path, RULE)
    meddler = Meddler(client, [lambda: plain.delete(path), lambda: plain.create(path, RULE)])
    assert known(StoreWatch(meddler)) == in_store(plain)
    assert not meddler.hooks
    assert len(in_store(plain)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_catch_up_ends_during_changes_and_is_exact_afterwards(client, connect, plain, seed):
    fill(plain, acls=200, users=20, tokens=20)
    watch, numbers = StoreWatch(client), random.Random(seed)
    with Changes(connect, seed=seed) as changes:
        while changes.done < 400:
            watch.catch_up(SECONDS)
            threading.Event().wait(numbers.uniform(0, 0.02))
    assert known(watch) == in_store(plain)
