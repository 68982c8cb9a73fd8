"""A minimal HTTP/1.1 server for /metrics, /healthz and /readyz."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias

from attrs import field
from prometheus_client import CONTENT_TYPE_LATEST

from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import define, frozen
from aclog.server.connection_budget import ConnectionBudget, Shares, Slot, network_of

Check: TypeAlias = Callable[[], str | None]
"""Returns None if healthy, otherwise the problem in one line."""

_TEXT = "text/plain; charset=utf-8"
_HEAD_BYTES = 8192
_SECONDS = 5.0
HTTP_CONNECTIONS = 256
"""So many that a probe's connection is not the oldest one before its request arrives, even in a burst of others."""

_STEPS_TO_SERVE = 3
"""Turns of the event loop from accepting a connection to serving it. One that was accepted must get that far before the
server is closed: until Python 3.12, asyncio leaves its socket open otherwise."""

_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class _Response:
    status: HTTPStatus
    body: bytes
    content_type: str = _TEXT


@define(eq=False, kw_only=True)
class HttpEndpoint:
    """Serves one request per connection: 8 KiB and 5 seconds each, 256 at a time.

    A further connection replaces the oldest one that has not sent a whole request, of the network that holds
    most: a probe always gets through, however many connections are idle.

    There is no authentication, so without a host in the address it listens on loopback only.
    """

    address: HostPort
    metrics: Callable[[], bytes]
    """The content of /metrics (Metrics.text)."""
    healthy: Check
    """The check of /healthz: on failure the process should be restarted."""
    ready: Check
    """The check of /readyz: on failure no clients should be routed here."""
    flag: str = "aclog.http.listener"
    """Where the address was given, for the error."""
    _server: asyncio.Server | None = field(default=None, init=False)
    _budget: ConnectionBudget = field(
        factory=lambda: ConnectionBudget(shares=Shares.equal(HTTP_CONNECTIONS)), init=False
    )
    """Busy: those that have not taken their whole answer yet."""
    _writers: set[asyncio.StreamWriter] = field(factory=set, init=False)
    _tasks: "set[asyncio.Task[None] | None]" = field(factory=set, init=False)
    """One for each connection."""

    async def start(self) -> None:
        """Listen. Raises ConfigError if the address cannot be bound."""
        host = self.address.host or "127.0.0.1"
        try:
            self._server = await asyncio.start_server(self._serve, host, self.address.port, limit=_HEAD_BYTES)
        except (OSError, UnicodeError) as error:  # UnicodeError: a host that cannot be a name
            where = HostPort(host=host, port=self.address.port)
            what = (isinstance(error, OSError) and error.strerror) or error
            raise ConfigError(f"{self.flag}: cannot listen on {where}: {what}") from error

    @property
    def port(self) -> int:
        """The bound port, also if port 0 is configured."""
        if self._server is None:
            raise RuntimeError("the HTTP endpoint is not listening")
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the socket and all connections."""
        if self._server is None:
            return
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(_STEPS_TO_SERVE):
            await asyncio.sleep(0)
        self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()  # since Python 3.12 wait_closed also waits for open connections
        await asyncio.gather(*filter(None, self._tasks), return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        slot = self._budget.open(network_of(peer[0] if peer else ""), lambda _: writer.transport.abort())
        if slot is None:  # never: a budget without identities always has a place
            writer.transport.abort()
            return
        self._writers.add(writer)
        self._tasks.add(task := asyncio.current_task())
        writer.transport.set_write_buffer_limits(0)  # drained means sent: nothing is left to linger after the close
        try:
            async with asyncio.timeout(_SECONDS):
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    await self._exchange(reader, writer, slot)
        except TimeoutError:
            writer.transport.abort()
        finally:
            self._budget.close(slot)
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, slot: Slot) -> None:
        method = b""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, version = head.split(b"\r\n", 1)[0].split(b" ")
            is_valid = version.startswith(b"HTTP/1.") and not _has_two_lengths(head)
            response = self._guarded(method, target) if is_valid else _plain(HTTPStatus.BAD_REQUEST)
        except asyncio.LimitOverrunError:
            response = _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except ValueError:
            response = _plain(HTTPStatus.BAD_REQUEST)
        slot.is_busy = True
        writer.write(_encoded(response, with_body=method != b"HEAD"))
        await writer.drain()

    def _guarded(self, method: bytes, target: bytes) -> _Response:
        try:
            return self._respond(method, target)
        except Exception:  # noqa: BLE001 - a failing gauge must not look like a dead node
            _log.exception("HTTP endpoint: request failed")
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _respond(self, method: bytes, target: bytes) -> _Response:
        if method not in (b"GET", b"HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED)
        match target.partition(b"?")[0]:
            case b"/metrics":
                return _Response(status=HTTPStatus.OK, body=self.metrics(), content_type=CONTENT_TYPE_LATEST)
            case b"/healthz":
                return _checked(self.healthy)
            case b"/readyz":
                return _checked(self.ready)
        return _plain(HTTPStatus.NOT_FOUND)


def _has_two_lengths(head: bytes) -> bool:
    """Return whether a request's end is not certain (RFC 9112, section 6.3)."""
    names = {line.partition(b":")[0].strip().lower() for line in head.split(b"\r\n")[1:]}
    return names.issuperset((b"content-length", b"transfer-encoding"))


def _checked(check: Check) -> _Response:
    trouble = check()
    if trouble is None:
        return _plain(HTTPStatus.OK, "ok")
    return _plain(HTTPStatus.SERVICE_UNAVAILABLE, printable(trouble))  # a path in it may be no text


def _plain(status: HTTPStatus, text: str | None = None) -> _Response:
    return _Response(status=status, body=f"{text or status.phrase}\n".encode())


def _encoded(response: _Response, *, with_body: bool) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if response.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\nContent-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n{allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (response.body if with_body else b"")
