"""What long-running commands share: signals, webhooks, and an endpoint with their state."""

import asyncio
import base64
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from http.client import HTTPException
from importlib.metadata import version
from urllib.error import HTTPError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from attrs import define, field
from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector, generate_latest

from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError
from aclog.server.http_endpoint import HttpEndpoint
from aclog.terminal.output import warn

# The status that `aclog mirror` and `aclog sync` report while they run.


@define(eq=False)
class FollowerStatus:
    """When the followed cluster last gave a usable answer, and what is wrong since. Any thread may read it."""

    registry: CollectorRegistry = field(factory=CollectorRegistry, init=False)
    trouble: str | None = field(default="no answer yet", init=False)
    """Why the newest answer is unusable; None after a good one."""
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
        """Note an unusable answer."""
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

    It has its own thread: writing a large change must not keep a probe waiting. /healthz reports that the process
    works, /readyz whether the newest answer was usable.

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


# A webhook: JSON posted to a URL in the background, in bounded time and memory.


_TIMEOUT_S = 5.0
"""Of one attempt, in seconds."""
_RETRY_S = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Pauses between attempts, in seconds; the last one repeats."""
_ATTEMPTS = 20
"""About a quarter of an hour."""
_MOST_WAITING = 1_000
"""Beyond these the oldest are dropped: a receiver that is down must not fill the memory."""
_LAST_S = 10.0
"""How long the end of the command waits for what is still to be sent."""


@define(eq=False, kw_only=True)
class Webhook:
    """Posts messages in order, one at a time; the caller never waits."""

    url: str
    """Without user and password."""
    name: str
    """For messages: only the host, since paths of webhooks are secrets."""
    authorization: str | None
    posts: Counter
    _waiting: deque[bytes] = field(factory=deque, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)
    _closing: bool = field(default=False, init=False)
    _busy: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    @staticmethod
    def of(url: str, registry: CollectorRegistry) -> "Webhook":
        """Return the webhook at a URL. Raises ConfigError: not http or https, or no host; never with the URL itself."""
        parts = _parts(url)
        host = parts.hostname or ""
        port = "" if parts.port is None else f":{parts.port}"
        netloc = f"[{host}]{port}" if ":" in host else f"{host}{port}"
        authorization = None
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = f"Basic {base64.b64encode(login.encode()).decode()}"
        posts = Counter("aclog_webhook_posts", "Posts to the webhook.", ["outcome"], registry=registry)
        for outcome in ("delivered", "failed", "dropped"):
            posts.labels(outcome)
        return Webhook(
            url=urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, "")),
            name=f"webhook at {netloc}",
            authorization=authorization,
            posts=posts,
        )

    def post(self, body: str) -> None:
        """Post JSON as soon as possible; the oldest that waits is dropped if too many do."""
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                self._waiting.popleft()
                self.posts.labels("dropped").inc()
            self._waiting.append(body.encode())
            self._changed.notify_all()

    @contextmanager
    def running(self) -> Iterator["Webhook"]:
        """Post in a thread during the block; at its end wait a little for what is left."""
        thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._waiting and not self._busy, _LAST_S)
                undelivered, self._ended = len(self._waiting) + self._busy, True
            if undelivered:
                warn(f"{self.name}: {undelivered:,} messages were not delivered")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                body, self._busy = self._waiting.popleft(), True
            delivered = self._deliver(body)
            self.posts.labels("delivered" if delivered else "failed").inc()
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _deliver(self, body: bytes) -> bool:
        for attempt in range(_ATTEMPTS):
            problem = self._attempt(body)
            if problem is None or self._ended:
                return problem is None
            if attempt == 0:
                warn(f"{self.name}: {problem}: trying again")
            pause = _RETRY_S[min(attempt, len(_RETRY_S) - 1)]
            with self._changed:
                until = time.monotonic() + (min(pause, 1.0) if self._closing else pause)
                self._changed.wait_for(lambda: self._closing, max(until - time.monotonic(), 0))
        warn(f"{self.name}: {problem}: gave up on a message")
        return False

    def _attempt(self, body: bytes) -> str | None:
        """Post once; return what is wrong, or None."""
        headers = {"Content-Type": "application/json", "User-Agent": f"aclog/{version('aclog')}"}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        request = Request(self.url, data=body, headers=headers, method="POST")  # noqa: S310  # http or https: see `of`
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S):
                return None
        except HTTPError as error:
            error.close()
            return f"answered {error.code}"
        except OSError as error:
            return str(getattr(error, "reason", None) or error)
        except (HTTPException, ValueError) as error:
            return type(error).__name__  # its text may hold the URL


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET, and reveal the content to another host: it fails instead."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Refuse."""


_OPENER = build_opener(_NoRedirect)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise ConfigError("--webhook: expected a URL such as https://hooks.example.com/path")
    return parts
