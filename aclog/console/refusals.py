"""What a web server refuses, counted by reason (Prometheus)."""

from collections.abc import Callable

from attrs import define, field
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

_CONNECTIONS = ("network", "unauthenticated", "identity", "header", "handshake", "rate")
_REQUESTS = ("identity", "body", "past")


@define(eq=False)
class Refusals:
    """Counters of one server, which owns them."""

    registry: CollectorRegistry = field(factory=CollectorRegistry)
    _connections: Counter = field(init=False)
    _requests: Counter = field(init=False)
    _open: Gauge = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._connections = Counter(
            "aclog_web_connections_refused",
            "Connections that were closed: too many of a network (network), too many unauthenticated ones "
            "(unauthenticated), too many of an identity (identity), no whole header in time (header), no TLS handshake "
            "in time (handshake), too many unauthenticated requests a second of a network (rate).",
            ["reason"],
            registry=self.registry,
        )
        self._requests = Counter(
            "aclog_web_requests_refused",
            "Requests that were refused: too many of one identity (identity), bodies (body), or states of the past "
            "(past) at once.",
            ["reason"],
            registry=self.registry,
        )
        self._open = Gauge("aclog_web_connections", "Open connections.", ["kind"], registry=self.registry)
        for counter, reasons in ((self._connections, _CONNECTIONS), (self._requests, _REQUESTS)):
            for reason in reasons:
                counter.labels(reason)

    def connection(self, reason: str) -> None:
        """Count a connection that was closed."""
        self._connections.labels(reason).inc()

    def request(self, reason: str) -> None:
        """Count a request that was refused."""
        self._requests.labels(reason).inc()

    def watch(self, strangers: Callable[[], float], authenticated: Callable[[], float]) -> None:
        """Show how many connections are open: unauthenticated ones, and those of authenticated clients."""
        self._open.labels("unauthenticated").set_function(strangers)
        self._open.labels("authenticated").set_function(authenticated)

    def text(self) -> bytes:
        """Return all metrics of the registry in Prometheus's text format."""
        return generate_latest(self.registry)
