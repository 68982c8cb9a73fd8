"""Client connections to a Kafka server, theirs or ours: opened, authenticated, and diagnosed on failure."""

import asyncio
import errno
import os
import re
import socket
import ssl
from asyncio import Future, StreamReader, StreamWriter, Task
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias

from attrs import field
from cryptography import x509
from cryptography.x509.oid import NameOID

from aclog.authorizer.audit import api_name
from aclog.client.errors import (
    AbsentError,
    LoginError,
    SilentError,
    StrangerError,
    UnreachableError,
    cut_text,
    release_with,
)
from aclog.config.node_config import ClientSecurity, HostPort, TlsSettings
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import FrameBuffer, RequestHeader, decode_response_header, encode_header, frame
from aclog.protocol.messages import decode_response, encode_request, message_type
from aclog.protocol.responses import ApiVersion
from aclog.protocol.session import SecurityProtocol
from aclog.security.principals import AuthenticationError
from aclog.security.sasl import sasl_client
from aclog.security.tls import client_context

# A client connection to a Kafka server, theirs or ours: pipelined requests, responses in request order.


MAX_RESPONSE_BYTES = 256 << 20
"""A larger response is refused: no Kafka server sends one."""

_MOST_BYTES = {
    **dict.fromkeys((api_keys.API_VERSIONS, api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE), 1 << 20),
    **dict.fromkeys(
        (api_keys.DESCRIBE_ACLS, api_keys.ENVELOPE, api_keys.FETCH, api_keys.FETCH_SNAPSHOT), MAX_RESPONSE_BYTES
    ),
    **dict.fromkeys(
        (api_keys.METADATA, api_keys.CREATE_ACLS, api_keys.DELETE_ACLS, api_keys.DESCRIBE_DELEGATION_TOKEN), 64 << 20
    ),
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: 32 << 20,
}
"""By API key. A message of small structures takes forty times its bytes in memory once it is decoded."""
_MOST_BYTES_OF_OTHERS = 4 << 20

Explain: TypeAlias = Callable[[UnreachableError], Awaitable[UnreachableError]]
"""Returns a failure with its cause, if it can be determined."""

_READ_BYTES = 1 << 20
_MIN_RESPONSE_BYTES = 4
_ERRNO = re.compile(r"\[Errno (\d+)\]")


@define(kw_only=True, eq=False)
class _InFlightRequest:
    """A request without a response yet: its header, on which the response's layout depends, and the waiting caller."""

    header: RequestHeader
    response: "Future[tuple[bytes, int]]"


