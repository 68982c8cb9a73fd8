"""Serving over the web: the address, TLS, and who can reach it."""

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect

from aclog.config.node_config import HostPort
from aclog.console.connections import (
    CONNECTIONS,
    Arrival,
    Gate,
    PatientConnection,
    Refusals,
    TimedConnection,
    shares_of,
    well_framed,
)
from aclog.console.live import LivePremises, LiveState
from aclog.console.pdp.direct import Answering, DirectConnection
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.server.connection_budget import ConnectionBudget
from aclog.server.http_endpoint import Check, HttpEndpoint
from aclog.server.loops import prepare_collector
from aclog.server.network.admission import connections_within_files
from aclog.sources.choice import ChosenSource, gaps_of, settings_premises
from aclog.sources.server_flags import parse_servers
from aclog.terminal.notices import FewNotices
from aclog.terminal.output import note, say, warn

_POLLED_S = 10.0
"""Between two reads of a source that is read whole each time."""
STOP_S = 5
"""The time that open requests have at the end, in seconds."""
_MOST_HEADERS = 128 << 10
"""Bytes: addresses of the console hold drafts, and browsers send an address three times."""

AtHangup = Callable[[ssl.SSLContext | None], None]
"""What is done at SIGHUP; it is given the TLS of new connections, None without TLS."""

Tick = Callable[[ssl.SSLContext | None], bool]
"""Called ten times a second between requests, with the same; returns whether to end."""


