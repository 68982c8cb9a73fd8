"""What `aclog mirror` and `aclog sync` tell of themselves while they run."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from attrs import define, field
from prometheus_client import CollectorRegistry, Gauge, PlatformCollector, ProcessCollector, generate_latest

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.telemetry.http_endpoint import HttpEndpoint


@define(eq=False)
class FollowerStatus:
    """When the followed cluster last gave a usable answer, and what is wrong since. Any thread may read it."""

    registry: CollectorRegistry = field(factory=CollectorRegistry, init=False)
    trouble: str | None = field(default="no answer yet", init=False)
    """Why the newest answer was none; None after a good one."""
    _since: float = field(factory=time.monotonic, init=False)

    def __attrs_post_init__(self) -> None:
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.gauge(
            "aclog_age_seconds", "Time since the cluster last gave a usable answer, or since the start."
        ).set_function(lambda: self.age)
        self.gauge("aclog_ready", "1 while the newest answer of the cluster was usable.").set_function(
            lambda: self.trouble is None
        )

    @property
    def age(self) -> float:
        """Seconds since the last success, or since the start."""
        return time.monotonic() - self._since

    def succeeded(self) -> None:
        """Note a usable answer."""
        self._since, self.trouble = time.monotonic(), None

    def failed(self, why: str) -> None:
        """Note that there was none."""
        self.trouble = why

    def gauge(self, name: str, text: str) -> Gauge:
        """Return a new gauge that /metrics shows."""
        return Gauge(name, text, registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)


@contextmanager
def serving(address: HostPort | None, status: FollowerStatus) -> Iterator[None]:
    """Serve a status over HTTP for the duration of the block; nothing without an address.

    In a thread of its own: writing a large change must not keep a probe waiting. /healthz says that the process works,
    /readyz whether the newest answer was usable.

    Raises:
        ConfigError: it cannot listen there.

    """
    if address is None:
        yield
        return
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    endpoint = HttpEndpoint(
        address=address, metrics=status.text, healthy=lambda: None, ready=lambda: status.trouble, flag="--http"
    )
    thread = threading.Thread(target=lambda: asyncio.run(_serve(endpoint, started)), name="http", daemon=True)
    thread.start()
    loop, stop = started.result()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _serve(endpoint: HttpEndpoint, started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    stop = asyncio.Event()
    try:
        await endpoint.start()
    except ConfigError as error:
        started.set_exception(error)
        return
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    await endpoint.stop()
