"""Connections to servers that respond, misbehave, stall and disconnect."""

import asyncio
from functools import partial
from unittest import mock

import pytest
from attrs import frozen

from aclog.client.connection import Connection, connect
from aclog.client.errors import LoginError, StrangerError, UnreachableError
from aclog.client.requests import CONTROLLERS, describe_cluster, describe_features
from aclog.config.node_config import ClientAuth, ClientSecurity, HostPort, TlsSettings
from aclog.credentials import scram as scram_module
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.protocol.api_keys import (
    API_VERSIONS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    ENVELOPE,
    FETCH,
    FETCH_SNAPSHOT,
    METADATA,
    SASL_AUTHENTICATE,
)
from aclog.protocol.headers import FrameBuffer, RequestError
from aclog.protocol.messages import build
from aclog.protocol.responses import ApiVersion
from aclog.protocol.session import SecurityProtocol
from aclog.security.sasl import PlainServer, ScramServer
from aclog.security.tls import server_context
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum
from tests.support.kafka.server import free_port
from tests.support.nodes.certificates import Authority

PLAINTEXT = ClientSecurity()


def described(version, body, **changes):
    """A DescribeCluster response with one broker; the cluster id is made from the request's endpoint type."""
    broker = build(60, version, "response", "DescribeClusterBroker", broker_id=1, host="h", port=7)
    values = {"cluster_id": f"id {body.endpoint_type}", "controller_id": 1, "brokers": (broker,)} | changes
    return build(60, version, "response", **values)


@pytest.fixture
def server():
    with FakeLeader(FakeQuorum(), handlers={60: described}) as node:
        yield node


async def opened(node, security=PLAINTEXT, timeout=10.0):
    return await connect(node.address, security, timeout=timeout)


def run(node, what, security=PLAINTEXT, timeout=10.0):
    """Return the result of `what(connection)`."""

    async def go():
        async with await opened(node, security, timeout) as connection:
            return await what(connection)

    return asyncio.run(go())


def test_knows_the_servers_versions(server):
    async def what(connection):
        return connection.version(1, 17, 18), (await describe_cluster(connection)).cluster_id

    assert run(server, what) == (18, "id 1")


def test_pipelined_requests_get_their_own_responses(server):
    async def what(connection):
        kinds = [number % 9 + 1 for number in range(200)]
        answers = await asyncio.gather(*(describe_cluster(connection, kind) for kind in kinds))
        assert [answer.cluster_id for answer in answers] == [f"id {kind}" for kind in kinds]

    run(server, what)


def test_an_older_server_gets_its_version():
    apis = (ApiVersion(60, 0, 0), ApiVersion(18, 0, 4))
    old = FakeLeader(FakeQuorum(), apis=apis, handlers={60: lambda v, _: build(60, v, "response", cluster_id=f"v{v}")})
    with old:
        assert run(old, describe_cluster).cluster_id == "v0"
        with pytest.raises(ConfigError, match="DescribeCluster is supported in version 0: expected version 1"):
            run(old, partial(describe_cluster, endpoint_type=CONTROLLERS))
        with pytest.raises(ConfigError, match="Fetch is not supported: expected versions 17 to 18"):
            run(old, lambda connection: asyncio.sleep(0, connection.version(1, 17, 18)))


def test_features(server):
    assert run(server, describe_features).finalized == {"metadata.version": 30}


def test_a_servers_error_has_its_code(server):
    server.handlers[60] = lambda version, body: described(version, body, error_code=31, error_message="no")
    with pytest.raises(RequestError, match="no") as caught:
        run(server, describe_cluster)
    assert caught.value.code == 31


def test_nobody_listens():
    address = HostPort(host="127.0.0.1", port=free_port())
    with pytest.raises(UnreachableError, match=f"{address}: no connection: Connection refused"):
        asyncio.run(connect(address, PLAINTEXT))


def test_an_invalid_host():
    for host in ("no-such-host.invalid", "a..b", "x" * 300, "a\0b"):
        with pytest.raises(UnreachableError, match="no connection"):
            asyncio.run(connect(HostPort(host=host, port=1), PLAINTEXT))


def test_a_missing_response_ends_the_connection(server):
    async def what(connection):
        server.faults.silent, connection.timeout = 1, 0.2
        first = asyncio.create_task(describe_cluster(connection, 1))
        second = asyncio.create_task(describe_cluster(connection, 2))
        for task in (first, second):
            with pytest.raises(UnreachableError):
                await task
        with pytest.raises(UnreachableError, match=r"no response within|not a Kafka response"):
            await describe_cluster(connection)

    run(server, what)


def test_a_lost_connection_fails_pending_and_later_requests(server):
    async def what(connection):
        server.faults.cut = 1
        tasks = [asyncio.create_task(describe_cluster(connection)) for _ in range(5)]
        answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        assert {type(answer) for answer in answers} == {UnreachableError}
        with pytest.raises(UnreachableError, match=r"the server closed the connection|was lost"):
            await describe_cluster(connection)

    run(server, what, timeout=300)