@define(eq=False)
class Connection:
    """One connection, owned by one event loop; opened and authenticated by `aclog.client.connection.connect`.

    After the first failure it is closed: all in-flight and later requests raise that failure.
    """

    address: HostPort
    client_id: str
    timeout: float
    _reader: StreamReader
    _writer: StreamWriter
    apis: Mapping[int, ApiVersion] = field(factory=dict)
    """The server's API versions; empty before the login."""
    _next_id: int = field(default=0, init=False)
    _in_flight: deque[_InFlightRequest] = field(factory=deque, init=False)
    explain: Explain | None = field(default=None, init=False)
    """Called if the server closes the connection instead of responding to the next request."""
    _failure: UnreachableError | None = field(default=None, init=False)
    _receiver: "Task[None] | None" = field(default=None, init=False)

    @classmethod
    async def open(cls, address: HostPort, context: ssl.SSLContext | None, *, client_id: str, timeout: float) -> Self:
        """Open a connection and send nothing; `timeout`, in seconds, holds for this and for each response.

        Raises:
            UnreachableError: nothing listens there (AbsentError), or it does not speak TLS.
            LoginError: the server's certificate is not trusted, or the server requires a client certificate.

        """
        name = None if context is None else address.host
        try:
            async with asyncio.timeout(timeout):
                opened = await asyncio.open_connection(
                    address.host, address.port, ssl=context, server_hostname=name, limit=_READ_BYTES
                )
        except TimeoutError:
            what = "connection" if context is None else "TLS connection"
            why = "is there a firewall in between, and is the address right?"
            raise AbsentError(f"{address}: no {what} within {timeout:g} s: {why}") from None
        except ssl.SSLError as error:
            raise LoginError(f"{address}: TLS: {_reason(error)}") from error
        except ConnectionResetError as error:
            raise UnreachableError(f"{address}: no connection: {_what(error)}") from error
        except (OSError, ValueError, OverflowError) as error:  # an address from another node may be no address
            raise AbsentError(f"{address}: no connection: {_what(error)}{_hint(error)}") from None
        connection = cls(address, client_id, timeout, *opened)
        # Reads at all times, so that a connection that the server closes while idle is detected before its next
        # use.
        connection._receiver = asyncio.create_task(connection._receive())
        return connection

    @property
    def failure(self) -> UnreachableError | None:
        """Why the connection is closed; None while it is open."""
        return self._failure

    def version(self, api_key: int, oldest: int, newest: int) -> int:
        """Return the newest version of an API that both sides support; we support `oldest` to `newest`.

        Raises:
            ConfigError: no common version.

        """
        served = self.apis.get(api_key)
        best = -1 if served is None else min(newest, served.max_version)
        if served is None or best < max(oldest, served.min_version):
            required = ApiVersion(api_key, oldest, newest)
            raise ConfigError(f"{self.address}: {_unsupported(served, required)}: expected {_versions(required)}")
        return best

    async def ask(
        self,
        message: Any,
        timeout: float | None = None,
        *,
        whole: bool = False,
        check: Callable[[bytes, int], None] | None = None,
    ) -> Any:
        """Send a request and return its response, both as kio's messages.

        `timeout` in seconds overrides the connection's. With `whole`, bytes after the response are an error: for lists
        that must not be cut short silently. `check` gets the payload and the position of the body before it is decoded,
        and raises DecodeError.

        Raises:
            UnreachableError: the connection was closed, or no response arrived in time.
            DecodeError: the response is malformed. The connection is closed.
            EncodeError: a value does not fit its field.

        """
        api_key, version = int(message.__api_key__), int(message.__version__)
        payload, position = await self.send(api_key, version, encode_request(message), timeout)
        try:
            if check is not None:
                check(payload, position)
            return decode_response(api_key, version, payload, position, whole=whole)
        except DecodeError as error:
            self._fail(UnreachableError(f"{self.address}: closed after a malformed response: {error}"))
            raise error.at(path=str(self.address)) from None

    async def send(self, api_key: int, version: int, body: bytes, timeout: float | None = None) -> tuple[bytes, int]:
        """Send a request with an encoded body; return the response's payload, and the position of its body.

        Raises as Connection.ask. If the caller is cancelled, the response is dropped on arrival.
        """
        try:
            return await self._send(api_key, version, body, timeout)
        except UnreachableError:
            explain, self.explain = self.explain, None
            if explain is None or self._failure is None:
                raise
            self._failure = await explain(self._failure)
            raise self._failure from None

    async def _send(self, api_key: int, version: int, body: bytes, timeout: float | None) -> tuple[bytes, int]:
        if self._failure is not None:
            raise self._failure
        header = RequestHeader(
            api_key=api_key, api_version=version, correlation_id=self._next_id, client_id=self.client_id
        )
        sent = _InFlightRequest(header=header, response=asyncio.get_running_loop().create_future())
        self._writer.write(frame(encode_header(header) + body))
        # No await between write and append: the queue's order must be the order on the wire.
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        self._in_flight.append(sent)
        seconds = self.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                await self._drain()
                return await sent.response
        except TimeoutError:
            self.explain = None  # a timeout, not a closed connection
            # Responses come in request order: once one is overdue, so are all behind it.
            raise self._fail(SilentError(f"{self.address}: no response within {seconds:g} s")) from None

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            self._fail(UnreachableError(f"{self.address}: the connection was lost: {_what(error)}"))

    async def _receive(self) -> None:
        """Hand each response to its caller, until the connection ends."""
        frames = FrameBuffer(max_bytes=MAX_RESPONSE_BYTES, min_bytes=_MIN_RESPONSE_BYTES)
        try:
            while data := await self._reader.read(_READ_BYTES):
                frames.feed(data)
                while (payload := self._next_response(frames)) is not None:
                    self._handle_response(payload)
            self._fail(UnreachableError(f"{self.address}: the server closed the connection"))
        except OSError as error:
            lost = UnreachableError(f"{self.address}: the connection was lost: {_what(error)}")
            lost.__cause__ = error
            self._fail(lost)
        except DecodeError as error:
            self.explain = None  # it responds, though not correctly: the listener is the right one
            self._fail(UnreachableError(f"{self.address}: not a Kafka response: {error}"))

    def _next_response(self, frames: FrameBuffer) -> bytes | None:
        """Return the next complete response; its request, which is the oldest in flight, limits its size."""
        if self._in_flight:
            most = _MOST_BYTES.get(self._in_flight[0].header.api_key, _MOST_BYTES_OF_OTHERS)
            frames.max_bytes = min(most, MAX_RESPONSE_BYTES)
        return frames.next()

    def _handle_response(self, payload: bytes) -> None:
        if not self._in_flight:
            raise DecodeError("a response without a request")
        header, response = self._in_flight[0].header, self._in_flight[0].response
        correlation_id, position = decode_response_header(header.api_key, header.api_version, payload)
        if correlation_id != header.correlation_id:
            raise DecodeError(f"a response with correlation id {correlation_id}: expected {header.correlation_id}")
        self._in_flight.popleft()
        self.explain = None
        if not response.done():
            response.set_result((payload, position))

    def _fail(self, failure: UnreachableError) -> UnreachableError:
        """Close the connection; return its first failure, which all callers get."""
        self._failure = failure = self._failure or failure
        self._writer.close()
        while self._in_flight:
            sent = self._in_flight.popleft()
            if not sent.response.done():
                sent.response.set_exception(failure)
                sent.response.exception()  # marks it as retrieved: a cancelled caller never looks at it
        return failure

    def give_up(self, why: UnreachableError) -> None:
        """Close at once: all in-flight and later requests raise `why`."""
        self.explain = None
        self._fail(why)

    def abort(self) -> None:
        """Close without waiting for the peer, who may be dead; bytes that are not sent yet are dropped."""
        self.give_up(UnreachableError(f"{self.address}: closed"))
        if self._receiver is not None:
            self._receiver.cancel()
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close, and wait at most a second for it. May be called again."""
        self.explain = None
        self._fail(UnreachableError(f"{self.address}: closed"))
        if self._receiver is not None:
            self._receiver.cancel()
            await asyncio.gather(self._receiver, return_exceptions=True)
        try:
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            # The peer does not acknowledge TLS's close; nothing of value is lost.
            self._writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", None) or error.reason or str(error)


def _what(error: OSError | ValueError | OverflowError) -> str:
    """Return one reason in the operating system's words; asyncio joins those of several addresses into one text."""
    numbers = set(_ERRNO.findall(str(error)))
    return os.strerror(int(numbers.pop())) if len(numbers) == 1 else str(error) or type(error).__name__


