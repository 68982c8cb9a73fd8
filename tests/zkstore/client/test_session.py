"""Client: multiRead, transactions, lost connections and authorization errors."""

from contextlib import closing, suppress

import pytest
from kazoo.security import make_digest_acl

from aclog.metalog.errors import ConfigError
from aclog.zookeeper.client import (
    ConflictError,
    CreateNode,
    DeleteNode,
    DisconnectedError,
    SetNode,
    StoreError,
    zk_settings,
)
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.session import MAX_PATHS, MultiRead, portions
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.server import zookeeper_client


@pytest.fixture
def client(connect):
    found = open_client(zk_settings({"zookeeper.connect": connect}))
    yield found
    found.close()


def contents(client, paths):
    return [(path, None if node is None else (node.data, node.version)) for path, node in client.get_many(paths)]


@pytest.mark.parametrize("request_type", [MultiRead.type, 99], ids=["multi-read", "a server without multi-read"])
def test_reading_many_nodes_equals_single_reads(connect, monkeypatch, request_type):
    """An opcode that no server supports stands in for multiRead on a server before 3.6."""
    monkeypatch.setattr(MultiRead, "type", request_type)
    with closing(open_client(zk_settings({"zookeeper.connect": connect}))) as client:
        assert client._multi_read == (request_type == 22)
        check_many_nodes(client)


def test_a_reconnect_to_a_server_without_multi_read(client, monkeypatch):
    client.commit([CreateNode(path="/a", data=b"1")])
    monkeypatch.setattr(MultiRead, "type", 99)
    with pytest.raises(DisconnectedError, match="UnimplementedError"):
        contents(client, ["/a", "/b"])
    answers = []

    def answered():
        with suppress(DisconnectedError):
            answers.append(contents(client, ["/a", "/b"]))
        return answers

    wait_until(answered, "a response on the next connection")
    assert answers == [[("/a", (b"1", 0)), ("/b", None)]]


def check_many_nodes(client):
    paths = [f"/node-é{number}" for number in range(3 * MAX_PATHS)]
    for number, path in enumerate(paths):
        if number % 3:
            client.commit([CreateNode(path=path, data=b"x" * (number * 7))])
    client.commit([SetNode(path=paths[1], data=b"")])
    expected = [(path, None if (node := client.get(path)) is None else (node.data, node.version)) for path in paths]
    assert sum(found is None for _, found in expected) == MAX_PATHS
    assert contents(client, paths) == expected
    assert contents(client, paths[1:2]) == expected[1:2]
    assert contents(client, []) == []


def test_an_unauthorized_node_is_an_error_with_its_path(client, connect):
    place = connect.partition("/")
    with zookeeper_client(place[0]) as plain:
        plain.create(f"/{place[2]}/secret", b"x", acl=[make_digest_acl("ann", "pw", all=True)])
    client.ensure("/open")
    with pytest.raises(StoreError, match="/secret: not authorized"):
        client.get("/secret")
    with pytest.raises(StoreError, match="/secret: not authorized"):
        contents(client, ["/open", "/secret", "/open"])


def test_a_transaction_is_atomic(client):
    assert client.commit([CreateNode(path="/a", data=b"1"), CreateNode(path="/s", data=b"", sequence=True)]) == [0, 0]
    for wrong in (SetNode(path="/a", data=b"", version=7), CreateNode(path="/a", data=b""), DeleteNode(path="/none")):
        with pytest.raises(ConflictError, match=wrong.path):
            client.commit([SetNode(path="/a", data=b"2"), wrong])
        assert client.get("/a").data == b"1"
    assert client.commit([SetNode(path="/a", data=b"2", version=0), DeleteNode(path="/s0000000001")]) == [1, 0]


def test_secure_acls_need_an_authenticated_client(connect):
    with pytest.raises(ConfigError, match="needs an authenticated client"):  # already for the chroot
        open_client(zk_settings({"zookeeper.connect": f"{connect}/new", "zookeeper.set.acl": "true"}))


def test_a_closed_client_raises(connect):
    client = open_client(zk_settings({"zookeeper.connect": connect}))
    client.close()
    for call in (lambda: client.get("/a"), lambda: contents(client, ["/a", "/b"]), lambda: client.children("/")):
        with pytest.raises(DisconnectedError, match="the connection is lost"):
            call()


def test_requests_stay_small():
    assert [len(portion) for portion in portions(map(str, range(150)))] == [64, 64, 22]
    assert [len(portion) for portion in portions(["a" * 60_000] * 5)] == [2, 2, 1]
    assert list(portions(["b" * 200_000])) == [["b" * 200_000]]
