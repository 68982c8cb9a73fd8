"""A ZooKeeper that lies: each command ends soon, in one line, and takes no part of an answer for the whole."""

import re
import socket
import struct
import threading
import time
from contextlib import closing

import pytest

from aclog.zookeeper import migration, session, wire
from aclog.zookeeper.acl_store import AclStore, StoreFollower
from aclog.zookeeper.client import zk_settings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.znodes import AclEntry, encode_acls
from tests.support.cli.command import aclog
from tests.support.fakes.zookeeper import (
    CHILDREN,
    CLOSE,
    CONNECT,
    GET_DATA,
    MULTI_READ,
    NO_NODE,
    PING,
    SYNC,
    FakeZooKeeper,
    SilenceError,
    estate,
    event,
    framed,
    reply,
    stat,
    text,
)

TRANSACTION = 14
_WAITS = NO_SESSION, NO_RESPONSE, NO_END = "no connection within 0.3 s", "no response in time", "bytes within 0.3 s"
INT, MULTI = struct.Struct("!i"), struct.Struct("!iBi")
TOPICS = "/kafka-acl/Topic"


def rule(principal="User:ann"):
    return encode_acls([AclEntry(principal=principal, permission_type=2, host="*", operation=3)])


RULES = {f"t{number}": rule() for number in range(20)}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Timeouts that are shorter than a user's."""
    monkeypatch.setattr(wire, "_MIN_FRAME_S", 0.3)
    monkeypatch.setattr(session, "_CLOSE_S", 0.2)
    monkeypatch.setattr(migration, "_SETTLING_S", 0.5)


def listed(server, patience=5000):
    """Run `aclog acls list` with these timeouts in milliseconds."""
    properties = f"zookeeper.connect={server.connect}", f"zookeeper.session.timeout.ms={patience}"
    return aclog("acls", "list", *(word for each in properties for word in ("--authorizer-properties", each)))


def migrated(server, home, patience=5000):
    """Run `aclog migrate` to an empty log; check that it has all or nothing; return what came of it."""
    properties = home / "zk.properties"
    properties.write_text(f"zookeeper.session.timeout.ms={patience}\n")
    words = "--zookeeper", server.connect, "--zk-tls-config-file", properties, "--log", home / "log"
    found = aclog("migrate", *words)
    written = aclog("acls", "list", "--log", home / "log")
    assert written.out.count("permissionType=DENY") == (len(RULES) if found.code == 0 else 0)
    return found


def instead(answer, *operations, path=""):
    """Send another answer to requests of these operations, and of this path if there is one."""

    def lying(request, response, client):
        is_it = request.operation in operations and path in {"", request.path}
        return answer(request, response) if is_it else response

    return lying


def silence(_request, _response):
    raise SilenceError


def drip(request, response, client):
    if request.operation not in {CHILDREN, MULTI_READ}:
        return response
    for each in response:
        client.sendall(bytes([each]))
        time.sleep(0.05)
    raise SilenceError


def names(*texts, count=None, of=None):
    """A response with these names of children."""
    size = len(texts) if count is None else count

    def answer(request, _response):
        return reply(request.xid, INT.pack(size) + b"".join(texts) + stat(children=size if of is None else of))

    return answer


def results(*each, count=1):
    """A response to multiRead with these results."""
    return lambda request, _: reply(request.xid, b"".join(each) * count + MULTI.pack(-1, 1, -1))


def data(content, size=None):
    """A response with this data of a znode."""
    whole = framed(content) + stat(size=len(content) if size is None else size)
    return lambda request, _: reply(request.xid, whole)


def announced(length):
    """A response that announces another length."""
    return lambda _, response: INT.pack(length) + response[4:]


def granted(timeout, password=16):
    """A session of this many milliseconds."""
    return lambda *_: framed(struct.pack("!iiqi", 0, timeout, 7, password) + bytes(17))