def _hint(error: OSError | ValueError | OverflowError) -> str:
    """Return a hint for an error, beginning with a colon; nothing if the error itself is clear."""
    if isinstance(error, socket.gaierror):
        return ": expected a host name that this machine can resolve"
    refused = isinstance(error, ConnectionRefusedError) or {str(errno.ECONNREFUSED)} == set(_ERRNO.findall(str(error)))
    return ": nothing listens on that port: is the server up, and is it a port of its `listeners`?" if refused else ""


def _unsupported(served: ApiVersion | None, required: ApiVersion) -> str:
    """Return why the served versions of an API do not suffice: an older server, a newer one, or none."""
    what = (
        f"{api_name(required.api_key)} is {'not supported' if served is None else f'supported in {_versions(served)}'}"
    )
    release = release_with(required.api_key, required.min_version)
    if release is None or (served is not None and served.max_version >= required.min_version):
        return what
    return f"{'no broker, or ' if served is None else ''}older than {release}: {what}"


def _versions(api: ApiVersion) -> str:
    least, most = api.min_version, api.max_version
    return f"version {least}" if least == most else f"versions {least} to {most}"


# The service at an address, as visible without a login: Kafka and its security protocol, or another service.


class Service(Enum):
    """The protocol of a peer."""

    KAFKA = auto()
    ZOOKEEPER = auto()
    HTTP = auto()
    UNKNOWN = auto()
    """It accepts connections, but responds to no probe."""


