"""SASL on a listener: what Kafka's server allows before, during and after authentication."""

import asyncio
import time
from hashlib import sha256

import pytest
from attrs import evolve

from aclog.config.node_config import ClientSecurity
from aclog.credentials import scram
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.records import UserScramCredentialRecord
from aclog.protocol.api_keys import DESCRIBE_CLUSTER, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from aclog.protocol.headers import frame
from aclog.protocol.session import SecurityProtocol
from aclog.security.sasl import sasl_client
from aclog.server.network.dispatch import Authentication
from tests.support.nodes.served_listener import SASL, FixedCredentials, run

SCRAM = evolve(SASL, sasl_mechanisms=("SCRAM-SHA-256", "PLAIN"))
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
SASL_WITH_AN_END = evolve(SASL, session_lifetimes_ms={"PLAIN": 3_600_000})


def credential(user="bob", password="bob-secret"):
    mechanism, salt = ScramMechanism.SCRAM_SHA_256, sha256(user.encode()).digest()
    salted = scram.salted_password(mechanism, password, salt, 4096)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=salt,
        stored_key=scram.stored_key(mechanism, scram.client_key(mechanism, salted)),
        server_key=scram.server_key(mechanism, salted),
        iterations=4096,
    )


async def scram_log_in(client, user="bob", password="bob-secret"):
    """Return the last response of the exchange; raise EOFError if there is none."""
    login = sasl_client(
        ClientSecurity(
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            sasl_mechanism="SCRAM-SHA-256",
            username=user,
            password=password,
        )
    )
    assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256")).error_code == 0
    message = login.first()
    while message is not None:
        found = await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=message)
        if found.error_code:
            return found
        message = login.step(found.auth_bytes)
    return found


def failures(served, mechanism="PLAIN"):
    return served.sample("aclog_authentication_failures_total", listener="SASL", mechanism=mechanism)


def test_the_java_clients_way():
    async def scenario(served):
        client = await served.connect()
        assert (await client.versions(0)).error_code == 0
        shaken = await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert (shaken.error_code, shaken.mechanisms) == (0, ("PLAIN", "SCRAM-SHA-256"))
        done = await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0alice-secret")
        assert (done.error_code, done.auth_bytes, done.session_lifetime.total_seconds()) == (0, b"", 0)
        assert (await client.versions(4)).error_code == 0
        assert await client.who() == "User:alice"
        assert served.sample("aclog_authentications_total", listener="SASL", mechanism="PLAIN") == 1

    run(scenario, SASL)


def test_an_unsupported_version_first():
    async def scenario(served):
        client = await served.connect()
        client.request(18, 77, b"")
        assert (await client.answer(18, 0)).error_code == 35
        assert (await client.versions(3)).error_code == 0
        assert (await client.log_in()).error_code == 0

    run(scenario, SASL)


