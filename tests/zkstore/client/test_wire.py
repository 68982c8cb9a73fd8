"""What is handed to kazoo: whole responses of the protocol, to the requests that were sent, in their order."""

import socket
import ssl
import struct
import threading
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError, DecodeError
from aclog.zookeeper import wire
from aclog.zookeeper.client import StoreError, zk_settings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.wire import MAX_FRAME, CheckedHandler, CheckedSocket, ResponseChecks
from tests.support.fakes.zookeeper import FakeZooKeeper, event, framed, reply
from tests.support.nodes.certificates import Authority

SESSION = struct.pack("!iiqi", 0, 10_000, 7, 16) + bytes(17)
INT = struct.Struct("!i")


def request(xid):
    return framed(INT.pack(xid) + INT.pack(4) + bytes(9))


@pytest.fixture
def checks():
    """Those of a connection with a session."""
    found = ResponseChecks()
    found.sent(framed(bytes(45)))
    assert found.check(memoryview(SESSION))
    return found


def check(checks, response):
    checks.check_length(len(response) - 4)
    return checks.check(memoryview(response)[4:])


@given(st.lists(st.integers(1, 2**31 - 1) | st.just(-4), max_size=20), st.lists(st.integers(1, 40), min_size=1))
def test_requests_are_seen_in_pieces_of_any_size(xids, sizes):
    checks, sent = ResponseChecks(), framed(bytes(45)) + b"".join(map(request, xids))
    while sent:
        checks.sent(sent[: sizes[0]])
        sent, sizes = sent[sizes[0] :], [*sizes[1:], sizes[0]]
    checks.check(memoryview(SESSION))
    for xid in xids:  # -4 is that of a login
        check(checks, reply(-2))
        assert not check(checks, reply(xid, b"anything"))
    with pytest.raises(DecodeError, match="a response to request 5: expected none"):
        check(checks, reply(5))


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (reply(2), "a response to request 2: expected 1"),
        (reply(-4), "a response to request -4: expected 1"),
        (reply(1, error=12345), "error code 12345: expected one of ZooKeeper's"),
        (reply(-1), "a watch event of 16 bytes"),
        (reply(-1, INT.pack(4) + INT.pack(3) + INT.pack(-1)), "a path of -1 bytes"),
        (reply(-1, INT.pack(4) + INT.pack(3) + INT.pack(9) + b"/"), "a path of 9 bytes"),
        (reply(-1, INT.pack(4) + INT.pack(3) + INT.pack(1) + b"\xff"), "not UTF-8"),
        (framed(b"123"), "a response of 3 bytes: expected 16 to"),
    ],
)
def test_a_response_that_kazoo_cannot_match_is_refused(checks, response, problem):
    checks.sent(request(1))
    with pytest.raises(DecodeError, match=problem):
        check(checks, response)


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 15, MAX_FRAME + 1, (1 << 31) - 1])
def test_a_length_is_refused_before_anything_is_read(checks, length):
    with pytest.raises(DecodeError, match=f"a response of {length} bytes"):
        checks.check_length(length)


def test_a_read_only_session_is_refused():
    response = struct.pack("!iiqi", 0, 3000, 7, 16) + bytes(16)
    with pytest.raises(DecodeError, match="a read-only session, which was not requested"):
        ResponseChecks().check(memoryview(response + b"\x01"))
    assert ResponseChecks().check(memoryview(response + b"\0"))
    assert ResponseChecks().check(memoryview(response))  # ZooKeeper before 3.4 has no such byte


@pytest.mark.parametrize(
    ("timeout", "password", "problem"),
    [((1 << 31) - 1, 16, "a session timeout of"), (1, -1, "a session password of -1"), (1, 99, "a session password")],
)
def test_a_session_is_checked(timeout, password, problem):
    with pytest.raises(DecodeError, match=problem):
        ResponseChecks().check(memoryview(struct.pack("!iiqi", 0, timeout, 7, password) + bytes(17)))


def test_a_session_of_no_time_has_expired_which_kazoo_handles():
    assert ResponseChecks().check(memoryview(struct.pack("!iiqi", 0, 0, 0, 16) + bytes(16)))


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_checked_or_refused(data, has_session):
    checks = ResponseChecks()
    if has_session:
        checks.check(memoryview(SESSION))
    with suppress(DecodeError):
        check(checks, framed(data))


@pytest.fixture
def pair():
    """A checked connection, its handler, and the server's end."""
    ours, theirs = socket.socketpair()
    handler = CheckedHandler(tls=None, frame_seconds=60)
    checked = CheckedSocket(ours, handler)
    checked.setblocking(False)
    checked.send(framed(bytes(45)))
    assert theirs.recv(100) == framed(bytes(45))
    yield checked, handler, theirs
    checked.close()
    theirs.close()


