"""TLS listeners: principals from certificates, failed handshakes and their alerts, handshake timeouts."""

import asyncio
import contextlib
import ssl
import tracemalloc

import pytest
from attrs import evolve

from aclog.config.node_config import ClientAuth, TlsSettings
from aclog.protocol.api_keys import DESCRIBE_ACLS
from aclog.protocol.session import SecurityProtocol
from aclog.security.tls import client_context, server_context
from tests.support.nodes.certificates import Authority
from tests.support.nodes.served_listener import PLAINTEXT, SASL, run

TLS = evolve(PLAINTEXT, name="TLS", security_protocol=SecurityProtocol.SSL)
SASL_TLS = evolve(SASL, security_protocol=SecurityProtocol.SASL_SSL)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    where = tmp_path_factory.mktemp("stores")
    authority, stranger = Authority.make(), Authority.make("another root")
    return {
        "trusted": authority.write_pem(where / "trusted.pem"),
        "server": authority.issue("server").write_pem(where / "server.pem"),
        "client": authority.issue("alice").write_pem(where / "client.pem"),
        "stranger": stranger.issue("mallory").write_pem(where / "stranger.pem"),
    }


def settings(stores, key=None, auth=ClientAuth.NONE):
    return TlsSettings(
        keystore=stores[key] if key else None,
        keystore_type="PEM",
        truststore=stores["trusted"],
        truststore_type="PEM",
        client_auth=auth,
    )


def served(stores, auth):
    return server_context(settings(stores, "server", auth))


async def connect(served, stores, key=None):
    return await served.connect(ssl=client_context(settings(stores, key)), server_hostname="localhost")


@pytest.mark.parametrize(
    ("auth", "key", "principal"),
    [
        (ClientAuth.NONE, None, "User:ANONYMOUS"),
        (ClientAuth.REQUESTED, None, "User:ANONYMOUS"),
        (ClientAuth.REQUESTED, "client", "User:CN=alice"),
        (ClientAuth.REQUIRED, "client", "User:CN=alice"),
    ],
)
def test_principals(stores, auth, key, principal):
    async def scenario(served):
        client = await connect(served, stores, key)
        assert await client.who() == principal

    run(scenario, TLS, tls=served(stores, auth))


@pytest.mark.parametrize("key", [None, "stranger"])
def test_clients_without_a_trusted_certificate_are_refused(stores, key):
    async def scenario(served):
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await (await connect(served, stores, key)).who()
        await served.settled(
            lambda: served.sample("aclog_authentication_failures_total", listener="TLS", mechanism="TLS") == 1
        )
        assert await (await connect(served, stores, "client")).who() == "User:CN=alice"

    run(scenario, TLS, tls=served(stores, ClientAuth.REQUIRED))


def test_a_name_that_no_rule_matches_is_refused(stores):
    async def scenario(served):
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await (await connect(served, stores, "client")).who()
        assert served.sample("aclog_authentication_failures_total", listener="TLS", mechanism="TLS") == 1

    run(scenario, TLS, tls=served(stores, ClientAuth.REQUIRED), rules="RULE:^CN=bob$/bob/")


def test_the_sasl_principal_wins_over_the_certificate(stores):
    async def scenario(served):
        client = await connect(served, stores, "client")
        assert (await client.log_in()).error_code == 0
        assert await client.who() == "User:alice"

    run(scenario, SASL_TLS, tls=served(stores, ClientAuth.REQUESTED))


def test_stalled_handshakes_count_and_are_aborted(stores):
    async def scenario(served):
        quiet = [await served.connect() for _ in range(3)]
        await served.settled(lambda: served.admission.connections == 3)
        assert await (await served.connect()).closed(), "they count before they are done"
        for client in quiet:
            assert await client.closed()
        await served.settled(lambda: served.admission.connections == 0)
        assert await (await connect(served, stores)).who() == "User:ANONYMOUS"

    run(scenario, TLS, tls=served(stores, ClientAuth.NONE), connections=3, authentication_seconds=1.5)


@pytest.mark.parametrize(
    "data", [b"\0\0\0\x0d\0\x12\0\0\0\0\0\7\0\3abc", b"\x16\3\1\2\0\1\0\1\xfc\3\3" + bytes(600), b"GET /\r\n\r\n"]
)
def test_plaintext_on_a_tls_listener_closes(stores, data):
    async def scenario(served):
        client = await served.connect()
        client.send(data)
        await client.reader.read()
        assert await (await connect(served, stores)).who() == "User:ANONYMOUS"

    run(scenario, TLS, tls=served(stores, ClientAuth.NONE))


def test_large_answers_go_through(stores):
    async def large(request):
        return bytes(4 << 20)

    async def scenario(served):
        client = await connect(served, stores)
        client.request(DESCRIBE_ACLS, 2)
        assert len(await client.frame()) == 5 + (4 << 20)

    run(scenario, TLS, tls=served(stores, ClientAuth.NONE), handlers={DESCRIBE_ACLS: large})


def test_a_client_may_be_told_by_close(stores):
    async def scenario(served):
        client = await connect(served, stores)
        assert await client.who()
        client.writer.close()
        with contextlib.suppress(ssl.SSLError):
            await client.writer.wait_closed()
        await served.settled(lambda: served.admission.connections == 0)

    run(scenario, TLS, tls=served(stores, ClientAuth.NONE))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(("key", "alert"), [(None, "CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE"), ("stranger", "UNKNOWN")])
def test_a_client_receives_the_alert_for_its_certificate(stores, version, key, alert):
    async def scenario(served):
        context = client_context(evolve(settings(stores, key), protocols=(version,)))
        with pytest.raises(ssl.SSLError, match=alert):
            await (await served.connect(ssl=context, server_hostname="localhost")).who()
        await served.settled(lambda: served.admission.connections == 0)

    run(scenario, TLS, tls=served(stores, ClientAuth.REQUIRED))


def test_a_client_that_ignores_its_alert_is_disconnected(stores):
    async def scenario(served):
        client = await served.connect()
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                client.send(bytes(10_000))
                await asyncio.sleep(0.001)
        await served.settled(lambda: served.admission.connections == 0)
        assert served.sample("aclog_authentication_failures_total", listener="TLS", mechanism="TLS") == 1

    run(scenario, TLS, tls=served(stores, ClientAuth.NONE))


def test_an_idle_connection_takes_little_memory(stores):
    async def scenario(served):
        tracemalloc.start()
        quiet = [await served.connect() for _ in range(20)]
        await served.settled(lambda: served.admission.connections == 20)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size < 20 * (100 << 10)
        for client in quiet:
            client.close()

    run(scenario, TLS, tls=served(stores, ClientAuth.NONE))
