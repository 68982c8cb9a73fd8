"""A listener: its socket, its connections and their deadlines (kafka.network.SocketServer)."""

import asyncio
import logging
import socket
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from ssl import SSLContext

from attrs import define, field

from aclog.authorizer.hosts import host_address
from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import HostPort, Listener
from aclog.nodes.connection_budget import Slot
from aclog.nodes.security.login_credentials import Credentials
from aclog.nodes.server.acceptor import Acceptor
from aclog.nodes.server.admission import Admission
from aclog.nodes.server.connection import Connection
from aclog.nodes.server.dispatch import Dispatcher
from aclog.nodes.server.frame_stream import FrameStream, scratch_buffer
from aclog.nodes.server.handshake import Handshake, prepare
from aclog.nodes.session import ANONYMOUS
from aclog.nodes.telemetry.metrics import Metrics

_BACKLOG = 512

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class ListenerServer:
    """Serves one listener on the running event loop. Created, started and stopped once.

    `admission` and `credentials` are shared by the node, `dispatcher` by listeners of the same kind. `tls` is the TLS
    context, if any; its owner may load new certificates into it at any time. `certificate_principal` returns the
    principal of an SSLObject's peer, or raises AuthenticationError.
    """

    listener: Listener
    dispatcher: Dispatcher
    admission: Admission
    credentials: Credentials
    tls: SSLContext | None = None
    certificate_principal: Callable[[object], KafkaPrincipal] = lambda _: ANONYMOUS
    _acceptor: Acceptor | None = field(default=None, init=False)
    _scratch: memoryview = field(factory=scratch_buffer, init=False)
    _connections: dict["asyncio.Task[None]", FrameStream] = field(factory=dict, init=False)
    _deadline_task: "asyncio.Task[None] | None" = field(default=None, init=False)

    async def start(self) -> None:
        """Bind, listen, and serve clients. Raises ConfigError if the address cannot be bound."""
        if self.tls is not None:
            prepare(self.tls)
        listening = listen(self.listener.bind, f"listener {self.listener.name}")
        self._acceptor = Acceptor(listening=listening, name=self.listener.name, take=self._start_connection)
        self._deadline_task = asyncio.create_task(self._abort_expired())
        self._acceptor.start()
        self._metrics.connections.labels(self.listener.name).set_function(lambda: len(self._connections))

    @property
    def port(self) -> int:
        """The bound port, also if port 0 is configured."""
        if self._acceptor is None:
            raise RuntimeError(f"listener {self.listener.name} is not listening")
        return int(self._acceptor.listening.getsockname()[1])

    async def stop(self, grace: float = 5.0) -> None:
        """Stop accepting and reading, give in-flight requests `grace` seconds, then close all connections."""
        if self._acceptor is None or self._deadline_task is None:
            return
        self._acceptor.stop()
        self._acceptor = None
        for stream in self._connections.values():
            stream.finish()
        if self._connections:
            await asyncio.wait(self._connections, timeout=grace)
        # Only after the grace period: aborting earlier would lose responses to requests that are committed already.
        self._deadline_task.cancel()
        for task, stream in tuple(self._connections.items()):
            stream.abort("stopped")
            task.cancel()
        await asyncio.gather(self._deadline_task, *self._connections, return_exceptions=True)

    @property
    def _metrics(self) -> Metrics:
        return self.admission.metrics

    def _start_connection(self, connected: socket.socket) -> None:
        try:
            host, address = peer(connected)
        except (OSError, ValueError, ConfigError):
            connected.close()  # disconnected already, or an address that no ACL could name
            return
        stream = FrameStream(self.admission, self._scratch)
        # Before the TLS handshake, the expensive part of a connection.
        slot = self.admission.admit(host, lambda _: stream.give_up(connected))
        if slot is None:
            self._metrics.refused.labels(self.listener.name).inc()
            connected.close()
            return
        self._metrics.accepted.labels(self.listener.name).inc()
        connected.setblocking(False)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        task = asyncio.create_task(self._serve(connected, stream, host, address, slot))
        self._connections[task] = stream
        task.add_done_callback(lambda ended: self._on_closed(ended, host, slot))

    def _on_closed(self, task: "asyncio.Task[None]", host: str, slot: Slot) -> None:
        stream = self._connections.pop(task)
        self.admission.release(host, slot)
        self._metrics.closed.labels(self.listener.name, stream.ended or "stopped").inc()
        if not task.cancelled() and task.exception() is not None:
            _log.error("connection failed", exc_info=task.exception())

    async def _serve(
        self, connected: socket.socket, stream: FrameStream, host: str, address: bytes, slot: Slot
    ) -> None:
        if not await self._connect(connected, stream, host):
            return
        await Connection(
            stream=stream,
            listener=self.listener,
            dispatcher=self.dispatcher,
            admission=self.admission,
            credentials=self.credentials,
            host=host,
            address=address,
            slot=slot,
            certificate_principal=self.certificate_principal,
        ).run()
        await stream.closed()

    async def _connect(self, connected: socket.socket, stream: FrameStream, host: str) -> bool:
        """Attach the stream to the socket, after a TLS handshake if the listener has TLS; return success."""
        loop = asyncio.get_running_loop()
        handshake = Handshake(context=self.tls, connected=connected) if self.tls is not None else None
        tls = None if handshake is None else handshake.as_context()
        seconds = self.admission.limits.authentication_seconds if tls is not None else None
        try:
            await loop.connect_accepted_socket(lambda: stream, connected, ssl=tls, ssl_handshake_timeout=seconds)
        except ConnectionAbortedError:
            stream.ended = "authentication"  # what asyncio raises on its handshake timeout
            self._refused("timed out", host)
            return False
        except OSError:
            if stream.ended is not None:  # it had to give way
                return False
            stream.ended = "client"
            if handshake is not None and handshake.error is not None:
                stream.ended = "authentication"
                self._refused(handshake.error.reason, host)
            return False
        return True

    def _refused(self, why: str, host: str) -> None:
        self._metrics.authentication_failures.labels(self.listener.name, "TLS").inc()
        _log.info("TLS handshake failed: %s", why, extra={"listener": self.listener.name, "host": host})

    async def _abort_expired(self) -> None:
        """Abort the connections whose deadline has passed, polling at a quarter of the shortest timeout."""
        limits, loop = self.admission.limits, asyncio.get_running_loop()
        shortest = min(limits.idle_seconds, limits.authentication_seconds, limits.request_seconds)
        while True:
            await asyncio.sleep(min(1.0, shortest / 4))
            now = loop.time()
            for stream in tuple(self._connections.values()):
                if stream.deadline <= now:
                    stream.abort_waiting()


