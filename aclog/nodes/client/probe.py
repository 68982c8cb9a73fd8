"""Finding out what listens at an address, by connections of its own that carry no secret.

A client with a wrong security.protocol sees a closed connection, or nonsense. What is there tells itself by its answers
to the first words of several protocols.
"""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from cryptography import x509

from aclog.metalog.errors import DecodeError
from aclog.nodes.client.peer import Peer, Service
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.api_keys import API_VERSIONS, SASL_HANDSHAKE
from aclog.nodes.wire.error_codes import ILLEGAL_SASL_STATE
from aclog.nodes.wire.frames import FrameBuffer, frame
from aclog.nodes.wire.headers import RequestHeader, decode_response_header, encode_header
from aclog.nodes.wire.messages import decode_response, encode_request, message_type

_SOON_SECONDS = 1.0
"""After which others than Kafka are thought of."""
_LOOK_SECONDS = 3.0
"""For each connection; they are open at the same time, until one of them tells."""
_Look: TypeAlias = Callable[[HostPort], Awaitable[Peer | None]]
_MAX_BYTES = 64 << 10
_TLS_RECORDS = b"\x15\x03", b"\x16\x03"
"""How an alert or a handshake record begins: what a TLS server says to one who does not begin with TLS."""
_HTTP, _HTTP_REQUEST = b"HTTP/", b"GET / HTTP/1.0\r\n\r\n"
_ZOOKEEPER, _ZOOKEEPER_REQUEST = (b"Zookeeper version", b"srvr is not executed"), b"srvr"
"""The one four-letter command that ZooKeeper answers unless it is told otherwise."""
_MECHANISM = "PLAIN"
"""Asked for to learn which there are: a listener names them all, whichever is asked for."""


async def probe(address: HostPort) -> Peer:
    """Return what listens there, within four seconds; Service.UNKNOWN if nothing tells."""
    tasks = [_begun(_kafka, address), _begun(_kafka_in_tls, address)]
    try:
        known = await _first_told(tasks, _SOON_SECONDS)
        if known is None:  # a Kafka, which would log such requests, has mostly said something by now
            tasks += [_begun(_http, address), _begun(_zookeeper, address)]
        if known is None or known.service is Service.UNKNOWN:
            known = await _first_told(tasks, None) or known
        return known or Peer(service=Service.UNKNOWN)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_told(tasks: Sequence["asyncio.Task[Peer | None]"], seconds: float | None) -> Peer | None:
    """Return the service that is told first; else what is known without one after these seconds."""
    known = None
    with suppress(TimeoutError):
        for task in asyncio.as_completed(tasks, timeout=seconds):
            peer = await task
            if peer is not None and peer.service is not Service.UNKNOWN:
                return peer
            known = known or peer
    return known


def _begun(look: _Look, address: HostPort) -> "asyncio.Task[Peer | None]":
    return asyncio.create_task(_in_time(look, address, _LOOK_SECONDS))


async def shown_certificate(address: HostPort, seconds: float) -> x509.Certificate | None:
    """Return the certificate of what listens there with TLS; None if no handshake shows one within `seconds`."""
    peer = await _in_time(_kafka_in_tls, address, seconds)
    return None if peer is None else peer.certificate


async def _in_time(look: _Look, address: HostPort, seconds: float) -> Peer | None:
    try:
        async with asyncio.timeout(seconds):
            return await look(address)
    except (OSError, ValueError, TimeoutError):  # ValueError: a host name that is none
        return None


async def _kafka(address: HostPort) -> Peer | None:
    async with _opened(address, None) as (reader, writer):
        return await _talk(reader, writer, tls=False)


async def _kafka_in_tls(address: HostPort) -> Peer | None:
    try:
        async with _opened(address, _trusting_anybody()) as (reader, writer):
            encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            certificate = x509.load_der_x509_certificate(encoded) if encoded else None
            try:
                async with asyncio.timeout(_LOOK_SECONDS / 2):
                    found = await _talk(reader, writer, tls=True, certificate=certificate)
            except TimeoutError:
                found = None
            except ssl.SSLError as error:  # TLS 1.3 refuses a client without a certificate after the handshake
                return _refused(error, certificate)
            return found or Peer(service=Service.UNKNOWN, tls=True, certificate=certificate)
    except ssl.SSLError as error:
        return _refused(error, None)


def _refused(error: ssl.SSLError, certificate: x509.Certificate | None) -> Peer | None:
    """Return a server that answers with a TLS alert; None for other nonsense."""
    reason = error.reason or ""
    if "ALERT" not in reason:
        return None
    # Which TLS servers of Kafka require a certificate is told by no other answer.
    wants = "CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason
    return Peer(
        service=Service.KAFKA if wants else Service.UNKNOWN, tls=True, certificate=certificate, wants_certificate=wants
    )


async def _talk(reader: StreamReader, writer: StreamWriter, **known: Any) -> Peer | None:
    """Return the Kafka listener that answers, and whether it wants a login; None if something else does."""
    frames = FrameBuffer(max_bytes=_MAX_BYTES, min_bytes=4)
    try:
        await _ask(reader, writer, frames, message_type(API_VERSIONS, 0, "request")())
    except DecodeError:
        said = frames.rest
        if said.startswith(_TLS_RECORDS):
            return Peer(service=Service.UNKNOWN, tls=True)
        return Peer(service=Service.HTTP, **known) if said.startswith(_HTTP) else None
    try:
        login = await _ask(reader, writer, frames, message_type(SASL_HANDSHAKE, 1, "request")(mechanism=_MECHANISM))
    except DecodeError:
        return Peer(service=Service.KAFKA, **known)
    sasl = login.error_code != ILLEGAL_SASL_STATE
    return Peer(service=Service.KAFKA, sasl=sasl, mechanisms=tuple(login.mechanisms), **known)


async def _ask(reader: StreamReader, writer: StreamWriter, frames: FrameBuffer, message: Any) -> Any:
    """Return the response to a request.

    Raises:
        DecodeError: there is none, or what was said is none.

    """
    key, version = int(message.__api_key__), int(message.__version__)
    header = RequestHeader(api_key=key, api_version=version, correlation_id=key, client_id="aclog")
    writer.write(frame(encode_header(header) + encode_request(message)))
    while (payload := frames.next()) is None:
        if not (data := await reader.read(_MAX_BYTES)):
            raise DecodeError("the connection was closed")
        frames.feed(data)
    _, position = decode_response_header(key, version, payload)
    return decode_response(key, version, payload, position)


async def _zookeeper(address: HostPort) -> Peer | None:
    said = await _answer(address, _ZOOKEEPER_REQUEST)
    return Peer(service=Service.ZOOKEEPER) if said.startswith(_ZOOKEEPER) else None


async def _http(address: HostPort) -> Peer | None:
    return Peer(service=Service.HTTP) if (await _answer(address, _HTTP_REQUEST)).startswith(_HTTP) else None


async def _answer(address: HostPort, words: bytes) -> bytes:
    async with _opened(address, None) as (reader, writer):
        writer.write(words)
        return await reader.read(_MAX_BYTES)


@asynccontextmanager
async def _opened(
    address: HostPort, context: ssl.SSLContext | None
) -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    name = None if context is None else address.host
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=name)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()  # nothing that was written matters any more


def _trusting_anybody() -> ssl.SSLContext:
    """Return a context that shows no certificate and checks none: nothing secret is said over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
