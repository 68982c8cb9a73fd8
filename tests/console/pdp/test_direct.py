"""Requests that a decision point answers without its application: the same bytes, audit and metrics as with it."""

import asyncio
import json
import re
import socket
import time
from math import inf

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from uvicorn.server import ServerState

from aclog.authorizer.codes import AclPermissionType
from aclog.cli.serving import Endpoint, server_config
from aclog.config.node_config import HostPort
from aclog.console.connections import TimedConnection
from aclog.console.http import Hosts
from aclog.console.pdp.app import Tokens
from aclog.console.pdp.deciding import parse_evaluation, plain_words
from aclog.console.pdp.direct import AT_ONCE, SHORT, DirectConnection, parse_head
from tests.support.builders.acls import acl
from tests.support.processes.waiting import SECONDS
from tests.support.runs.profiles import examples
from tests.support.web.points import HeldSource, certified, image_of, point_of
from tests.support.web.served import ServedPoint, post_bytes, read_all

ONE, MANY = AT_ONCE[:2]
QUESTION = {
    "subject": {"type": "User", "id": "a"}, "action": {"name": "READ"}, "resource": {"type": "topic", "id": "t"},
}  # fmt: skip
ALLOWED = post_bytes(ONE, QUESTION)
TOKEN = "0123456789abcdef"
_RULES = (acl("t", "User:a"), acl("u", "User:*"), acl("u", "User:b", permission_type=AclPermissionType.DENY))
DEFAULT, CERTIFIED = (each.deciders.at(None) for each in (point_of(HeldSource(image_of(*_RULES))), certified()))
_VARYING = re.compile(
    rb'date: [^\r]*|"decision_id":"[^"]*"|"time":"[^"]*"|"timestamp":"[^"]*"|"id":"[0-9a-f-]{36}"|'
    rb'"requested_by":"[^"]*"'
)
_COUNTERS = {"aclog_pdp_decisions", "aclog_pdp_requests", "aclog_web_requests_refused"}
_OBSERVED = "aclog_pdp_request_seconds"


