"""Delegation tokens at a controller: requests, also in Envelopes, the log, and expiry."""

import asyncio
from datetime import timedelta

import pytest
from attrs import evolve

from aclog.authorizer.settings import KafkaPrincipal
from aclog.credentials.tokens import MAX_SWEPT, Renewer, TokenCreation, TokenSettings, token_hmac_bytes
from aclog.protocol import api_keys
from aclog.protocol.headers import decode_response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import EnvelopeRequest, decode_envelope_response, encode_principal
from aclog.protocol.session import SecurityProtocol
from aclog.server.loops import committed
from tests.support.nodes.controllers import formatted, handlers_of, running
from tests.support.nodes.node_requests import frame, request
from tests.support.tokens import answers as token_answers

SETTINGS = TokenSettings(secret="hush", max_lifetime_ms=1000, expiry_time_ms=400)
NOW = 1_800_000_000_000


def with_tokens(directory, settings=SETTINGS):
    return evolve(formatted(directory), tokens=settings)


def frozen(server, now=NOW):
    """Stop the controller's clock at the number in the list, which may be changed."""
    times = [now]
    server.serving.controller.clock = lambda: times[0]
    return times


def asking(api_key, version, message, user):
    made = request(api_key, version, message, user=user)
    return evolve(made, session=evolve(made.session, security_protocol=SecurityProtocol.SASL_PLAINTEXT))


def creation(version=3, owner="", renewers=()):
    named = tuple(
        build(38, version, "request", "CreatableRenewers", principal_type=kind, principal_name=name)
        for kind, name in renewers
    )
    return build(
        38, version, "request", renewers=named, owner_principal_type="User" if owner else "", owner_principal_name=owner
    )


async def create(server, user="alice", version=3, **fields):
    asked = asking(38, version, creation(version, **fields), user)
    body = await handlers_of(server)[38](asked)
    return token_answers.created(version, bytes(4 + (version >= 2)) + body)


async def change(server, api_key, token_hmac, user="alice", version=2, **fields):
    message = build(api_key, version, "request", hmac=token_hmac, **fields)
    body = await handlers_of(server)[api_key](asking(api_key, version, message, user))
    return token_answers.changed(version, bytes(4 + (version >= 2)) + body)


async def test_the_lifecycle_of_a_token(tmp_path):
    async with running(with_tokens(tmp_path)) as server:
        times = frozen(server)
        made = await create(server, renewers=[("User", "bob")])
        (token,) = server.publisher.current.tokens.records()
        assert made["hmac"] == token_hmac_bytes("hush", token.token_id)
        assert (made["code"], made["times"]) == (0, [NOW, NOW + 400, NOW + 1000])
        times[0] += 100
        assert await change(server, 39, made["hmac"], "bob") == (0, NOW + 500)
        assert await change(server, 39, made["hmac"], "dave") == (63, 0)
        assert await change(server, 40, made["hmac"], "bob") == (0, NOW + 100)
        (token,) = server.publisher.current.tokens.records()
        assert token.expiration_timestamp == NOW + 100
        times[0] += 1
        assert await change(server, 39, made["hmac"]) == (66, 0)


async def test_for_another(tmp_path):
    async with running(with_tokens(tmp_path)) as server:
        refused = await create(server, owner="carol")
        assert (refused["code"], refused["times"]) == (65, [-1, -1, -1])
        assert (await create(server, user="admin", owner="carol"))["who"] == ["User", "carol", "User", "admin"]
        assert (await create(server, renewers=[("Group", "g")]))["code"] == 67
        assert len(server.publisher.current.tokens) == 1


@pytest.mark.parametrize("version", [1, 2])
async def test_before_version_3_the_owner_is_the_requester(tmp_path, version):
    async with running(with_tokens(tmp_path)) as server:
        assert (await create(server, version=version))["who"] == ["User", "alice"]
        (token,) = server.publisher.current.tokens.records()
        assert (token.owner, token.requester) == ("User:alice", "User:alice")


@pytest.mark.parametrize("owner", [("", ""), ("User", ""), (None, None), ("User", None), ("User", "alice")])
async def test_an_owner_that_is_not_named_is_the_requester(tmp_path, owner):
    async with running(with_tokens(tmp_path)) as server:
        kind, name = owner
        message = build(38, 3, "request", renewers=(), owner_principal_type=kind, owner_principal_name=name)
        body = await handlers_of(server)[38](asking(38, 3, message, "alice"))
        assert token_answers.created(3, bytes(5) + body)["who"] == ["User", "alice", "User", "alice"]