def received(checked, size):
    data = b""
    while len(data) < size:
        data += checked.recv(min(7, size - len(data)))
    return data


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_frames_are_handed_on_unchanged(pair, size):
    checked, handler, theirs = pair
    handler.note("an earlier problem")
    whole = framed(SESSION) + event("/a") + reply(-2) + event("/b" * 100)

    def send():
        for at in range(0, len(whole), size):
            theirs.sendall(whole[at : at + size])

    thread = threading.Thread(target=send)
    thread.start()
    assert received(checked, len(whole)) == whole
    assert handler.problem is None  # there is a session again
    thread.join()
    assert checked.pending() == 0
    theirs.close()
    assert checked.recv(4) == b""


def test_a_malformed_frame_ends_the_connection_and_is_noted(pair):
    checked, handler, theirs = pair
    theirs.sendall(framed(SESSION) + INT.pack(-1))
    received(checked, len(SESSION) + 4)
    with pytest.raises(OSError, match="a response of -1 bytes"):
        checked.recv(4)
    assert (handler.problem, handler.problems) == (
        f"malformed response: a response of -1 bytes: expected 16 to {MAX_FRAME}",
        1,
    )


def test_a_frame_that_never_ends_is_given_up(pair, monkeypatch):
    checked, handler, theirs = pair
    handler.frame_seconds = 0.05
    theirs.sendall(framed(SESSION)[:-1])
    with pytest.raises(OSError, match=r"40 of 41 bytes within 0\.05 s"):
        checked.recv(4)


def test_responses_that_are_not_read_are_limited(pair, monkeypatch):
    checked, handler, theirs = pair
    monkeypatch.setattr(wire, "MAX_UNREAD", 100)
    theirs.sendall(framed(SESSION) + event("/a" * 10) * 3)
    received(checked, len(SESSION) + 4)
    handler.reset_count()
    received(checked, len(event("/a" * 10)))
    with pytest.raises(OSError, match="more than 0 MiB of responses"):
        received(checked, 200)


def test_an_abort_ends_a_wait_for_the_rest_of_a_frame(pair):
    checked, handler, theirs = pair
    handler._connection = checked
    theirs.sendall(framed(SESSION)[:9])
    threading.Timer(0.05, handler.abort).start()
    assert checked.recv(4) == b""
    with pytest.raises(OSError, match="the client is closed"):
        handler.create_connection(("127.0.0.1", 1))


def test_bytes_that_are_buffered_are_ready(pair):
    checked, handler, theirs = pair
    theirs.sendall(framed(SESSION))
    checked.recv(4)
    other = socket.socketpair()
    other[1].send(b"x")
    assert handler.select([checked, other[0]], [], [], 60) == ([checked, other[0]], [], [])
    for each in other:
        each.close()


TRUST, CHECK = "zookeeper.ssl.truststore.location", "zookeeper.ssl.endpoint.identification.algorithm"


@pytest.fixture
def secured(tmp_path):
    """A server with a certificate for another host, and the properties of a client that trusts its authority."""
    authority = Authority.make()
    key_store = authority.issue("zk", hosts=("elsewhere.example",)).write_pem(tmp_path / "zk.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key_store)
    trust_store = authority.write_pem(tmp_path / "root.pem")
    properties = {
        "zookeeper.ssl.client.enable": "true",
        TRUST: str(trust_store),
        "zookeeper.ssl.truststore.type": "PEM",
    }
    with FakeZooKeeper({"/a": b"data"}, tls=context) as server:
        yield {"zookeeper.connect": server.connect, **properties}


def test_tls_checks_the_host_of_a_certificate_unless_it_is_set_to_nothing(secured):
    for more in ({}, {CHECK: "HTTPS"}):
        with pytest.raises(StoreError, match="TLS: IP address mismatch, certificate"):
            open_client(zk_settings({**secured, **more}))
    with closing(open_client(zk_settings({**secured, CHECK: ""}))) as client:
        assert client.get("/a").data == b"data"


def test_tls_trusts_the_trust_store_only(secured, tmp_path):
    other = {**secured, TRUST: str(Authority.make("other").write_pem(tmp_path / "other.pem")), CHECK: ""}
    with pytest.raises(StoreError, match=r"TLS: self.signed certificate|TLS: unable to get"):
        open_client(zk_settings(other))


def test_an_unreadable_store_is_an_error_of_the_settings(secured, tmp_path):
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location: .*empty\.pem: no certificate"):
        open_client(zk_settings({**secured, TRUST: str(tmp_path / "empty.pem")}))