class Collected(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.7", 1234), "sockname": ("10.0.0.1", 80)})
        self.data, self.closed = bytearray(), False

    def write(self, data):
        assert not self.closed
        self.data += data

    def close(self):
        self.closed = True

    abort = close

    def is_closing(self):
        return self.closed

    def get_write_buffer_size(self):
        return 0

    def pause_reading(self):
        """Everything was given to the protocol."""

    resume_reading = pause_reading


class Both:
    """Two decision points on the same rules: one answers directly, the other by its application alone."""

    def __init__(self, tmp_path):
        self.loop = asyncio.new_event_loop()
        self.sides = [
            self._side(tmp_path / name, is_direct=is_direct) for name, is_direct in (("a", True), ("b", False))
        ]

    def _side(self, directory, *, is_direct):
        directory.mkdir()
        point = point_of(
            HeldSource(image_of(*_RULES)),
            audit=directory / "audit",
            decision_log=directory / "log",
            hosts=Hosts(frozenset({"x", "y"})),
        )
        point.deciders.max_age = inf  # the examples may take a while
        endpoint = Endpoint(address=HostPort(host="127.0.0.1", port=80))
        config = server_config(point.app(), endpoint, is_timed=True, answering=point if is_direct else None)
        return point, config

    def close(self):
        for point, _ in self.sides:
            point.audit.file.close()
            point.decision_log.file.close()
        self.loop.close()

    def answers(self, pieces):
        return [self.loop.run_until_complete(self._answers(*side, pieces)) for side in self.sides]

    async def _answers(self, point, config, pieces):
        """Return what is answered to pieces of bytes, each of which arrives when the ones before were answered."""
        state = ServerState()
        state.default_headers = [(b"date", b"today")]
        protocol = config.http_protocol_class(config=config, server_state=state, app_state={}, _loop=self.loop)
        if isinstance(protocol, DirectConnection):
            protocol.answering = point
        transport = Collected()
        protocol.connection_made(transport)
        for piece in pieces:
            if not transport.closed:
                protocol.data_received(piece)
            while any(task is not asyncio.current_task() and not _is_waiting(protocol) for task in asyncio.all_tasks()):
                await asyncio.sleep(0)
        is_open = not transport.closed
        protocol.eof_received()
        protocol.connection_lost(None)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        return _VARYING.sub(b"", transport.data), is_open, state.total_requests

    def effects(self):
        """What each has written and counted."""
        for point, _ in self.sides:
            files = [_VARYING.sub(b"", each.file.path.read_bytes()) for each in (point.audit, point.decision_log)]
            yield files, counts_of(point)


def counts_of(point):
    """What a point has counted, by the names and labels of the samples; without times."""
    families = {each.name: each for each in text_string_to_metric_families(point.refusals.text().decode())}
    assert _COUNTERS | {_OBSERVED} <= families.keys()
    samples = [each for name in _COUNTERS for each in families[name].samples if each.name == f"{name}_total"]
    samples += [each for each in families[_OBSERVED].samples if each.name == f"{_OBSERVED}_count"]
    return {(each.name, *sorted(each.labels.items())): each.value for each in samples}


def _is_waiting(protocol):
    """Whether the rest of a body is awaited."""
    cycle = protocol.cycle
    return cycle is not None and cycle.more_body and not cycle.body and not cycle.message_event.is_set()


def sent(server, pieces):
    """Return all that a server answers to pieces of bytes, each of which it reads on its own."""
    with server.connect() as connection:
        for number, piece in enumerate(pieces):
            if number:
                time.sleep(0.01)
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


_names = st.sampled_from(
    ["a", "b", "t", "u", "User", "topic", "READ", "read", "*", "t*", "\u00e9", "\ud83d\ude00", "", "x" * 400]
)
_values = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=True), _names)
_entity = st.one_of(
    st.fixed_dictionaries(
        {"type": _names, "id": _names}, optional={"properties": st.dictionaries(_names, _values, max_size=2)}
    ),
    _values,
)
_context = st.dictionaries(
    st.sampled_from(["host", "ip", "as_of", "other"]), st.one_of(_values, st.just("10.0.0.1")), max_size=2
)
_question = st.one_of(
    st.just(QUESTION),
    st.fixed_dictionaries(
        {},
        optional={
            "subject": _entity, "resource": _entity, "action": st.one_of(st.just({"name": "READ"}), _entity),
            "context": _context,
        },
    ),
)  # fmt: skip
_batch = st.builds(
    lambda questions, shared, semantic: {
        **shared, "evaluations": questions, **({"options": {"evaluations_semantic": semantic}} if semantic else {}),
    },
    st.lists(st.one_of(_question, _values), max_size=4),
    _question,
    st.sampled_from(["", "execute_all", "deny_on_first_deny", "permit_on_first_permit", "else"]),
)  # fmt: skip
_plugin = st.builds(
    lambda kind, name, operation, topic: {
        "requestContext": {"principal": {"principalType": kind, "name": name}, "clientAddress": "/10.0.0.1"},
        "action": {
            "operation": operation,
            "resourcePattern": {"resourceType": "TOPIC", "name": topic, "patternType": "LITERAL"},
        },
    },
    _names, _names, st.sampled_from(["READ", "WRITE", "x"]), _names,
)  # fmt: skip
_bodies = st.one_of(
    st.one_of(
        _question, _batch, st.builds(lambda each: {"input": each}, st.one_of(_question, _plugin, _values)), _values
    ).map(lambda body: json.dumps(body).encode()),
    st.sampled_from([b"", b"{", b"[]", b"\xff", b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b" " * 300, b"[" * 2000]),
    st.binary(max_size=20),
)
_odd_headers = st.sampled_from(
    [
        b"X-Request-ID: r-1", b"x-request-id:", b"X-REQUEST-ID: \t two words \t", b"Connection: keep-alive",
        b"Connection: close", b"Connection: Keep-Alive, x", b"Connection: Upgrade", b"Upgrade: websocket",
        b"Expect: 100-continue", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", b"Content-Length: 3",
        b"Content-Length: 0", b"Content-Length : 3", b"Host: y", b"Host: evil", b" folded: x", b"\tfolded",
        b"X-A\x00: b",
        b"X-A: \x7f", b"X-A: \xff", b"X-A: a\nX-B: b", b"X-A: a\rb", b"no colon", b": no name", b"X A: b", b"X-A:b",
        b"Content-Type: text/plain", b"Authorization: Bearer x", b"Accept: */*", b"X-A: " + b"a" * 9000,
    ]
)  # fmt: skip