@frozen(kw_only=True)
class Endpoint:
    """Where a command listens, and with which certificates."""

    address: HostPort
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    trusted_proxy: str | None = None
    """The address of a proxy whose X-Forwarded-For is trusted; without one no header names the client."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.address.host)

    @property
    def url(self) -> str:
        """Its address, if nothing is in front."""
        return f"{'http' if self.tls_cert is None else 'https'}://{self.address}"

    def check(self, *, secrets: str | None, ways: str) -> None:
        """Refuse to serve untrusted clients.

        `secrets` names the secrets of accepted clients, such as `tokens`; None if they need none. `ways` names the
        flags for such secrets. Warns of secrets that go over a network in the clear.

        Raises:
            ConfigError: others can reach it, and need neither a secret nor a certificate; half of TLS is given; or the
                proxy has no address.

        """
        if (self.tls_cert is None) is not (self.tls_key is None):
            raise ConfigError("expected --tls-cert and --tls-key together")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ConfigError("--tls-client-ca: expected --tls-cert and --tls-key")
        if self.trusted_proxy is not None and not _is_address(self.trusted_proxy):
            raise ConfigError(f"--trusted-proxy {self.trusted_proxy[:80]}: expected the address of a proxy")
        if self.is_local:
            return
        if secrets is None and self.tls_client_ca is None:
            raise ConfigError(
                f"--listen {self.address}: others can reach it, and no client needs a secret: expected {ways}, "
                f"or an address of this machine such as 127.0.0.1:{self.address.port}"
            )
        if secrets is not None and self.tls_cert is None:
            warn(f"{secrets} go over the network as they are: expected --tls-cert and --tls-key, or a proxy with them")


def listen_address(text: str, flag: str = "--listen") -> HostPort:
    """Return the address that a flag names. Raises ConfigError: not one HOST:PORT."""
    addresses = parse_servers(flag, text)
    if len(addresses) != 1:
        raise ConfigError(f"{flag} {text}: expected one HOST:PORT")
    return addresses[0]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host that is listened on; an empty one is every interface."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@frozen(kw_only=True)
class Health:
    """The address and the content of health checks: outside of every budget of the other listener."""

    address: HostPort
    ready: Check
    """The check of /readyz: on failure no clients should be routed here."""


def health_of(text: str | None, ready: Check) -> Health | None:
    """Return where `--health-listen` names; None without it. Raises ConfigError: not one HOST:PORT."""
    return None if text is None else Health(address=listen_address(text, "--health-listen"), ready=ready)


def serve(
    app: Any,
    endpoint: Endpoint,
    message: str,
    *,
    bound: socket.socket | None = None,
    begun: Callable[[], None] = lambda: None,
    hangup: AtHangup | None = None,
    is_timed: bool = False,
    refusals: Refusals | None = None,
    health: Health | None = None,
    answering: Answering | None = None,
    tick: Tick | None = None,
    processes: int = 1,
) -> None:
    """Serve an ASGI application until SIGINT or SIGTERM; print `message` once it listens, and call `begun`.

    `bound` is a socket of `bound_to`; without one, the address of the endpoint is bound. With `tick`, which belongs to
    a worker process, no message is printed. `processes` share the most connections at the same time.
    `hangup` is called at each SIGHUP, between requests. Requests have to come soon (PatientConnection); with
    `is_timed`, answers also have a time limit (TimedConnection). `refusals` counts what is refused, and has the
    metrics that `health` shows. `answering` answers some requests without the application.

    Raises:
        ConfigError: an address cannot be listened on, or a certificate cannot be used.

    """
    config = server_config(app, endpoint, is_timed=is_timed, answering=answering)
    prepare_collector()
    before = signal.getsignal(signal.SIGHUP)
    if hangup is not None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is a loop
    try:
        with bound or bound_to(endpoint.address) as listening:
            server = Server(
                config,
                message,
                hangup,
                proxy=endpoint.trusted_proxy,
                refusals=refusals,
                health=health,
                answering=answering,
                tick=tick,
                processes=processes,
            )
            server.begun = begun
            server.run(sockets=[listening])
        if server.failure is not None:
            raise server.failure
    finally:
        signal.signal(signal.SIGHUP, before)


def server_config(
    app: Any, endpoint: Endpoint, *, is_timed: bool, answering: Answering | None = None
) -> uvicorn.Config:
    """Return how an application is served. Raises ConfigError: a certificate cannot be used."""
    timed = TimedConnection if answering is None else DirectConnection
    ca = endpoint.tls_client_ca
    config = uvicorn.Config(
        well_framed(app),
        http=timed if is_timed else PatientConnection,
        h11_max_incomplete_event_size=None if is_timed else _MOST_HEADERS,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_S,
        proxy_headers=endpoint.trusted_proxy is not None,
        forwarded_allow_ips=endpoint.trusted_proxy,
        ssl_certfile=endpoint.tls_cert,
        ssl_keyfile=endpoint.tls_key,
        ssl_ca_certs=None if ca is None else str(ca),
        ssl_cert_reqs=ssl.CERT_NONE if ca is None else ssl.CERT_REQUIRED,
    )
    try:
        config.load()
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"--tls-cert, --tls-key, --tls-client-ca: cannot be used: {error}") from error
    return config


def read_certificate_again(context: ssl.SSLContext | None, endpoint: Endpoint) -> None:
    """Use for new connections the current content of the files of a certificate and its key; None: without TLS.

    Raises:
        OSError: they cannot be used; the old ones stay.

    """
    check_certificate(endpoint)  # so nothing half used
    if context is not None and endpoint.tls_cert is not None:
        context.load_cert_chain(endpoint.tls_cert, endpoint.tls_key)


def check_certificate(endpoint: Endpoint) -> None:
    """Read the files of a certificate and its key, if there are any. Raises OSError: they cannot be used."""
    if endpoint.tls_cert is not None:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(endpoint.tls_cert, endpoint.tls_key)


def followed(choice: ChosenSource, followed_s: float, busy_s: float = 0.0) -> LiveState:
    """Return the newest state of a source, to be started; it warns when the source cannot be read.

    A log is looked at again after `followed_s` seconds, or after `busy_s` while it changes, if that is longer; a source
    that is read whole each time, less often.
    """
    seconds = _POLLED_S if choice.source.log is None else followed_s
    tell = FewNotices(tell=lambda why: warn(f"the state cannot be read: {why}"))
    return LiveState(source=choice.source, seconds=seconds, busy_seconds=busy_s, tell=tell)


def live_premises(live: LiveState, properties: AbstractSet[str]) -> LivePremises:
    """Return the unknown premises of a followed source, of which these properties are given."""
    source = live.source
    return LivePremises(
        settings=lambda: settings_premises(source, properties), gaps=lambda: gaps_of(live.source), tell=note
    )


class _Few(logging.Filter):
    """Lets a few records a minute through: a request that fails is written with all of its traceback.

    A request that failed because the client or the server ended before the answer is not written.
    """

    def __init__(self) -> None:
        super().__init__()
        self._notices = FewNotices(tell=lambda _: None)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, asyncio.CancelledError | ClientDisconnect) and self._notices.admit() is not None


class Server(uvicorn.Server):
    """uvicorn's server behind a gate, which prints a message once it listens, and handles SIGHUP between requests."""

    def __init__(
        self,
        config: uvicorn.Config,
        message: str,
        hangup: AtHangup | None,
        *,
        proxy: str | None = None,
        refusals: Refusals | None = None,
        health: Health | None = None,
        answering: Answering | None = None,
        tick: Tick | None = None,
        processes: int = 1,
    ) -> None:
        super().__init__(config)
        self.failure: ConfigError | None = None
        """Why it has not begun to listen."""
        self.begun: Callable[[], None] = lambda: None
        """Called once it listens."""
        self.budget = ConnectionBudget(shares=shares_of(connections_within_files(max(CONNECTIONS // processes, 1))))
        self._message, self._hangup, self._proxy, self._health = message, hangup, proxy, health
        self._refusals = Refusals() if refusals is None else refusals
        self._answering, self._tick = answering, tick
        self._tls: ssl.SSLContext | None = None
        self._gate: Gate | None = None
        self._endpoint: HttpEndpoint | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it has ended; of failures a few are written meanwhile."""
        failures, few = logging.getLogger("uvicorn.error"), _Few()
        failures.addFilter(few)
        try:
            super().run(sockets=sockets)
        finally:
            failures.removeFilter(few)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and print where."""
        await super().startup(sockets=[])  # uvicorn itself accepts nothing
        if not self.started or not sockets:
            return
        try:
            await self._start_health()
        except ConfigError as error:
            self.failure, self.should_exit = error, True
            return
        self._tls = context = self.config.ssl if isinstance(self.config.ssl, ssl.SSLContext) else None
        self._gate = Gate(
            listening=sockets[0],
            name=self._message,
            serve=self._protocol,
            budget=self.budget,
            refusals=self._refusals,
            tls=context,
            proxy=self._proxy,
        )
        try:
            self._gate.start()
        except OSError as error:  # another process has begun to listen since the socket was bound
            self.failure, self.should_exit = ConfigError(f"--listen: {error.strerror or error}"), True
            return
        if self._hangup is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hangup, context)
        if self._tick is None:
            say(self._message, flush=True)
        self.begun()

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end."""
        if self._tick is not None and self._tick(self._tls):
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, end what is being answered, and then be unhealthy."""
        if self._gate is not None:
            await self._gate.stop()
        await super().shutdown(sockets)
        if self._endpoint is not None:
            await self._endpoint.stop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """End; at once at the second signal. uvicorn's own would raise the signal again after a clean end."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def _start_health(self) -> None:
        if self._health is None:
            return
        self._endpoint = HttpEndpoint(
            address=self._health.address,
            metrics=self._refusals.text,
            healthy=lambda: None,
            ready=self._health.ready,
            flag="--health-listen",
        )
        await self._endpoint.start()

    def _protocol(self, arrival: Arrival) -> asyncio.Protocol:
        kind: type[TimedConnection] = self.config.http_protocol_class  # type: ignore[assignment]
        protocol = kind(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=asyncio.get_running_loop(),
        )
        protocol.arrival = arrival
        if isinstance(protocol, DirectConnection) and self._answering is not None:
            protocol.answering = self._answering
        return protocol


def all_bound_to(address: HostPort, count: int) -> list[socket.socket]:
    """Return so many sockets of one address, among which Linux spreads connections. Raises ConfigError as bound_to.

    The first one is bound as one that shares nothing: so the address of another program is refused, also of a second
    one like this.
    """
    first = bound_to(address)
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound = [first]
    try:
        while len(bound) < count:
            bound.append(bound_to(address, is_shared=True))
    except ConfigError:
        for each in bound:
            each.close()
        raise
    return bound


def bound_to(address: HostPort, *, is_shared: bool = False) -> socket.socket:
    """Return a socket that is bound to an address. Raises ConfigError: it is in use, or none of this machine."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise ConfigError(f"--listen {address}: {error.strerror or error}") from error
    return bound
