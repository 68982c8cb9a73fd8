"""A client connection to a Kafka server, theirs or ours: pipelined requests, responses in request order."""

import asyncio
import errno
import os
import re
import socket
import ssl
from asyncio import Future, StreamReader, StreamWriter, Task
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

from attrs import define, field

from aclog.authorizer.api_keys import api_name
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.nodes.client.errors import AbsentError, LoginError, SilentError, UnreachableError
from aclog.nodes.client.kafka_releases import release_with
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.api_versions import ApiVersion
from aclog.nodes.wire.frames import FrameBuffer, frame
from aclog.nodes.wire.headers import RequestHeader, decode_response_header, encode_header
from aclog.nodes.wire.messages import decode_response, encode_request

MAX_RESPONSE_BYTES = 256 << 20
"""A larger response is refused: no Kafka server sends one."""

Explain: TypeAlias = Callable[[UnreachableError], Awaitable[UnreachableError]]
"""Returns a failure with its reason, if that can be found out."""

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
    """One connection, owned by one event loop; opened and authenticated by `aclog.nodes.client.login.connect`.

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
    """Called if the server ends the connection instead of answering the next request."""
    _failure: UnreachableError | None = field(default=None, init=False)
    _receiver: "Task[None] | None" = field(default=None, init=False)

    @classmethod
    async def open(cls, address: HostPort, context: ssl.SSLContext | None, *, client_id: str, timeout: float) -> Self:
        """Open a connection and send nothing; `timeout`, in seconds, holds for this and for each response.

        Raises:
            UnreachableError: nobody listens there (AbsentError), or it does not speak TLS.
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
        except (OSError, ValueError) as error:  # a name that another node tells may be none: ValueError
            raise AbsentError(f"{address}: no connection: {_what(error)}{_hint(error)}") from None
        connection = cls(address, client_id, timeout, *opened)
        # Reads at all times, so that an idle connection which the server closes is known to be closed before its next
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
            ConfigError: there is none.

        """
        served = self.apis.get(api_key)
        best = -1 if served is None else min(newest, served.max_version)
        if served is None or best < max(oldest, served.min_version):
            wanted = ApiVersion(api_key, oldest, newest)
            raise ConfigError(f"{self.address}: {_unsupported(served, wanted)}: expected {_versions(wanted)}")
        return best

    async def ask(self, message: Any, timeout: float | None = None, *, whole: bool = False) -> Any:
        """Send a request and return its response, both as kio's messages.

        `timeout` in seconds overrides the connection's. With `whole`, bytes after the response are an error: for lists
        that must not be cut short silently.

        Raises:
            UnreachableError: the connection was closed, or no response arrived in time.
            DecodeError: the response is malformed. The connection is closed.
            EncodeError: a value does not fit its field.

        """
        api_key, version = int(message.__api_key__), int(message.__version__)
        payload, position = await self.send(api_key, version, encode_request(message), timeout)
        try:
            return decode_response(api_key, version, payload, position, whole=whole)
        except DecodeError as error:
            self._fail(UnreachableError(f"{self.address}: closed after a malformed response: {error}"))
            raise error.at(path=str(self.address)) from None

    async def send(self, api_key: int, version: int, body: bytes, timeout: float | None = None) -> tuple[bytes, int]:
        """Send a request with an encoded body; return the response's payload, and the position of its body.

        Raises as `ask`. If the caller is cancelled, the response is dropped on arrival.
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
            self.explain = None  # it was silent, and did not end the connection
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
                while (payload := frames.next()) is not None:
                    self._handle_response(payload)
            self._fail(UnreachableError(f"{self.address}: the server closed the connection"))
        except OSError as error:
            lost = UnreachableError(f"{self.address}: the connection was lost: {_what(error)}")
            lost.__cause__ = error
            self._fail(lost)
        except DecodeError as error:
            self.explain = None  # it answers, if with nonsense: the listener is the right one
            self._fail(UnreachableError(f"{self.address}: not a Kafka response: {error}"))

    def _handle_response(self, payload: bytes) -> None:
        if not self._in_flight:
            raise DecodeError("a response without a request")
        header, response = self._in_flight[0].header, self._in_flight[0].response
        found, position = decode_response_header(header.api_key, header.api_version, payload)
        if found != header.correlation_id:
            raise DecodeError(f"a response with correlation id {found}: expected {header.correlation_id}")
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


def _what(error: OSError | ValueError) -> str:
    """Return one reason in the operating system's words; asyncio joins those of several addresses into one text."""
    numbers = set(_ERRNO.findall(str(error)))
    return os.strerror(int(numbers.pop())) if len(numbers) == 1 else str(error) or type(error).__name__


def _hint(error: OSError | ValueError) -> str:
    """Return what to look at, beginning with a colon; nothing if the reason says it."""
    if isinstance(error, socket.gaierror):
        return ": expected a host name that this machine can resolve"
    refused = isinstance(error, ConnectionRefusedError) or {str(errno.ECONNREFUSED)} == set(_ERRNO.findall(str(error)))
    return ": nothing listens on that port: is the server up, and is it a port of its `listeners`?" if refused else ""


def _unsupported(served: ApiVersion | None, wanted: ApiVersion) -> str:
    """Return what is wrong with the served versions of an API: of an older server, of a newer one, or none."""
    what = f"{api_name(wanted.api_key)} is {'not supported' if served is None else f'supported in {_versions(served)}'}"
    release = release_with(wanted.api_key, wanted.min_version)
    if release is None or (served is not None and served.max_version >= wanted.min_version):
        return what
    return f"{'no broker, or ' if served is None else ''}older than {release}: {what}"


def _versions(api: ApiVersion) -> str:
    least, most = api.min_version, api.max_version
    return f"version {least}" if least == most else f"versions {least} to {most}"