@st.composite
def requests(draw):
    """Bytes of a request, most of them well formed."""
    body = draw(_bodies)
    path = draw(st.sampled_from([*AT_ONCE, *AT_ONCE, "/access/v1/evaluation?x=1", "/x", "/access/v1/search/subject"]))
    first = draw(
        st.sampled_from([*([b"POST %s HTTP/1.1"] * 8), b"GET %s HTTP/1.1", b"POST %s HTTP/1.0", b"POST  %s HTTP/1.1"])
    )
    length = draw(st.sampled_from([len(body)] * 8 + [len(body) + 1, max(len(body) - 1, 0), SHORT + 1]))
    lines = [
        b"Host: x",
        b"Content-Type: " + draw(st.sampled_from([b"application/json", b"Application/JSON; charset=utf-8"])),
        draw(st.sampled_from([b"Content-Length: %d", b"content-length:%d", b"CONTENT-LENGTH:  0%d\t"])) % length,
    ]  # fmt: skip
    for odd in draw(st.lists(_odd_headers, max_size=2)):
        lines.insert(draw(st.integers(0, len(lines))), odd)
    if draw(st.integers(0, 15)) == 0:
        lines.pop(draw(st.integers(0, len(lines) - 1)))
    end = draw(st.sampled_from([b"\r\n"] * 15 + [b"\n"]))
    return end.join([first % path.encode(), *lines]) + end * 2 + body


@st.composite
def pieces(draw):
    """One to three requests, cut anywhere, or in pieces of a request each."""
    data = draw(st.lists(requests(), min_size=1, max_size=3))
    if draw(st.booleans()):
        return data
    whole = b"".join(data)
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=2)))
    found = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    return [piece for piece in found if piece]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    found = Both(tmp_path_factory.mktemp("both"))
    yield found
    found.close()


@given(pieces())
@settings(max_examples=examples(300))
def test_answers_audit_and_metrics_are_those_of_the_application(both, sent_pieces):
    direct, application = both.answers(sent_pieces)
    assert direct == application
    effects = list(both.effects())
    assert effects[0] == effects[1]


QUESTIONS = [QUESTION, {**QUESTION, "resource": {"type": "topic", "id": "other"}}]
MISCOUNTS = {
    "a decision twice": lambda point: point.measures._decisions.labels("true").inc(),
    "a decision not at all": lambda point: point.measures._decisions.labels("false").reset(),
    "a request twice": lambda point: point.measures._requests.labels("200").inc(),
    "a request that took no time": lambda point: point.measures._seconds.observe(0),
    "a refusal": lambda point: point.refusals.request("body"),
}