@frozen(kw_only=True)
class Peer:
    """The result of probing an address."""

    service: Service
    tls: bool = False
    sasl: bool = False
    mechanisms: tuple[str, ...] = ()
    """The SASL mechanisms that a listener offers."""
    certificate: x509.Certificate | None = None
    """The certificate of a TLS server; not verified."""
    wants_certificate: bool = False
    """Whether a TLS server ends connections of clients that have none."""

    @property
    def protocol(self) -> SecurityProtocol | None:
        """A Kafka listener's security protocol; None for another service."""
        if self.service is not Service.KAFKA:
            return None
        if self.tls:
            return SecurityProtocol.SASL_SSL if self.sasl else SecurityProtocol.SSL
        return SecurityProtocol.SASL_PLAINTEXT if self.sasl else SecurityProtocol.PLAINTEXT


class Role(Enum):
    """The role that a request requires of its server; the value is the flag that names such servers."""

    BROKER = "--bootstrap-server"
    CONTROLLER = "--bootstrap-controller"


def role_of(apis: Container[int]) -> Role | None:
    """Return the role of a server: brokers serve Metadata, controllers FetchSnapshot; None for neither."""
    if api_keys.METADATA in apis:
        return Role.BROKER
    return Role.CONTROLLER if api_keys.FETCH_SNAPSHOT in apis else None


# Error texts: why a connection failed, and the fix, from the failure and the service at the address.


PROPERTIES = "the client's properties (--command-config FILE)"
"""Where a user sets security.protocol and the rest."""

_EXPIRED, _NOT_YET_VALID, _HOST_MISMATCH, _ADDRESS_MISMATCH = 10, 9, 62, 64
"""X509_V_ERR_* of OpenSSL."""
_UNKNOWN_AUTHORITY = frozenset((2, 18, 19, 20, 21))


def mismatch(security: ClientSecurity, peer: Peer) -> str | None:
    """Return the error of the address or of security.protocol; None without one, or if it is unknown."""
    if peer.service is Service.ZOOKEEPER:
        return (
            "a ZooKeeper server listens there: expected a Kafka listener's address; ACLs in ZooKeeper are read with "
            "--authorizer-properties zookeeper.connect=HOST:PORT"
        )
    if peer.service is Service.HTTP:
        return "an HTTP server listens there: expected the port of a Kafka listener"
    ours = security.security_protocol
    if peer.tls and not ours.tls and (peer.protocol is None or peer.wants_certificate):
        protocol = SecurityProtocol.SASL_SSL if ours.sasl else SecurityProtocol.SSL
        return _expected(f"the listener speaks TLS, and security.protocol is {ours.value}", protocol, peer)
    if peer.protocol is None or peer.protocol is ours or peer.wants_certificate:
        return None
    return _expected(_differ(peer.protocol, ours), peer.protocol, peer, encrypted=ours.tls)


def no_login_wanted(security: ClientSecurity) -> str:
    """Return the fix if a listener without SASL was sent a login."""
    ours = security.security_protocol
    theirs = SecurityProtocol.SSL if ours.tls else SecurityProtocol.PLAINTEXT
    return _expected(_differ(theirs, ours), theirs, Peer(service=Service.KAFKA, tls=ours.tls))


def _differ(theirs: SecurityProtocol, ours: SecurityProtocol) -> str:
    return f"the listener is {theirs.value}, and security.protocol is {ours.value}"