def listen(address: HostPort, what: str) -> socket.socket:
    """Return a non-blocking listening socket; an empty host binds all IPv6 and IPv4 addresses.

    A host name resolves to its first address, IPv4 preferred, as in Java. Error texts begin with `what`.

    Raises:
        ConfigError: The address does not exist or is in use.

    """
    try:
        family, where = _resolve(address)
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _failed(address, what, error) from error
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(address.host)))
        listening.bind(where)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _failed(address, what, error) from error
    return listening


def _resolve(address: HostPort) -> tuple[int, tuple[str, int]]:
    if not address.host:
        both = socket.has_dualstack_ipv6()
        return (socket.AF_INET6, ("::", address.port)) if both else (socket.AF_INET, ("0.0.0.0", address.port))  # noqa: S104 - asked for
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, _, _, _, where = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, where  # type: ignore[return-value]


def _failed(address: HostPort, what: str, error: OSError) -> ConfigError:
    return ConfigError(f"{what}: cannot listen on {address}: {error.strerror or error}")


def peer(connected: socket.socket) -> tuple[str, bytes]:
    """Return the client's address in the form of Java's getHostAddress, and as 4 or 16 bytes.

    Raises:
        OSError: The client has disconnected already.

    """
    text: str = connected.getpeername()[0]
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return host_address(text), (mapped or address).packed
