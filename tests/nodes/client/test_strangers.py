"""Connections to what is no Kafka listener, or not the right one: the error says what is there, and is in time."""

import asyncio
import socket
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from aclog.client import connection
from aclog.client.connection import Service, connect, probe
from aclog.client.errors import LoginError, SilentError, StrangerError
from aclog.config.node_config import ClientSecurity, HostPort, TlsSettings
from aclog.protocol.session import SecurityProtocol
from tests.support.processes.waiting import SECONDS

PLAINTEXT = ClientSecurity()
SSL = ClientSecurity(security_protocol=SecurityProtocol.SSL, tls=TlsSettings())


@pytest.fixture
def silent():
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield HostPort(host="127.0.0.1", port=listening.getsockname()[1])


@pytest.fixture
def web():
    """The address of an HTTP server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        yield HostPort(host="127.0.0.1", port=server.server_address[1])
        server.shutdown()
        serving.join()


@pytest.mark.parametrize("security", [PLAINTEXT, SSL])
@pytest.mark.tier("test")
def test_an_http_server_is_found_before_the_time_is_up(web, security):
    with pytest.raises(
        (StrangerError, LoginError), match=f"{web}: an HTTP server listens there: expected the port of a Kafka"
    ):
        asyncio.run(connect(web, security, timeout=300))


@pytest.mark.tier("test")
def test_a_silent_server_is_waited_for_as_long_as_was_said(silent):
    with pytest.raises(SilentError, match=r"no response within 0\.5 s: it accepts connections, but does not respond"):
        asyncio.run(connect(silent, PLAINTEXT, timeout=0.5))
    assert asyncio.run(probe(silent)).service is Service.UNKNOWN


def test_a_login_is_not_sent_to_who_does_not_answer(silent):
    """What a stranger is asked holds no user and no password."""
    said = []

    async def listen(reader, writer):
        said.append(await reader.read(4096))
        writer.close()

    async def go():
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        address = HostPort(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
        security = ClientSecurity(
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            sasl_mechanism="PLAIN",
            username="u53r",
            password="5ecret",
        )
        with pytest.raises(Exception, match="closed the connection"):
            await connect(address, security, timeout=SECONDS)
        server.close()

    asyncio.run(go())
    assert len(said) > 1
    assert not any(b"5ecret" in each or b"u53r" in each for each in said)


def test_nobody_waits_for_a_look_that_hangs_once_another_one_tells(monkeypatch):
    """This HTTP server refuses a request of Kafka's, and leaves a TLS hello without an answer."""
    monkeypatch.setattr("aclog.client.connection._LOOK_SECONDS", 3_600)

    async def answer(reader, writer):
        said = await reader.read(4096)
        if said.startswith((b"GET", b"\x00")):  # a request of Kafka's begins with its size
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            writer.close()
        else:
            await reader.read()
            writer.close()

    async def go():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        found = await probe(HostPort(host="127.0.0.1", port=server.sockets[0].getsockname()[1]))
        server.close()
        return found.service

    assert asyncio.run(go()) is Service.HTTP


def certificate(*, odd_version=False, odd_extensions=False):
    """A certificate, perhaps of a version that does not exist, or with an extension twice."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime(2026, 1, 1, tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kafka")])
    names = [x509.DNSName("broker.example")]
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.IssuerAlternativeName(names), critical=False)
    data = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
    if odd_version:
        data = data.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07", 1)
    return data.replace(b"\x55\x1d\x12", b"\x55\x1d\x11", 1) if odd_extensions else data


def test_an_odd_certificate_is_none_and_has_no_names():
    assert connection._names(connection._certificate(certificate())) == ["broker.example"]
    assert connection._certificate(certificate(odd_version=True)) is None
    assert connection._certificate(b"no certificate") is None
    assert connection._names(connection._certificate(certificate(odd_extensions=True))) == []