def _expected(what: str, protocol: SecurityProtocol, peer: Peer, *, encrypted: bool = False) -> str:
    """Return the error and the setting to change; a client configured to encrypt gets a warning about plaintext."""
    more = ""
    if protocol.sasl and peer.mechanisms:
        more = f", sasl.mechanism={' or '.join(peer.mechanisms)} and a sasl.jaas.config"
    setting = f"security.protocol={protocol.value}{more} in {PROPERTIES}"
    if encrypted and not protocol.tls:
        return f"{what}: expected the port of a listener with TLS, or, on a trusted network only, {setting}"
    return f"{what}: expected {setting}"


def tls_failure(error: ssl.SSLError, address: HostPort, tls: TlsSettings, peer: Peer | None) -> str:
    """Return why a TLS handshake failed; `peer`, if known, has the server's certificate."""
    certificate = None if peer is None else peer.certificate
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: {error.verify_message.rstrip('.')}{_unverified(error.verify_code, address, tls, certificate)}"
    reason = error.reason or str(error)
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason or "HANDSHAKE_FAILURE" in reason):
        return f"TLS: {reason}: {_client_certificate(tls)}"
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        return (
            f"TLS: {reason}: expected an ssl.enabled.protocols that the server supports, not {','.join(tls.protocols)}"
        )
    return f"TLS: {reason}"


def _client_certificate(tls: TlsSettings) -> str:
    if tls.keystore is None and tls.certificate_chain_pem is None:
        return f"the server requires a client certificate: expected ssl.keystore.location in {PROPERTIES}"
    return (
        "the server refuses the certificate in ssl.keystore.location: expected one that is valid, of an authority in "
        "the server's ssl.truststore.location"
    )


def _unverified(code: int, address: HostPort, tls: TlsSettings, certificate: x509.Certificate | None) -> str:
    """Return the fix for a server's certificate, beginning with a colon; empty if unknown."""
    if code in _UNKNOWN_AUTHORITY:
        issuer = f" ({certificate.issuer.rfc4514_string()})" if certificate else ""
        if tls.truststore is None and tls.truststore_pem is None:
            return f": expected ssl.truststore.location with the server's authority{issuer} in {PROPERTIES}"
        where = tls.truststore or "ssl.truststore.certificates"
        return f": expected the server's authority{issuer} among those that {where} trusts"
    if code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
        names = f": it is for {', '.join(_names(certificate))}" if certificate and _names(certificate) else ""
        return (
            f"{names}: expected an address with a name of the certificate, or, if you trust the server, an empty "
            f"ssl.endpoint.identification.algorithm in {PROPERTIES}"
        )
    if code == _EXPIRED:
        since = f" on {certificate.not_valid_after_utc:%Y-%m-%d}" if certificate else ""
        return f"{since}: expected a renewed one in the server's ssl.keystore.location, or another clock here"
    if code == _NOT_YET_VALID:
        since = f" before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M}Z" if certificate else ""
        return f"{since}: expected a later time on the clock of this machine"
    return f" ({address})"


_ODD = ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType
"""What reading an odd certificate raises."""