@pytest.mark.parametrize(
    "exchange",
    [
        [(DESCRIBE_CLUSTER, 1, {})],
        [(METADATA, 13, {"topics": ()})],
        [(18, 0, {}), (18, 0, {})],
        [(SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0alice-secret"})],
    ],
)
def test_anything_else_before_authentication_closes(exchange):
    async def scenario(served):
        client = await served.connect()
        *before, (key, version, fields) = exchange
        for each, of, values in before:
            await client.ask(each, of, **values)
        client.request(key, version, **fields)
        assert await client.closed()

    run(scenario, SASL)


@pytest.mark.parametrize("payload", [b"", b"\x60\x82\x02\x00", b"GET / HTTP/1.1\r\n", bytes(64), b"\xff" * 64])
def test_garbage_before_authentication_closes(payload):
    async def scenario(served):
        client = await served.connect()
        client.send(frame(payload))
        assert await client.closed()

    run(scenario, SASL)


def test_a_mechanism_that_is_not_enabled():
    async def scenario(served):
        client = await served.connect()
        shaken = await client.ask(SASL_HANDSHAKE, 1, mechanism="GSSAPI\n")
        assert (shaken.error_code, shaken.mechanisms) == (33, ("PLAIN", "SCRAM-SHA-256"))
        assert await client.closed()
        assert failures(served, "none") == 1, "names that clients make up are no labels"

    run(scenario, SASL)


@pytest.mark.parametrize(("key", "fields"), [(SASL_HANDSHAKE, {"mechanism": "PLAIN"}), (18, {})])
def test_another_request_during_authentication(key, fields):
    async def scenario(served):
        client = await served.connect()
        await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert (await client.ask(key, 0, **fields)).error_code == 34
        assert await client.closed()

    run(scenario, SASL)


def test_a_bad_password_is_answered_late_and_closes():
    async def scenario(served):
        client = await served.connect()
        begin = time.monotonic()
        found = await client.log_in(password="wrong")
        assert time.monotonic() - begin >= 0.1
        assert (found.error_code, found.error_message) == (
            58,
            "Authentication failed: Invalid username or password",
        )
        assert await client.closed()
        assert failures(served) == 1
        await served.settled(
            lambda: served.sample("aclog_connections_closed_total", listener="SASL", reason="authentication") == 1
        )

    run(scenario, SASL)


def test_a_delayed_failure_does_not_delay_others():
    async def scenario(served):
        failing = await served.connect()
        await failing.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        failing.request(SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0wrong")
        await served.settled(lambda: failures(served) == 1)
        client = await served.connect()
        assert (await client.log_in()).error_code == 0

    run(scenario, SASL, failed_authentication_seconds=30.0)


def test_bare_tokens_after_a_handshake_of_version_0():
    async def scenario(served):
        client = await served.connect()
        await client.ask(SASL_HANDSHAKE, 0, mechanism="PLAIN")
        client.send(frame(b"\0a\0b"))
        assert await client.frame() == b""
        assert await client.who() == "User:a"
        client = await served.connect()
        await client.ask(SASL_HANDSHAKE, 0, mechanism="PLAIN")
        client.send(frame(b"\0a\0wrong"))
        assert await client.closed()
        client = await served.connect()
        await client.ask(SASL_HANDSHAKE, 0, mechanism="PLAIN")
        client.send(frame(b""))
        assert await client.closed()
        assert failures(served) == 2

    run(scenario, SASL)


def test_frames_are_small_before_authentication():
    async def scenario(served):
        client = await served.connect()
        client.send((1001).to_bytes(4, "big"))
        assert await client.closed()
        client = await served.connect()
        await client.log_in()
        client.request(DESCRIBE_CLUSTER, 1, b"\0\1\0" + bytes(100_000))
        assert (await client.answer(DESCRIBE_CLUSTER, 1)).error_code == 0

    run(scenario, SASL, unauthenticated_frame_bytes=1000)


def test_scram():
    async def scenario(served):
        client = await served.connect()
        assert (await scram_log_in(client)).error_code == 0
        assert await client.who() == "User:bob"
        for user, password in (("bob", "wrong"), ("nobody", "bob-secret")):
            client = await served.connect()
            found = await scram_log_in(client, user, password)
            assert (found.error_code, found.error_message) == (58, INVALID)
            assert await client.closed()
        assert failures(served, "SCRAM-SHA-256") == 2

    run(scenario, SCRAM, credentials=FixedCredentials({("bob", ScramMechanism.SCRAM_SHA_256): credential()}))


def test_scram_before_the_credentials_are_replayed_fails_retriably():
    async def scenario(served):
        client = await served.connect()
        with pytest.raises(asyncio.IncompleteReadError):
            await scram_log_in(client)
        assert failures(served, "SCRAM-SHA-256") == 0
        client = await served.connect()
        assert (await client.log_in()).error_code == 0, "PLAIN needs no log"
        served.server.credentials.ready = True
        assert (await scram_log_in(await served.connect())).error_code == 0

    run(
        scenario,
        SCRAM,
        credentials=FixedCredentials({("bob", ScramMechanism.SCRAM_SHA_256): credential()}, ready=False),
    )


def test_reauthentication():
    async def scenario(served):
        client = await served.connect()
        await client.log_in()
        assert (await client.log_in()).error_code == 0
        assert await client.who() == "User:alice"
        found = await client.log_in("a", "b")
        assert (found.error_code, found.error_message) == (
            58,
            "Cannot change principals during re-authentication from User.alice: User.a",
        )
        assert await client.closed()

        client = await served.connect()
        await client.log_in()
        await client.ask(SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
        found = await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"n,,n=alice,r=x")
        assert found.error_message == (
            "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of "
            "mechanism 'PLAIN'"
        )

        client = await served.connect()
        await client.log_in()
        await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        refused = await client.ask(DESCRIBE_CLUSTER, 1)
        assert refused.error_code == 34, "no requests while it is not known who it is"
        assert await client.closed()

    run(scenario, SASL_WITH_AN_END)


def test_a_login_without_an_end_cannot_be_renewed():
    """Neither connections.max.reauth.ms nor a token: ILLEGAL_SASL_STATE, and the connection goes on as it was."""

    async def scenario(served):
        client = await served.connect()
        await client.log_in()
        for version in (0, 1):
            refused = await client.ask(SASL_HANDSHAKE, version, mechanism="PLAIN")
            assert (refused.error_code, refused.mechanisms) == (34, ())
            assert await client.who() == "User:alice"

    run(scenario, SASL)


def test_a_request_during_reauthentication_is_rejected():
    async def scenario(served):
        client = await served.connect()
        await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        refused = await client.ask(DESCRIBE_CLUSTER, 1)
        text = "Unexpected Kafka request of type DESCRIBE_CLUSTER during SASL authentication."
        assert (refused.error_code, refused.error_message, refused.cluster_id) == (34, text, "")
        assert await client.closed()

    run(scenario, SASL)


def test_sasl_authenticate_without_a_handshake():
    async def scenario(served):
        client = await served.connect()
        await client.log_in()
        assert (await client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"")).error_code == 34
        assert await client.who() == "User:alice"

    run(scenario, SASL)


class Expiring:
    """A login with a delegation token that expires."""

    mechanism, token_authenticated, expiry_ms = "SCRAM-SHA-256", True, 61_000

    def __init__(self):
        self.complete = False

    def step(self, message):
        self.complete = True
        return b""


def test_the_lifetime_of_a_login(monkeypatch):
    monkeypatch.setattr("aclog.server.network.dispatch.sasl_server", lambda *_, **__: Expiring())
    now = [1000]
    client = Authentication(listener=SCRAM, credentials=FixedCredentials(), versions=None, clock=lambda: now[0])
    handshake = bytes.fromhex("0011 0001 00000001 ffff 000d") + b"SCRAM-SHA-256"
    token = bytes.fromhex("0024 0001 00000002 ffff 00000001 00")
    assert client.receive(handshake).failure is None
    assert client.receive(token).response.endswith((60_000).to_bytes(8, "big"))
    assert not client.expired
    now[0] = 61_000
    assert client.expired


@pytest.mark.parametrize(("longest", "told"), [(2000, 2000), (90_000, 60_000)])
def test_a_listener_with_max_reauth_ms(monkeypatch, longest, told):
    """connections.max.reauth.ms: a session ends with it or with its token, whichever is sooner."""
    monkeypatch.setattr("aclog.server.network.dispatch.sasl_server", lambda *_, **__: Expiring())
    now, listener = [1000], evolve(SCRAM, session_lifetimes_ms={"SCRAM-SHA-256": longest})
    client = Authentication(listener=listener, credentials=FixedCredentials(), versions=None, clock=lambda: now[0])
    handshake = bytes.fromhex("0011 0001 00000001 ffff 000d") + b"SCRAM-SHA-256"
    token = bytes.fromhex("0024 0001 00000002 ffff 00000001 00")
    client.receive(handshake)
    assert client.receive(token).response.endswith(told.to_bytes(8, "big"))
    now[0] += told - 1
    assert not client.expired
    now[0] += 1
    assert client.expired


def test_a_password_login_lasts_for_max_reauth_ms():
    async def scenario(served):
        client = await served.connect()
        done = await client.log_in()
        assert (done.error_code, done.session_lifetime.total_seconds()) == (0, 3600)
        assert await client.who() == "User:alice"

    run(scenario, SASL_WITH_AN_END)


def test_an_expired_login_ends_the_connection(monkeypatch):
    async def scenario(served):
        client = await served.connect()
        await client.log_in()
        monkeypatch.setattr(Authentication, "expired", True)
        client.request(DESCRIBE_CLUSTER, 1)
        assert await client.closed()
        client = await served.connect()
        await client.log_in()
        assert (await client.log_in()).error_code == 0, "which is how it goes on"

    run(scenario, SASL_WITH_AN_END)


def test_frames_are_small_during_reauthentication():
    async def scenario(served):
        client = await served.connect()
        await client.log_in()
        await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.request(SASL_AUTHENTICATE, 2, auth_bytes=bytes(5000))
        assert await client.closed()

        client = await served.connect()
        await client.log_in()
        await client.log_in()
        client.request(DESCRIBE_CLUSTER, 1, bytes(5000))
        await client.frame()

    run(scenario, SASL_WITH_AN_END, unauthenticated_frame_bytes=4000)