LIES = {
    "silent at connect": (instead(silence, CONNECT), NO_SESSION),
    "silent after that": (instead(silence, CHILDREN, PING), NO_RESPONSE),
    "huge length at connect": (
        instead(announced(2**31 - 1), CONNECT),
        "a response of 2147483647 bytes: expected 20 to",
    ),
    "huge length": (instead(announced(2**31 - 1), CHILDREN), "a response of 2147483647 bytes: expected 16 to"),
    "negative length": (instead(announced(-1), CHILDREN), "a response of -1 bytes"),
    "a length beyond the bytes": (instead(announced(1 << 20), CHILDREN), NO_END),
    "one byte after the other": (drip, NO_END),
    "a session without end": (instead(granted(2**31 - 1), CONNECT), "a session timeout of 2147483647 ms"),
    "sessions that have expired": (instead(granted(0), CONNECT), NO_SESSION),
    "a password of -1 bytes": (instead(granted(5000, -1), CONNECT), "a session password of -1 bytes"),
    "HTTP": (lambda *_: b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server is there|a response of 1213486160 bytes"),
    "noise": (instead(lambda *_: bytes(range(90, 190)), CHILDREN), "malformed response"),
    "another xid": (instead(lambda request, _: reply(request.xid + 1), CHILDREN), "a response to request "),
    "a response twice": (instead(lambda _, response: response * 2, CHILDREN), "a response to request "),
    "the xid of a login": (instead(lambda request, _: reply(-4), CHILDREN), "a response to request -4"),
    "an unknown error": (instead(lambda request, _: reply(request.xid, error=77), CHILDREN), "error code 77"),
    "an event of another type": (
        instead(lambda _, response: event("/", 99) + response, CHILDREN),
        "a watch event of type 99",
    ),
    "an event without a path": (
        instead(lambda _, response: reply(-1, INT.pack(4) * 2 + INT.pack(-1)) + response, CHILDREN),
        "a path of -1 bytes in a watch event",
    ),
    "an empty response": (instead(lambda request, _: reply(request.xid), CHILDREN), "malformed response"),
    "unsupported": (instead(lambda request, _: reply(request.xid, error=-6), CHILDREN), "UnimplementedError"),
    "2^31 children": (instead(names(count=2**31 - 1), CHILDREN), "2147483647 children"),
    "-1 children": (instead(names(count=-1), CHILDREN), "-1 children"),
    "a child without a name": (instead(names(INT.pack(-1)), CHILDREN), "without a name, or with the same"),
    "two children of a name": (instead(names(text("a"), text("a")), CHILDREN), "without a name, or with the same"),
    "a child of another path": (instead(names(text("a/b")), CHILDREN), "a child named .*: expected no /"),
    "an escape sequence": (instead(names(text("\x1b[2J")), CHILDREN), r"a child named .*: expected no U\+001B"),
    "a name of 200,000 characters": (instead(names(text("a" * 200_000)), CHILDREN), "a name of 200000 characters"),
    "a name that is not UTF-8": (instead(names(framed(b"\xff")), CHILDREN), "malformed response: UnicodeDecodeError"),
    "some of the children": (instead(names(text("t1"), of=20), CHILDREN, path=TOPICS), "1 names of 20 children"),
    "children that are not there": (
        instead(names(*map(text, (*RULES, "ghost")), of=len(RULES) + 1), CHILDREN, path=TOPICS),
        "ghost is listed, but does not exist|modified faster than it can be read",
    ),
}
"""Of every command: what is sent, and what the error names."""

OF_LISTS = {
    "no result": (instead(results(), MULTI_READ), "0 results or more for"),
    "results without end": (
        instead(results(MULTI.pack(GET_DATA, 0, 0), framed(b""), stat(), count=99), MULTI_READ),
        "results or more for",
    ),
    "errors without end": (
        instead(results(MULTI.pack(-1, 0, NO_NODE), INT.pack(NO_NODE), count=99), MULTI_READ),
        "results or more for",
    ),
    "an unknown error in one": (
        instead(results(MULTI.pack(-1, 0, 77), INT.pack(77), count=20), MULTI_READ),
        "Invalid error",
    ),
    "znodes that are cut": (
        instead(results(MULTI.pack(GET_DATA, 0, 0), framed(b""), stat(size=70), count=20), MULTI_READ),
        "0 bytes: expected the 70 of its stat",
    ),
}
"""Of `acls list`, which reads several znodes in one request."""

OF_READS = {
    "a znode that is cut": (data(b"", size=70), "0 bytes: expected the 70 of its stat"),
    "a znode of 17 MB": (data(b" " * (17 << 20)), "17825792 bytes: expected"),
    "nested arrays": (data(b'{"version":1,"acls":' + b"[" * 5000 + b"]" * 5000 + b"}"), "t1: expected JSON"),
    "arrays nested in an entry": (data(b'{"version":1,"acls":[' + b"[" * 900 + b"]" * 900 + b"]}"), "t1: acls.0. is"),
    "a version of a megabyte": (data(b'{"version":"' + b"x" * (1 << 20) + b'"}'), "t1: version "),
    "an operation of a megabyte": (data(rule().replace(b"Read", b"x" * (1 << 20))), "t1: acls.0..operation "),
    "a number of a megabyte": (data(b'{"version":' + b"1" * (1 << 20) + b"}"), "t1: expected JSON"),
}
"""Of `migrate`, which reads each znode with a watch."""


def check_error(found, problem):
    """One line, and no more than a terminal shows."""
    assert found.code == 2
    assert re.search(problem, found.complaint), found.err
    assert len(found.err) < 2000


@pytest.mark.parametrize("name", LIES)
def test_a_lie_ends_each_command_in_one_line(tmp_path, name):
    answer, problem = LIES[name]
    patience = 300 if problem in _WAITS else 5000
    with FakeZooKeeper(estate(RULES), answer) as server:
        check_error(listed(server, patience), problem)
        check_error(migrated(server, tmp_path, patience), problem)


@pytest.mark.parametrize("name", OF_LISTS)
def test_a_lie_about_many_znodes_ends_a_listing_in_one_line(name):
    with FakeZooKeeper(estate(RULES), after_the_start(OF_LISTS[name][0])) as server:
        check_error(listed(server), OF_LISTS[name][1])


@pytest.mark.parametrize("name", OF_READS)
def test_a_lie_about_a_znode_ends_a_migration_in_one_line(tmp_path, name):
    answer, problem = OF_READS[name]
    with FakeZooKeeper(estate(RULES), instead(answer, GET_DATA, path=f"{TOPICS}/t1")) as server:
        check_error(migrated(server, tmp_path), problem)


def after_the_start(answer):
    """Answer the first request honestly, with which a client finds out whether there is multiRead."""
    return lambda request, response, client: response if request.number < 2 else answer(request, response, client)


def test_an_honest_server_is_read_whole(tmp_path):
    with FakeZooKeeper(estate(RULES)) as server:
        assert listed(server).ok().out.count("permissionType=DENY") == len(RULES)
        migrated(server, tmp_path).ok()
        assert server.connections == 2


def test_a_session_is_closed_without_a_response(tmp_path):
    with FakeZooKeeper(estate(RULES), instead(silence, CLOSE)) as server:
        listed(server).ok()


def test_events_without_end_do_not_matter(tmp_path):
    """Watches that were never set, and events of those that were, before each response."""
    noise = event("/nowhere") * 50 + event(TOPICS) + event("/kafka-acl", 2)

    def noisy(request, response, _client):
        return response if request.operation == CONNECT else noise + response

    with FakeZooKeeper(estate(RULES), noisy) as server:
        listed(server).ok()
        found = migrated(server, tmp_path)
    assert found.code in {0, 2}


def test_a_store_that_changes_at_each_look_is_given_up(tmp_path):
    def changing(request, response, _client):
        return event(f"{TOPICS}/t1", 3) + response if request.operation == SYNC else response

    with FakeZooKeeper(estate(RULES), changing) as server:
        check_error(migrated(server, tmp_path), "modified faster than it can be read")


def test_data_that_changes_with_each_read_is_a_difference(tmp_path):
    count = iter(range(1_000_000))

    def changing(request, response, _client):
        if request.operation != GET_DATA or request.path != f"{TOPICS}/t1":
            return response
        content = rule(f"User:{next(count)}")
        return reply(request.xid, framed(content) + stat(size=len(content)))

    with FakeZooKeeper(estate(RULES), changing) as server:
        found = aclog("migrate", "--zookeeper", server.connect, "--log", tmp_path / "log")
    assert found.code == 1
    assert "compared: contents 2 differences" in found.out


def test_a_connection_that_breaks_in_the_middle_is_read_again(tmp_path):
    """Each connection but the last breaks at another read: what was read before is not taken for the whole."""
    breaks = [2, 9, 30]

    def breaking(request, response, client):
        if request.connection < len(breaks) and request.operation == GET_DATA:
            breaks[request.connection] -= 1
            if breaks[request.connection] < 0:
                client.shutdown(socket.SHUT_RDWR)
        return response

    with FakeZooKeeper(estate(RULES), breaking) as server:
        found = aclog("migrate", "--zookeeper", server.connect, "--log", tmp_path / "log")
        assert server.connections == 4
    assert "compared: contents the same" in found.ok().out


def test_writes_that_were_dropped_are_a_difference(tmp_path):
    """A server that confirms the writes of a migration back, and keeps none."""
    with FakeZooKeeper(estate(RULES)) as server:
        migrated(server, tmp_path).ok()
    confirmed = MULTI.pack(1, 0, 0) + text("/x") + MULTI.pack(1, 0, 0) + text("/y") + MULTI.pack(-1, 1, -1)
    dropping = instead(lambda request, _: reply(request.xid, confirmed), TRANSACTION)
    with FakeZooKeeper(estate({}), dropping) as server:
        server.commits = False
        found = aclog("migrate", "--log", tmp_path / "log", "--to-zookeeper", server.connect)
    assert found.code == 1
    assert f"compared: contents {len(RULES)} differences" in found.out


def test_results_of_other_writes_are_an_error(tmp_path):
    """A transaction is confirmed with too few results, or with none that can be read."""
    with FakeZooKeeper(estate(RULES)) as server:
        migrated(server, tmp_path).ok()
    for answer in (MULTI.pack(-1, 1, -1), b"", MULTI.pack(5, 0, 0) + b"x", MULTI.pack(-1, 0, 77) + INT.pack(77)):
        lying = instead(lambda request, _, answer=answer: reply(request.xid, answer), TRANSACTION)
        with FakeZooKeeper(estate({}), lying) as server:
            found = aclog("migrate", "--log", tmp_path / "log", "--to-zookeeper", server.connect)
        check_error(found, "malformed response")


@pytest.mark.parametrize("created", [5, 2**30 - 1])
def test_a_number_of_events_that_does_not_fit_is_a_reload(created):
    """No list is made of the events that are expected, and a directory that was made anew hides none."""
    counts = [10]

    def events(request, _response):
        return reply(request.xid, INT.pack(0) + stat(changes=2 * counts[0]))

    replaced, changed = [], []
    with (
        FakeZooKeeper(estate(RULES), instead(events, CHILDREN, path="/kafka-acl-changes")) as server,
        closing(open_client(zk_settings({"zookeeper.connect": server.connect}))) as client,
    ):
        follower = StoreFollower(
            store=AclStore(client=client), replaced=replaced.append, changed=changed.append, lock=threading.RLock()
        )
        follower._reload()
        follower._catch_up()
        assert (len(replaced), changed) == (1, [])
        counts[0] = created
        follower._catch_up()
    assert len(replaced) == 2
    assert follower._processed["/kafka-acl-changes"] == created