def _names(certificate: x509.Certificate) -> list[str]:
    """Return the names and addresses that a certificate is for; its common name if it has no others."""
    try:
        with suppress(x509.ExtensionNotFound):
            alternative_names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            return [
                *alternative_names.get_values_for_type(x509.DNSName),
                *(str(each) for each in alternative_names.get_values_for_type(x509.IPAddress)),
            ]
        return [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    except _ODD:
        return []


def _certificate(encoded: bytes | None) -> x509.Certificate | None:
    """Return the certificate that a server has shown; None for nothing, or an odd one."""
    try:
        return x509.load_der_x509_certificate(encoded) if encoded else None
    except _ODD:
        return None


# Probes of an address, by connections of their own that carry no secret.
#
# A client with a wrong security.protocol sees a closed connection, or nonsense. The service is identified by its
# responses to the first bytes of several protocols.


_SOON_SECONDS = 1.0
"""After this time services other than Kafka are probed."""
_LOOK_SECONDS = 3.0
"""The timeout of each probe; they run at the same time, until one of them identifies the service."""
_Look: TypeAlias = Callable[[HostPort], Awaitable[Peer | None]]
_MAX_BYTES = 64 << 10
_TLS_RECORDS = b"\x15\x03", b"\x16\x03"
"""The first bytes of a TLS alert or handshake record: the response of a TLS server to a plaintext client."""
_HTTP, _HTTP_REQUEST = b"HTTP/", b"GET / HTTP/1.0\r\n\r\n"
_ZOOKEEPER, _ZOOKEEPER_REQUEST = (b"Zookeeper version", b"srvr is not executed"), b"srvr"
"""The one four-letter command that ZooKeeper answers by default."""
_MECHANISM = "PLAIN"
"""A mechanism that no listener offers: its response lists all mechanisms of the listener."""


async def probe(address: HostPort) -> Peer:
    """Return the service there, within four seconds; Service.UNKNOWN if no probe identifies it."""
    tasks = [_begun(_kafka, address), _begun(_kafka_in_tls, address)]
    try:
        peer = await _first_peer(tasks, _SOON_SECONDS)
        if peer is None:  # Kafka, which would log such requests, has usually responded before
            tasks += [_begun(_http, address), _begun(_zookeeper, address)]
        if peer is None or peer.service is Service.UNKNOWN:
            peer = await _first_peer(tasks, None) or peer
        return peer or Peer(service=Service.UNKNOWN)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_peer(tasks: Sequence["asyncio.Task[Peer | None]"], seconds: float | None) -> Peer | None:
    """Return the service that is identified first; after these seconds, the best guess so far."""
    best = None
    with suppress(TimeoutError):
        for task in asyncio.as_completed(tasks, timeout=seconds):
            peer = await task
            if peer is not None and peer.service is not Service.UNKNOWN:
                return peer
            best = best or peer
    return best


def _begun(look: _Look, address: HostPort) -> "asyncio.Task[Peer | None]":
    return asyncio.create_task(_in_time(look, address, _LOOK_SECONDS))


async def shown_certificate(address: HostPort, seconds: float) -> x509.Certificate | None:
    """Return the certificate of the TLS server there; None if no handshake returns one within `seconds`."""
    peer = await _in_time(_kafka_in_tls, address, seconds)
    return None if peer is None else peer.certificate


async def _in_time(look: _Look, address: HostPort, seconds: float) -> Peer | None:
    try:
        async with asyncio.timeout(seconds):
            return await look(address)
    except (OSError, ValueError, TimeoutError):  # ValueError: an invalid host name
        return None


async def _kafka(address: HostPort) -> Peer | None:
    async with _opened(address, None) as (reader, writer):
        return await _talk(reader, writer, tls=False)


async def _kafka_in_tls(address: HostPort) -> Peer | None:
    try:
        async with _opened(address, _trusting_anybody()) as (reader, writer):
            certificate = _certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            try:
                async with asyncio.timeout(_LOOK_SECONDS / 2):
                    peer = await _talk(reader, writer, tls=True, certificate=certificate)
            except TimeoutError:
                peer = None
            except ssl.SSLError as error:  # TLS 1.3 refuses a client without a certificate after the handshake
                return _refused(error, certificate)
            return peer or Peer(service=Service.UNKNOWN, tls=True, certificate=certificate)
    except ssl.SSLError as error:
        return _refused(error, None)


def _refused(error: ssl.SSLError, certificate: x509.Certificate | None) -> Peer | None:
    """Return a server that answers with a TLS alert; None for other nonsense."""
    reason = error.reason or ""
    if "ALERT" not in reason:
        return None
    # No other response reveals that a TLS listener of Kafka requires a certificate.
    wants = "CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason
    return Peer(
        service=Service.KAFKA if wants else Service.UNKNOWN, tls=True, certificate=certificate, wants_certificate=wants
    )


async def _talk(reader: StreamReader, writer: StreamWriter, **details: Any) -> Peer | None:
    """Return the Kafka listener that answers, and whether it wants a login; None if something else does."""
    frames = FrameBuffer(max_bytes=_MAX_BYTES, min_bytes=4)
    try:
        await _ask(reader, writer, frames, message_type(api_keys.API_VERSIONS, 0, "request")())
    except DecodeError:
        data = frames.rest
        if data.startswith(_TLS_RECORDS):
            return Peer(service=Service.UNKNOWN, tls=True)
        return Peer(service=Service.HTTP, **details) if data.startswith(_HTTP) else None
    try:
        login = await _ask(
            reader, writer, frames, message_type(api_keys.SASL_HANDSHAKE, 1, "request")(mechanism=_MECHANISM)
        )
    except DecodeError:
        return Peer(service=Service.KAFKA, **details)
    sasl = login.error_code != error_codes.ILLEGAL_SASL_STATE
    return Peer(service=Service.KAFKA, sasl=sasl, mechanisms=tuple(login.mechanisms), **details)


async def _ask(reader: StreamReader, writer: StreamWriter, frames: FrameBuffer, message: Any) -> Any:
    """Return the response to a request.

    Raises:
        DecodeError: no response, or a malformed one.

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
    data = await _answer(address, _ZOOKEEPER_REQUEST)
    return Peer(service=Service.ZOOKEEPER) if data.startswith(_ZOOKEEPER) else None


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
        writer.transport.abort()  # pending writes are irrelevant


def _trusting_anybody() -> ssl.SSLContext:
    """Return a context without a certificate and without verification: no secret is sent over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# Opening an authenticated connection: ApiVersions, then SASL (KIP-35, KIP-43, KIP-152).


DEFAULT_TIMEOUT_S = 10.0
"""The timeout of the connection, and of each response."""
_PATIENCE_S = 1.0
"""After this long without a connection, or a response to the first request, the address is probed."""


async def connect(
    address: HostPort, security: ClientSecurity, *, client_id: str = "aclog", timeout: float = DEFAULT_TIMEOUT_S
) -> Connection:
    """Open an authenticated connection, with the server's API versions.

    If the address is not a Kafka listener of this security protocol, the error names the service, and the fix.

    Raises:
        UnreachableError: nothing listens or responds in time, or the server cannot verify the login yet.
        LoginError: the login failed, or the server is not trusted.
        ConfigError: the security settings are unusable.
        DecodeError: a response is malformed.

    """
    opening, is_returned = asyncio.create_task(_open(address, security, client_id, timeout)), False
    try:
        # A silent server may wait for another protocol: the probe need not be awaited.
        await asyncio.wait((opening,), timeout=min(_PATIENCE_S, timeout / 2))
        if not opening.done():
            await _refuse_stranger(opening, address, security)
        connection = await opening
        is_returned = True
    except (AbsentError, StrangerError):
        raise
    except (UnreachableError, LoginError) as error:
        raise await _explained(error, address, security) from None
    finally:
        if not is_returned:
            opening.cancel()
            [unused] = await asyncio.gather(opening, return_exceptions=True)
            if isinstance(unused, Connection):  # opened just now, and not shared yet
                await unused.close()
    return connection


async def _open(address: HostPort, security: ClientSecurity, client_id: str, timeout: float) -> Connection:
    context = client_context(security.tls or TlsSettings()) if security.security_protocol.tls else None
    connection = await Connection.open(address, context, client_id=client_id, timeout=timeout)
    try:
        connection.apis = await _api_versions(connection)
        if security.security_protocol.sasl:
            await _log_in(connection, security)
        else:
            # A listener that wants a login answers ApiVersions, and ends the connection at any other request.
            connection.explain = partial(_explained_loss, address=address, security=security)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _refuse_stranger(opening: "asyncio.Task[Connection]", address: HostPort, security: ClientSecurity) -> None:
    """Probe the address while the connection is being opened; return once it is open, or if the address is right.

    Raises:
        StrangerError: not a Kafka listener, or not one of this security protocol.

    """
    looking = asyncio.create_task(probe(address))
    try:
        await asyncio.wait((opening, looking), return_when=asyncio.FIRST_COMPLETED)
        if not opening.done() and (wrong := mismatch(security, looking.result())):
            raise StrangerError(f"{address}: {wrong}")
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _explained(
    error: UnreachableError | LoginError, address: HostPort, security: ClientSecurity
) -> UnreachableError | LoginError:
    """Return the error with the service at the address and the fix, if they can be determined soon."""
    tls, cause = security.tls or TlsSettings(), error.__cause__
    if isinstance(error, LoginError) and not isinstance(cause, ssl.SSLError):
        return error  # the server has rejected the login with a reason
    if isinstance(error, SilentError):
        # The address has been probed already.
        return SilentError(
            f"{error}: it accepts connections, but does not respond: is the port right, does the server hang?"
        )
    peer = await probe(address)
    unverified = isinstance(cause, ssl.SSLCertVerificationError)  # certain, for any result of the probe
    if not unverified and (wrong := mismatch(security, peer)):
        kind = LoginError if isinstance(error, LoginError) else StrangerError
        return kind(f"{address}: {wrong}")
    if isinstance(cause, ssl.SSLError):
        return LoginError(f"{address}: {tls_failure(cause, address, tls, peer)}")
    return error


async def _explained_loss(error: UnreachableError, address: HostPort, security: ClientSecurity) -> UnreachableError:
    explanation = await _explained(error, address, security)
    return explanation if isinstance(explanation, UnreachableError) else UnreachableError(str(explanation))


async def _api_versions(connection: Connection) -> dict[int, ApiVersion]:
    """Send ApiVersions, in version 0, which every server supports, also before the login."""
    response = await connection.ask(message_type(api_keys.API_VERSIONS, 0, "request")())
    if response.error_code:
        raise UnreachableError(f"{connection.address}: ApiVersions failed with error {int(response.error_code)}")
    return {api.api_key: ApiVersion(api.api_key, api.min_version, api.max_version) for api in response.api_keys}


async def _log_in(connection: Connection, security: ClientSecurity) -> None:
    client = sasl_client(security)
    await _handshake(connection, client.mechanism, security)
    version = connection.version(api_keys.SASL_AUTHENTICATE, 0, 2)
    request = message_type(api_keys.SASL_AUTHENTICATE, version, "request")
    try:
        message: bytes | None = client.first()
        while message is not None:
            message = client.step(await _authenticate(connection, request, message, security))
    except AuthenticationError as error:
        raise LoginError(f"{connection.address}: {cut_text(str(error))}") from None
    # SCRAM is mutual: a server that skips its last message has not proved knowledge of the password.
    if not client.complete:
        raise LoginError(
            f"{connection.address}: the server ended the {client.mechanism} login without proving its identity"
        )


async def _handshake(connection: Connection, mechanism: str, security: ClientSecurity) -> None:
    response = await connection.ask(message_type(api_keys.SASL_HANDSHAKE, 1, "request")(mechanism=mechanism))
    if response.error_code == error_codes.UNSUPPORTED_SASL_MECHANISM:
        offered = cut_text(", ".join(response.mechanisms))
        raise LoginError(
            f"{connection.address}: SASL mechanism {mechanism} is not enabled; the server offers {offered}: "
            f"expected one of these as sasl.mechanism in {PROPERTIES}"
        )
    if response.error_code == error_codes.ILLEGAL_SASL_STATE:
        raise LoginError(f"{connection.address}: {no_login_wanted(security)}")
    if response.error_code:
        raise LoginError(f"{connection.address}: SaslHandshake failed with error {int(response.error_code)}")


async def _authenticate(
    connection: Connection, request: Callable[..., Any], message: bytes, security: ClientSecurity
) -> bytes:
    response = await connection.ask(request(auth_bytes=message))
    code = int(response.error_code)
    if code == error_codes.SASL_AUTHENTICATION_FAILED:
        text = cut_text(response.error_message or "the login failed")
        raise LoginError(
            f"{connection.address}: {text} (as {security.username}): expected a user and password in sasl.jaas.config "
            f"that are valid on the server for {security.sasl_mechanism}"
        )
    if code:
        # Such as from a node that has not replayed its credentials yet: the password may be right.
        what = cut_text(response.error_message or f"error {code}")
        raise UnreachableError(f"{connection.address}: the server cannot verify the login yet: {what}")
    return bytes(response.auth_bytes)