@pytest.mark.parametrize(
    ("garbage", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "frame length 1213486160"),
        (b"\xff" * 8, "frame length -1"),
        ((4).to_bytes(4) + (77).to_bytes(4), "not a Kafka response"),
        ((5).to_bytes(4) + (77).to_bytes(4) + b"\0", "a response with correlation id 77: expected 1"),
    ],
)
def test_garbage(server, garbage, error):
    async def what(connection):
        server.faults.garbage.append(garbage)
        with pytest.raises(UnreachableError, match=error):
            await describe_cluster(connection)

    run(server, what)


def test_a_truncated_response(server):
    async def what(connection):
        server.faults.garbage.append((7).to_bytes(4) + (1).to_bytes(4) + b"\0\0\0")
        with pytest.raises(DecodeError, match=f"{server.address}"):
            await describe_cluster(connection)
        with pytest.raises(UnreachableError, match="closed after a malformed response"):
            await describe_cluster(connection)

    run(server, what)


def test_a_response_without_a_request(server):
    async def what(connection):
        server.faults.garbage.append(b"".join((5).to_bytes(4) + n.to_bytes(4) + b"\0" for n in (1, 2)))
        with pytest.raises(DecodeError):
            await describe_cluster(connection)
        with pytest.raises(UnreachableError):
            await describe_cluster(connection)

    run(server, what)


def test_a_cancelled_requests_response_is_dropped(server):
    async def what(connection):
        server.faults.delay = 0.02
        gone = asyncio.create_task(describe_cluster(connection, 1))
        await asyncio.sleep(0)
        kept = asyncio.create_task(describe_cluster(connection, 2))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await kept).cluster_id == "id 2"

    run(server, what)


def test_a_closed_connection(server):
    async def what(connection):
        waiting = asyncio.create_task(describe_cluster(connection))
        await asyncio.sleep(0)
        await connection.close()
        await connection.close()
        with pytest.raises(UnreachableError, match="closed"):
            await waiting
        with pytest.raises(UnreachableError, match="closed"):
            await describe_cluster(connection)

    run(server, what)


def test_raw_bodies_pass_through(server):
    async def what(connection):
        payload, position = await connection.send(60, 1, b"\0\x02\0")
        assert b"id 2" in payload[position:]

    run(server, what)


def test_a_large_response(server):
    server.handlers[60] = lambda version, body: described(
        version,
        body,
        brokers=tuple(
            build(60, version, "response", "DescribeClusterBroker", broker_id=n, host="h" * 50, port=1)
            for n in range(50_000)
        ),
    )
    assert len(run(server, describe_cluster).nodes) == 50_000


# Logging in

USERS = {"admin": "admin-secret"}


def scram_server(name, password="admin-secret"):
    mechanism = next(each for each in ScramMechanism if each.mechanism_name == name)
    salted = scram_module.salted_password(mechanism, password, b"salt" * 4, 4096)
    record = UserScramCredentialRecord(
        name="admin",
        mechanism=mechanism,
        salt=b"salt" * 4,
        stored_key=scram_module.stored_key(mechanism, scram_module.client_key(mechanism, salted)),
        server_key=scram_module.server_key(mechanism, salted),
        iterations=4096,
    )
    return ScramServer(scram_mechanism=mechanism, credentials=_Known(record))


@frozen
class _Known:
    """The credentials of one user."""

    record: UserScramCredentialRecord
    ready = True
    decoy_key = b"of a cluster"
    tokens_enabled = False

    def scram(self, user, mechanism):
        return self.record if (user, mechanism) == (self.record.name, self.record.mechanism) else None


def login(mechanism):
    """Serve a login."""
    if mechanism == "PLAIN":
        return PlainServer(users=USERS)
    return scram_server(mechanism) if mechanism.startswith("SCRAM") else None


def sasl(mechanism="PLAIN", password="admin-secret", protocol=SecurityProtocol.SASL_PLAINTEXT, **more):
    return ClientSecurity(
        security_protocol=protocol, sasl_mechanism=mechanism, username="admin", password=password, **more
    )


@pytest.fixture
def strict_server():
    with FakeLeader(FakeQuorum(), handlers={60: described}, login=login) as node:
        yield node


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logs_in(strict_server, mechanism):
    assert run(strict_server, describe_cluster, sasl(mechanism)).cluster_id == "id 1"
    with pytest.raises(LoginError, match=rf"{strict_server.address}: Authentication failed"):
        run(strict_server, describe_cluster, sasl(mechanism, "guessed"))


def test_a_mechanism_that_is_not_enabled(strict_server):
    strict_server.login = lambda mechanism: None
    with pytest.raises(LoginError, match="SASL mechanism SCRAM-SHA-256 is not enabled; the server offers PLAIN"):
        run(strict_server, describe_cluster, sasl("SCRAM-SHA-256"))


