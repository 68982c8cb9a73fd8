"""Connections from the client's side: allowed requests, responses, and reasons for closing."""

import asyncio

import pytest
from attrs import evolve

from aclog.authorizer.interface import AclRequestError, AuthorizerNotReadyError
from aclog.protocol.api_keys import (
    CREATE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from aclog.protocol.headers import MalformedRequestError, OutcomeUnknownError, RequestError, frame
from aclog.protocol.messages import build
from tests.support.nodes.served_listener import PLAINTEXT, SASL, run


def test_requests_are_answered_in_order():
    async def scenario(served):
        client = await served.connect()
        for _ in range(3):
            client.request(DESCRIBE_CLUSTER, 1)
        sent = client.correlation_id
        for number in range(sent):
            client.correlation_id = number + 1
            assert (await client.answer(DESCRIBE_CLUSTER, 1)).cluster_id == "User:ANONYMOUS"
        assert served.sample("aclog_request_duration_seconds_count", api="DescribeCluster") == 3
        assert served.sample("aclog_connections", listener="CLIENT") == 1

    run(scenario)


def test_a_frame_may_come_byte_by_byte_and_many_at_once():
    async def scenario(served):
        client = await served.connect()
        client.request(DESCRIBE_CLUSTER, 1)
        whole = await client.frame()
        body = frame(bytes.fromhex("003c 0001 00000007 ffff 00 00 01 00".replace(" ", "")))
        for byte in body:
            client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.frame())[4:] == whole[4:]
        client.send(body * 500)
        for _ in range(500):
            assert (await client.frame())[4:] == whole[4:]

    run(scenario)


def test_api_versions_before_and_after():
    async def scenario(served):
        client = await served.connect()
        answer = await client.versions(4)
        served_keys = [each.api_key for each in answer.api_keys]
        assert served_keys == [SASL_HANDSHAKE, 18, SASL_AUTHENTICATE, DESCRIBE_CLUSTER], "those with a handler"
        assert answer.error_code == 0
        client.request(18, 99, b"\0\0\0\0garbage of a later version")
        answer = await client.answer(18, 0)
        assert answer.error_code == 35
        assert [(each.api_key, each.max_version) for each in answer.api_keys] == [(18, 4)]
        answer = await client.versions(3, name="-no-")
        assert (answer.error_code, answer.api_keys) == (42, ())
        assert (await client.versions(0)).error_code == 0
        assert await client.who() == "User:ANONYMOUS"

    run(scenario)


@pytest.mark.parametrize(
    "payload",
    [
        bytes.fromhex("0001 0012 00000001 ffff"),  # Fetch: not a broker's
        bytes.fromhex("003c 0009 00000001 ffff"),  # DescribeCluster of a version to come
        bytes.fromhex("7fff 0000 00000001 ffff"),  # no API
        bytes.fromhex("ffff 0000 00000001 ffff"),
        bytes.fromhex("003c 0001 00000001 7fff"),  # a client id beyond the end
        bytes.fromhex("003c 0001 00000001 ffff 00"),  # cut
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_malformed_requests_close_their_connection_only(payload):
    async def scenario(served):
        neighbour, client = await served.connect(), await served.connect()
        client.send(frame(payload))
        assert await client.closed()
        assert await neighbour.who() == "User:ANONYMOUS"
        await served.settled(
            lambda: served.sample("aclog_connections_closed_total", listener="CLIENT", reason="malformed") == 1
        )

    run(scenario)


@pytest.mark.parametrize(
    "prefix", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\7", b"GET ", b"\x16\3\1\2"]
)
def test_invalid_lengths(prefix):
    async def scenario(served):
        client = await served.connect()
        client.send(prefix + bytes(100))
        assert await client.closed()

    run(scenario, frame_bytes=1 << 20)


def failing(error):
    async def handler(request):
        raise error

    return handler


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(DESCRIBE_ACLS, 1), (DESCRIBE_ACLS, 2), (DESCRIBE_USER_SCRAM_CREDENTIALS, 0), (DESCRIBE_CLUSTER, 2)],
)
def test_an_error_that_a_client_cannot_cope_with_closes_the_connection(api_key, version):
    async def scenario(served):
        client = await served.connect()
        client.request(api_key, version)
        assert await client.closed()

    run(scenario, handlers={api_key: failing(AuthorizerNotReadyError("10 of 20"))})


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RequestError(31, "Request needs ALTER permission."), 31, "Request needs ALTER permission."),
        (AclRequestError(44, "too many"), 44, "too many"),
        (AuthorizerNotReadyError("10 of 20"), -1, "AUTHORIZER_NOT_READY: 10 of 20"),
        (ZeroDivisionError("a secret of the node"), -1, None),
    ],
)
def test_errors_of_handlers(error, code, message, caplog):
    async def scenario(served):
        client = await served.connect()
        creation = build(CREATE_ACLS, 3, "request", "AclCreation", resource_name="t", principal="User:a", host="*")
        answer = await client.ask(CREATE_ACLS, 3, creations=(creation, creation))
        assert [(each.error_code, each.error_message) for each in answer.results] == [(code, message)] * 2
        answer = await client.ask(DESCRIBE_ACLS, 3)
        assert (answer.error_code, answer.error_message) == (code, message)
        assert served.sample("aclog_request_errors_total", api="DescribeAcls", error_code=str(code)) == 1
        assert await client.who() == "User:ANONYMOUS"

    run(scenario, handlers={CREATE_ACLS: failing(error), DESCRIBE_ACLS: failing(error)})
    assert ("Traceback" in caplog.text) is isinstance(error, ZeroDivisionError)