@pytest.fixture
def counted(tmp_path):
    found = Both(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("miscount", MISCOUNTS)
def test_a_miscount_shows(counted, miscount):
    direct, application = counted.answers([post_bytes(ONE, QUESTION), post_bytes(MANY, {"evaluations": QUESTIONS})])
    assert direct == application
    (_, counts), (_, expected) = counted.effects()
    assert counts == expected
    assert counts["aclog_pdp_decisions_total", ("decision", "true")] == 2
    assert counts["aclog_pdp_decisions_total", ("decision", "false")] == 1
    assert counts["aclog_pdp_requests_total", ("status", "200")] == counts[f"{_OBSERVED}_count",] == 2
    MISCOUNTS[miscount](counted.sides[0][0])
    (_, counts), (_, expected) = counted.effects()
    assert counts != expected


_words = st.sampled_from(
    ["User", "user", "record", "topic", "TOPIC", "group", "alice", "bob", "bob+admin", "record-1", "t", "t*", "t\\*",
     "*",
     "READ", "read", "write", "delete", "all", "\u0131", "a:b", "", "x" * 40_000]
)  # fmt: skip
_plain = st.fixed_dictionaries(
    {
        "subject": st.fixed_dictionaries({"type": _words, "id": _words}),
        "action": st.fixed_dictionaries({"name": _words}),
        "resource": st.fixed_dictionaries({"type": _words, "id": _words}),
    },
    optional={"context": st.none()},
)


@given(st.one_of(_plain, _plain, _question))
@settings(max_examples=examples(2_000))
@pytest.mark.parametrize("mapping", [None, "certified"])
def test_a_plain_question_has_the_answer_of_any_other(mapping, body):
    decider = CERTIFIED if mapping else DEFAULT
    words = plain_words(body)
    decided = None if words is None else decider.plainly_decided(words)
    if decided is not None:
        answer = decider.evaluate(parse_evaluation(body))
        assert decided == (answer.text(decider.offset), answer.decision)


def test_most_questions_are_plain():
    words = plain_words(QUESTION)
    assert words is not None
    assert DEFAULT.plainly_decided(words) is not None


@given(requests())
@settings(max_examples=examples(2_000))
def test_h11_reads_the_same_request(data):
    request = parse_head(data)
    if request is None or request.size + request.length != len(data):
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    headers = dict(reversed([(name.lower(), value) for name, value in event.headers]))
    assert (event.method, event.target, event.http_version) == (b"POST", request.path.encode(), b"1.1")
    assert headers[b"host"] == request.host.encode()
    for name, value in ((b"authorization", request.authorization), (b"x-request-id", request.request_id)):
        assert headers.get(name) == (None if value is None else value.encode())
    body = bytearray()
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert body == data[request.size :]
    assert connection.their_state is h11.DONE
    assert connection.trailing_data == (b"", False)


@pytest.mark.parametrize(
    "data",
    [
        ALLOWED[:-1] + ALLOWED[-1:] * 2,
        ALLOWED.replace(b"Host: x", b"Host: x\r\nTransfer-Encoding: chunked"),
        ALLOWED.replace(b"Host: x", b"Host: x\r\nContent-Length: 3"),
        ALLOWED.replace(b"Content-Length: ", b"Content-Length: +"),
        ALLOWED.replace(b"Host: x", b"Host: x\r\n folded"),
        ALLOWED.replace(b"Host: x\r\n", b""),
        ALLOWED.replace(b"\r\n", b"\n"),
        ALLOWED.replace(b"HTTP/1.1", b"HTTP/1.0"),
        ALLOWED.replace(b"Host: x", b"Host: x\r\nX: " + b"a" * 9000),
        post_bytes(ONE, b"x" * (SHORT + 1)),
    ],
)
def test_what_two_servers_could_read_differently_is_left_to_h11(data):
    request = parse_head(data)
    assert request is None or request.size + request.length != len(data)


def test_blanks_before_a_byte_that_is_no_text_take_a_time_linear_in_their_number():
    head = ALLOWED.replace(b"Host: x", b"Host: x\r\nX: " + b" " * 7_500 + b"\x01")
    assert head.find(b"\r\n\r\n") < 8 << 10
    for _ in range(2_000):  # 10 minutes, and so the end of the test, if each takes a time quadratic in it
        assert parse_head(head) is None


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("wrong", 401), (TOKEN, 200)])
def test_a_token_is_checked_before_a_body_is_awaited(token, status):
    headers = () if token is None else (f"Authorization: Bearer {token}",)
    data = post_bytes(ONE, QUESTION, *headers)
    point = point_of(HeldSource(image_of(*_RULES)), tokens=Tokens.of([TOKEN]))
    with ServedPoint(point) as served, served.connect() as connection:
        connection.sendall(data[:-5])
        if status == 401:
            assert b"HTTP/1.1 401" in connection.recv(1 << 12)
        else:
            connection.setblocking(False)
            time.sleep(0.1)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
            assert (served.budget.strangers, served.budget.authenticated) == (0, 1)
            connection.settimeout(SECONDS)
            connection.sendall(data[-5:])
            assert b"HTTP/1.1 200" in connection.recv(1 << 12)