def test_a_server_that_does_not_know_the_password(strict_server):
    class Impostor:
        """Accepts any proof, and cannot prove that it knows the password."""

        complete = False

        def __init__(self):
            self.real = scram_server("SCRAM-SHA-256")

        def step(self, message):
            if b"p=" not in message:
                return self.real.step(message)
            self.complete = True
            return b"v=" + b"A" * 43 + b"="

    strict_server.login = lambda mechanism: Impostor()
    with pytest.raises(LoginError, match="does not prove the password"):
        run(strict_server, describe_cluster, sasl("SCRAM-SHA-256"))


def test_no_response_without_a_login(strict_server):
    with pytest.raises(StrangerError, match=r"the listener is SASL_PLAINTEXT, .*sasl\.mechanism=PLAIN and"):
        run(strict_server, describe_cluster)


def test_unusable_settings(strict_server):
    for wrong in (sasl("GSSAPI"), ClientSecurity(security_protocol=SecurityProtocol.SASL_PLAINTEXT)):
        with pytest.raises(ConfigError):
            run(strict_server, describe_cluster, wrong)


@pytest.fixture(scope="module")
def authority():
    return Authority.make("authority")


@pytest.fixture
def tls_files(authority, tmp_path):
    authority.write_pem(tmp_path / "trust.pem")
    authority.issue("server", hosts=["localhost"]).write_pem(tmp_path / "server.pem")
    authority.issue("client").write_pem(tmp_path / "client.pem")
    Authority.make("another").write_pem(tmp_path / "other.pem")
    return tmp_path


def settings(directory, trust="trust.pem", key=None, **more):
    store = {} if key is None else {"keystore": directory / key, "keystore_type": "PEM"}
    return TlsSettings(truststore=directory / trust, truststore_type="PEM", **store, **more)


@pytest.fixture
def tls_server(tls_files):
    context = server_context(settings(tls_files, key="server.pem", client_auth=ClientAuth.REQUESTED))
    with FakeLeader(FakeQuorum(), handlers={60: described}, context=context) as node:
        yield node


def over_tls(tls):
    return ClientSecurity(security_protocol=SecurityProtocol.SSL, tls=tls)


@pytest.mark.parametrize("key", [None, "client.pem"])
def test_tls(tls_server, tls_files, key):
    assert run(tls_server, describe_cluster, over_tls(settings(tls_files, key=key))).cluster_id == "id 1"


def test_an_untrusted_server(tls_server, tls_files):
    with pytest.raises(LoginError, match=f"{tls_server.address}: TLS: "):
        run(tls_server, describe_cluster, over_tls(settings(tls_files, trust="other.pem")))


def test_a_certificate_for_another_host(tls_server, tls_files):
    async def go(tls):
        address = HostPort(host="127.0.0.1", port=tls_server.port)
        async with await connect(address, over_tls(tls)) as connection:
            return await describe_cluster(connection)

    with pytest.raises(LoginError, match=r"TLS: .*127\.0\.0\.1"):
        asyncio.run(go(settings(tls_files)))
    assert asyncio.run(go(settings(tls_files, endpoint_identification=False))).cluster_id == "id 1"


def test_tls_to_a_server_without_it(server, tls_files):
    with pytest.raises((LoginError, UnreachableError), match=f"localhost:{server.port}"):
        asyncio.run(connect(HostPort(host="localhost", port=server.port), over_tls(settings(tls_files))))


def test_no_tls_to_a_server_with_it(tls_server):
    with pytest.raises(UnreachableError, match=r"expected security\.protocol=(SASL_)?SSL in"):
        asyncio.run(connect(tls_server.address, PLAINTEXT))


def test_a_login_over_tls(tls_files):
    context = server_context(settings(tls_files, key="server.pem"))
    with FakeLeader(FakeQuorum(), handlers={60: described}, login=login, context=context) as node:
        secured = sasl("SCRAM-SHA-512", protocol=SecurityProtocol.SASL_SSL, tls=settings(tls_files))
        assert run(node, describe_cluster, secured).cluster_id == "id 1"


def test_the_size_of_a_response_is_that_of_its_api():
    """A forwarded request may list all ACLs in its Envelope; before a login a megabyte is enough."""

    def most(api_key):
        connection, frames = Connection(HostPort(host="h", port=1), "aclog", 1.0, None, None), FrameBuffer(max_bytes=1)
        connection._in_flight.append(mock.Mock(header=mock.Mock(api_key=api_key)))
        assert connection._next_response(frames) is None
        return frames.max_bytes >> 20

    assert [most(key) for key in (ENVELOPE, DESCRIBE_ACLS, FETCH, FETCH_SNAPSHOT)] == [256] * 4
    assert [most(key) for key in (METADATA, CREATE_ACLS, DELETE_ACLS)] == [64] * 3
    assert [most(key) for key in (API_VERSIONS, SASL_AUTHENTICATE)] == [1] * 2
    assert [most(key) for key in (DESCRIBE_CLUSTER, DESCRIBE_QUORUM)] == [4] * 2