def test_a_handler_may_reject_a_request_as_malformed():
    async def scenario(served):
        client = await served.connect()
        client.request(DESCRIBE_ACLS, 2)
        assert await client.closed()

    run(scenario, handlers={DESCRIBE_ACLS: failing(MalformedRequestError("resource type 0"))})


def test_a_request_with_unknown_outcome_gets_no_response(caplog):
    async def scenario(served):
        client = await served.connect()
        client.request(DESCRIBE_ACLS, 2)
        assert await client.closed()
        await served.settled(
            lambda: served.sample("aclog_connections_closed_total", listener="CLIENT", reason="unanswered") == 1
        )
        assert "connection closed without a response: in doubt" in caplog.text

    run(scenario, handlers={DESCRIBE_ACLS: failing(OutcomeUnknownError("in doubt"))})


def test_trailing_bytes_are_ignored():
    async def scenario(served):
        client = await served.connect()
        client.request(DESCRIBE_CLUSTER, 1, b"\0\1\0trailing")
        assert (await client.answer(DESCRIBE_CLUSTER, 1)).cluster_id == "User:ANONYMOUS"

    run(scenario)


def test_large_requests_and_answers_go_through():
    async def echo(request):
        return b"".join(each.resource_name.encode() for each in request.body.creations)

    async def scenario(served):
        client = await served.connect()
        names = [f"{number:06}" * 100 for number in range(5000)]
        creations = tuple(
            build(CREATE_ACLS, 3, "request", "AclCreation", resource_name=name, principal="User:a", host="*")
            for name in names
        )
        client.request(CREATE_ACLS, 3, creations=creations)
        assert (await client.frame())[5:] == "".join(names).encode()
        await served.settled(lambda: served.sample("aclog_in_flight_bytes") == 0)

    run(scenario, handlers={CREATE_ACLS: echo})


def test_a_half_closed_client_is_answered():
    async def scenario(served):
        client = await served.connect()
        client.request(DESCRIBE_CLUSTER, 1)
        client.request(DESCRIBE_CLUSTER, 1)
        client.writer.write_eof()
        for _ in range(2):
            await client.frame()
        assert await client.closed()

    run(scenario)


def test_sasl_requests_where_there_is_no_sasl():
    async def scenario(served):
        client = await served.connect()
        assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")).error_code == 34
        answer = await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0alice-secret")
        assert (answer.error_code, answer.error_message) == (
            34,
            "SaslAuthenticate request received after successful authentication",
        )
        assert await client.who() == "User:ANONYMOUS"

    run(scenario)


def test_hosts_are_in_javas_form():
    async def scenario(served):
        client = await served.connect()
        answer = await client.ask(DESCRIBE_CLUSTER, 1)
        assert answer.brokers[0].host == "127.0.0.1", "not ::ffff:127.0.0.1"

    everywhere = evolve(PLAINTEXT, bind=evolve(PLAINTEXT.bind, host=""))
    run(scenario, everywhere)


def test_stopping_completes_requests_in_flight():
    going = asyncio.Event()

    async def slow(request):
        going.set()
        await asyncio.sleep(0.1)
        raise RequestError(7)

    async def scenario(served):
        idle, busy, port = await served.connect(), await served.connect(), served.server.port
        assert await idle.who()
        busy.request(DESCRIBE_ACLS, 2)
        await going.wait()
        await served.server.stop(grace=30)
        assert (await busy.answer(DESCRIBE_ACLS, 2)).error_code == 7
        assert await busy.closed()
        assert await idle.closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    run(scenario, handlers={DESCRIBE_ACLS: slow})


def test_stopping_ends_what_takes_too_long():
    going = asyncio.Event()

    async def endless(request):
        going.set()
        await asyncio.Event().wait()

    async def scenario(served):
        client = await served.connect()
        client.request(DESCRIBE_ACLS, 2)
        await going.wait()
        await served.server.stop(grace=0.01)
        assert await client.closed()
        assert served.sample("aclog_connections_closed_total", listener="CLIENT", reason="stopped") == 1

    run(scenario, handlers={DESCRIBE_ACLS: endless})


def test_sasl_is_used_by_a_session():
    async def scenario(served):
        client = await served.connect()
        assert (await client.log_in()).error_code == 0
        assert await client.who() == "User:alice"

    run(scenario, SASL)
