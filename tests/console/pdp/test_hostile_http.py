"""Hostile HTTP: whatever comes over the wire is refused or answered, is never allowed, and holds nothing for ever."""

import gc
import json
import re
import weakref

import pytest

from aclog.console.connections import TimedConnection
from tests.support.builders.acls import acl
from tests.support.web.points import HeldSource, image_of, point_of
from tests.support.web.served import ServedPoint, post_bytes, read_all

ONE = "/access/v1/evaluation"
QUESTION = {
    "subject": {"type": "User", "id": "a"}, "action": {"name": "READ"}, "resource": {"type": "topic", "id": "t"},
}  # fmt: skip
ALLOWED = post_bytes(ONE, QUESTION)
CHUNKED = b"POST " + ONE.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: "
DATA = json.dumps(QUESTION).encode()


@pytest.fixture(scope="module")
def served():
    with ServedPoint(point_of(HeldSource(image_of(acl("t", "User:a"))))) as found:
        yield found


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (ALLOWED, [b"200"]),
        (ALLOWED * 3, [b"200"] * 3),
        (ALLOWED + ALLOWED[:-5], [b"200"]),
        (CHUNKED + b"chunked\r\n\r\n" + chunks(DATA[:5], DATA[5:], b""), [b"200"]),
        (ALLOWED.replace(b"HTTP/1.1", b"HTTP/1.0"), [b"200"]),
        (ALLOWED.replace(b"POST", b"GET"), [b"405"]),
        (b"GET /x HTTP/0.9\r\n\r\n", [b"404"]),
        (b"\x16\x03\x01\x02\x00\x01\x00" * 40, [b"400"]),
        (b"GET " + b"/x" * 500_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", [b"400"]),
        (ALLOWED.replace(b"Host: x", b"Host: x\r\nX-A: " + b"a" * 1_000_000), [b"400"]),
        (ALLOWED.replace(b"Host: x", b"Host: x\r\n" + b"X: y\r\n" * 200_000 + b"Z: z"), [b"400"]),
        (CHUNKED + b"chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", [b"400"]),
        (CHUNKED + b"chunked\r\n\r\n-5\r\n{}\r\n0\r\n\r\n", [b"400"]),
        (CHUNKED + b"chunked\r\n\r\nfffffffffffffffffffff\r\n{}", [b"400"]),
        (CHUNKED + b"gzip, chunked\r\n\r\n" + chunks(DATA, b""), [b"400"]),
        (CHUNKED + b"chunked\r\nContent-Length: 5\r\n\r\n" + chunks(DATA, b""), [b"400"]),
        (CHUNKED + b"chunked\r\ncontent-length: 0\r\n\r\n" + chunks(DATA, b"") + ALLOWED, [b"400"]),
        (CHUNKED.replace(b"1.1", b"1.0") + b"chunked\r\n\r\n" + chunks(DATA, b""), [b"400"]),
        (ALLOWED.replace(b"Host: x", b"Host: x\r\nContent-Length: 3"), [b"400"]),
        (ALLOWED.replace(b"Content-Length: ", b"Content-Length: -"), [b"400"]),
        (ALLOWED.replace(b"Host: x", b"Host: x\r\n folded: y"), [b"200"]),
        (ALLOWED.replace(b"Host: x", b"Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade"), [b"200"]),
        (ALLOWED.replace(b"Host: x", b"Host: x\r\nX-Request-ID: \x01\xff"), [b"200"]),
        (post_bytes(ONE, b"x" * (5 << 20)), [b"400"]),
    ],
)  # fmt: skip
def test_each_request_is_answered_or_refused(served, sent, statuses):
    answers = served.say(sent)
    found = re.findall(rb"HTTP/1\.1 (\d+) ", answers)
    assert found == statuses or (not found and len(sent) > 1 << 16), "what is refused early may be reset"
    assert answers.count(b'"decision":true') == statuses.count(b"200")


def test_requests_in_a_row_are_answered_in_their_order(served):
    denied = post_bytes(ONE, QUESTION | {"resource": {"type": "topic", "id": "u"}})
    with served.connect() as connection:
        connection.sendall(ALLOWED + denied + ALLOWED + post_bytes(ONE, b"{", "Connection: close"))
        answers = read_all(connection)
    found = [line for line in answers.split(b"\r\n") if line.startswith(b"{")]
    assert [line[:16] for line in found] == [
        b'{"decision":true',
        b'{"decision":fals',
        b'{"decision":true',
        found[3][:16],
    ]
    assert b"error" in found[3]


def test_a_connection_that_does_not_go_on_is_ended(monkeypatch):
    monkeypatch.setattr(TimedConnection, "seconds", 0.2)
    with ServedPoint(point_of(HeldSource(image_of(acl("t", "User:a"))))) as served:
        for begun in (b"", b"POST / HT", ALLOWED[:-5], ALLOWED.replace(b"Content-Type", b"Other")[:-5]):
            with served.connect() as connection:
                connection.sendall(begun)
                assert b'"decision"' not in read_all(connection), begun
        monkeypatch.setattr(TimedConnection, "seconds", 2.0)  # within which a whole request comes
        with served.connect() as connection:
            connection.sendall(ALLOWED)
            assert read_all(connection).count(b'"decision":true') == 1


def test_bodies_of_all_together_are_bounded():
    point = point_of(HeldSource(image_of(acl("t", "User:a"))))
    whole = point._bodies.remaining
    with ServedPoint(point) as served:
        point._bodies.remaining = 100
        assert b"503" in served.say(ALLOWED).split(b"\r\n")[0]
        point._bodies.remaining = whole
        for sent in (ALLOWED, ALLOWED[:-5], post_bytes(ONE, b"{"), post_bytes(ONE, b"x" * (5 << 20))):
            served.say(sent)
    assert point._bodies.remaining == whole


class Body(dict):
    """An object of a body that tells when it is gone."""


def test_nothing_keeps_a_body_that_was_refused(monkeypatch):
    point, kept = point_of(HeldSource(image_of())), []

    def parse(data):
        body = Body(evaluations=5, text=bytes(data))
        kept.append(weakref.ref(body))
        return body

    monkeypatch.setattr("aclog.console.pdp.app.parse_body", parse)
    with ServedPoint(point) as served:
        gc.disable()
        try:
            for size in (10, 1 << 16):
                with served.connect() as connection:
                    connection.sendall(post_bytes("/access/v1/evaluations", b"x" * size, "Connection: close"))
                    assert b" 400 " in read_all(connection)
            assert [body() for body in kept] == [None, None]
        finally:
            gc.enable()


def test_who_sends_no_more_is_answered(served):
    answer = served.say(post_bytes("/access/v1/evaluations", {"evaluations": [QUESTION] * 1_000}))
    assert answer.count(b'"decision":true') == 1_000