async def test_who_requested_a_token_for_another_may_not_renew_it(tmp_path):
    """KIP-373 would let it; a real Kafka does not, even for a super user."""
    async with running(with_tokens(tmp_path)) as server:
        made = await create(server, user="admin", owner="carol", renewers=[("User", "bob")])
        for api_key in (39, 40):
            assert (await change(server, api_key, made["hmac"], "admin"))[0] == 63
            assert (await change(server, api_key, made["hmac"], "bob"))[0] == 0
            assert (await change(server, api_key, made["hmac"], "carol"))[0] in {0, 66}


@pytest.mark.parametrize("token_authenticated", [False, True])
async def test_in_an_envelope_the_clients_login_counts(tmp_path, token_authenticated):
    principal = KafkaPrincipal(type="User", name="alice")
    envelope = EnvelopeRequest(
        request_data=frame(38, 3, creation()),
        request_principal=encode_principal(principal, token_authenticated=token_authenticated),
        client_host_address=bytes((10, 0, 0, 5)),
    )
    async with running(with_tokens(tmp_path)) as server:
        body = await handlers_of(server)[api_keys.ENVELOPE](asking(api_keys.ENVELOPE, 0, envelope, "admin"))
        inside = decode_envelope_response(body, 0).response_data
        _, position = decode_response_header(38, 3, inside)
        found = token_answers.created(3, bytes(5) + inside[position:])
        assert found["code"] == (64 if token_authenticated else 0)
        assert found["who"] == ["User", "alice", "User", "alice"]


async def test_tokens_are_refused_on_plaintext(tmp_path):
    async with running(with_tokens(tmp_path)) as server:
        for api_key, message in ((39, build(39, 2, "request")), (40, build(40, 2, "request"))):
            body = await handlers_of(server)[api_key](request(api_key, 2, message))
            assert token_answers.changed(2, bytes(5) + body) == (64, -1)
        body = await handlers_of(server)[38](request(38, 3, creation()))
        assert token_answers.created(3, bytes(5) + body)["code"] == 64


async def test_without_a_secret_tokens_are_disabled(tmp_path):
    async with running(formatted(tmp_path)) as server:
        refused = await create(server)
        assert (refused["code"], refused["times"]) == (61, [0, 0, 0])
        assert await change(server, 39, b"x") == await change(server, 40, b"x") == (61, 0)
        assert await committed(server.serving.tokens.sweep()) == 0


async def test_tokens_are_found_after_a_restart(tmp_path):
    config = with_tokens(tmp_path, TokenSettings(secret="hush"))
    async with running(config) as server:
        made = [await create(server) for _ in range(3)]
        gone = await change(server, 40, made[1]["hmac"], expiry_time_period=timedelta(milliseconds=-1))
    async with running(config) as server:
        codes = [(await change(server, 39, each["hmac"]))[0] for each in made]
        assert (gone[0], codes) == (0, [0, 62, 0])


async def test_a_request_sees_uncommitted_tokens(tmp_path):
    """Pipelined requests are answered in order, each decided on the result of those before it."""
    async with running(with_tokens(tmp_path)) as server:
        frozen(server)
        writer = server.serving.tokens
        token_id = (await create(server))["token_id"]
        secret = token_hmac_bytes("hush", token_id)
        asked = [writer.expire(secret, "User:alice", -1), writer.renew(secret, "User:alice", -1)]
        assert [(await committed(each)).error_code for each in asked] == [0, 62]


async def test_sweeps(tmp_path):
    async with running(with_tokens(tmp_path)) as server:
        times, writer = frozen(server), server.serving.tokens
        asked = TokenCreation(
            owner="User:a", requester="User:a", renewers=(Renewer(type="User", name="b"),), max_lifetime_ms=-1
        )
        made = [writer.create(asked) for _ in range(MAX_SWEPT + 2)]
        for each in made:
            await committed(each)
        times[0] += 400
        assert await committed(writer.sweep()) == 0
        times[0] += 1
        kept = await create(server)
        assert [await committed(writer.sweep()) for _ in range(3)] == [MAX_SWEPT, 2, 0]
        assert [token.token_id for token in server.publisher.current.tokens.records()] == [kept["token_id"]]


async def test_expired_tokens_are_removed_periodically(tmp_path):
    settings = evolve(SETTINGS, expiry_check_interval_ms=1)
    async with running(with_tokens(tmp_path, settings)) as server:
        times = frozen(server)
        await create(server)
        times[0] += 401
        async with asyncio.timeout(20):
            while len(server.publisher.current.tokens):
                await asyncio.sleep(0.002)