def connected(point, loop):
    """A connection that the point answers directly."""
    endpoint = Endpoint(address=HostPort(host="127.0.0.1", port=80))
    config = server_config(point.app(), endpoint, is_timed=True, answering=point)
    protocol = config.http_protocol_class(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    protocol.answering = point
    protocol.connection_made(Collected())
    return protocol


@pytest.fixture
def loop():
    found = asyncio.new_event_loop()
    yield found
    found.close()


def test_a_plain_request_is_answered_without_the_application(loop):
    protocol = connected(point_of(HeldSource(image_of(*_RULES))), loop)
    for piece in (ALLOWED, ALLOWED[:-5], ALLOWED[-5:]):
        protocol.data_received(piece)
    assert protocol.transport.data.count(b'"decision":true') == 2
    assert protocol.cycle is None
    assert not asyncio.all_tasks(loop)
    protocol.connection_lost(None)


@pytest.mark.parametrize("end", ["answered", "lost", "more than a request"])
def test_a_body_that_is_not_whole_takes_of_the_budget(loop, end):
    point = point_of(HeldSource(image_of(*_RULES)))
    body = json.dumps(QUESTION).encode()
    first, second = (connected(point, loop) for _ in range(2))
    for number, protocol in enumerate((first, second), 1):
        protocol.data_received(ALLOWED[:-5])
        assert point._bodies.whole - point._bodies.remaining == number * (len(body) - 5)
    first.data_received(ALLOWED[-5:-3])
    assert point._bodies.whole - point._bodies.remaining == 2 * (len(body) - 5) + 2
    if end == "lost":
        first.connection_lost(None)
    else:
        first.data_received(ALLOWED[-3:] + (b"POST" if end == "more than a request" else b""))
        loop.run_until_complete(asyncio.sleep(0))
        assert first.transport.data.count(b'"decision":true') == 1
        first.connection_lost(None)
    second.connection_lost(None)
    while tasks := asyncio.all_tasks(loop):
        loop.run_until_complete(asyncio.wait(tasks))
    assert point._bodies.remaining == point._bodies.whole


@pytest.mark.parametrize("held", [0, 3])
def test_a_body_that_exceeds_the_budget_is_refused_by_the_application(loop, held):
    point = point_of(HeldSource(image_of(*_RULES)))
    point._bodies.whole = point._bodies.remaining = 2 * (len(json.dumps(QUESTION)) - 5 - held)
    protocol = connected(point, loop)
    for piece in (ALLOWED[: -5 - held], ALLOWED[-5 - held : -5], ALLOWED[-5:-1]):
        if piece:
            protocol.data_received(piece)
    while tasks := asyncio.all_tasks(loop):
        loop.run_until_complete(asyncio.wait(tasks))
    assert protocol.transport.data.startswith(b"HTTP/1.1 503")
    assert counts_of(point)["aclog_web_requests_refused_total", ("reason", "body")] == 1
    assert point._bodies.remaining == point._bodies.whole
    protocol.connection_lost(None)


@pytest.mark.tier("test")
def test_a_body_that_does_not_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(TimedConnection, "seconds", 0.5)
    with ServedPoint(point_of(HeldSource(image_of(*_RULES)))) as served, served.connect() as connection:
        connection.sendall(ALLOWED[:-1])
        assert read_all(connection) == b""


def test_half_a_body_does_not_hold_up_the_end():
    with ServedPoint(point_of(HeldSource(image_of(*_RULES)))) as served, served.connect() as connection:
        served.wait_without_limit()
        connection.sendall(ALLOWED)
        assert b"200 OK" in connection.recv(1 << 12)
        connection.sendall(ALLOWED[:-1])
        time.sleep(0.1)
        served.end()
        assert read_all(connection) == b""


def test_a_failure_is_answered_and_logged_by_the_application(monkeypatch, caplog):
    point = point_of(HeldSource(image_of(*_RULES)))
    monkeypatch.setattr(type(point.authzen), "evaluation", lambda self, body: 1 / 0)
    with ServedPoint(point) as served:
        answers = sent(served, [ALLOWED])
    assert b"HTTP/1.1 500" in answers
    assert b"nothing was decided" in answers
