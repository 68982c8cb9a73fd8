"""Following a source: the metrics and webhooks of every follower, and `aclog diff --follow`."""

import asyncio
import base64
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import contextmanager
from http.client import HTTPException
from importlib.metadata import version
from typing import TypeAlias
from urllib.error import HTTPError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import UUID

from attrs import evolve, field
from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector, generate_latest

from aclog.analysis.comparison import Compared, Comparison, rows_of_each
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction, ExistingNames, JsonObject
from aclog.analysis.rows.report import row_lines
from aclog.authorizer.acl import StandardAcl, acl_of, acl_text
from aclog.authorizer.acls_image import RuleChange, changes_between, net_changes
from aclog.authorizer.settings import Generation, Settings
from aclog.cli.signals import on_signals
from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError, LogError, plural, printable
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.values import define, frozen
from aclog.ops.policies import difference_objects
from aclog.server.http_endpoint import HttpEndpoint
from aclog.snapshots.deciding_kafka import generation_pairs, kafka_of_both, kafka_text
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Followed, follow
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.notices import STALE_SECONDS, AgeWatch
from aclog.terminal.output import emit, say, time_text, warn

# What long-running commands share: signals, webhooks, and an endpoint with their state.


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
    thread = threading.Thread(target=_run_server, args=(endpoint, started), name="http", daemon=True)
    thread.start()
    loop, stop = started.result()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


_Started: TypeAlias = "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]"


def _run_server(endpoint: HttpEndpoint, started: _Started) -> None:
    try:
        asyncio.run(_serve(endpoint, started))
    except Exception as error:
        if started.done():
            raise
        # The caller waits for it, without a limit.
        if isinstance(error, OSError):  # there are no descriptors left for an event loop
            where = f"{endpoint.flag}: cannot serve {endpoint.address}"
            error = ConfigError(f"{where}: {error.strerror or error}")
        started.set_exception(error)


async def _serve(endpoint: HttpEndpoint, started: _Started) -> None:
    stop = asyncio.Event()
    await endpoint.start()
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


# `aclog diff --follow`: each committed change of a log, and what it really changes.


# The ACLs that one step of a log changes.


def step_changes(step: Followed) -> list[RuleChange]:
    """Return the ACLs that one of the states has and the other has not."""
    if step.changes is None:
        return changes_between(step.before.acls, step.after.acls)
    return net_changes(_in_order(step))


def _in_order(step: Followed) -> Iterable[RuleChange]:
    added: dict[UUID, StandardAcl] = {}
    for change in step.changes or ():
        if isinstance(change, AccessControlEntryRecord):
            added[change.id] = acl_of(change)
            yield RuleChange(added=True, acl=added[change.id])
        else:
            removed = added.pop(change.id, None) or step.before.acls.get(change.id)
            if removed is not None:  # else it was added and removed before this step
                yield RuleChange(added=False, acl=removed)


# Follows a log, and prints what each committed change really gives and takes.


@frozen(kw_only=True)
class FollowOptions:
    """How to follow: the settings of both sides, what is counted, the format, and when to give up (seconds)."""

    settings: Settings
    topics: ExistingNames | None
    format: OutputFormat
    http: HostPort | None
    give_up_after: float | None


class _DiffStoppedError(Exception):
    """A signal, or patience that has run out, ended the loop; raised and caught here only."""


def follow_differences(choice: ChosenSource, options: FollowOptions) -> None:
    """Print the effective difference of each committed change until SIGINT or SIGTERM.

    Raises:
        ConfigError: the source is a single state, the format is not for streams, or --http cannot listen.
        MetadataError: the log is damaged or deleted, or unconfirmed for too long.

    """
    if options.format not in (OutputFormat.TEXT, OutputFormat.JSONL):
        raise ConfigError(f"--follow with --format {options.format}: expected text or jsonl")
    log = choice.source.log
    if log is None:
        raise ConfigError(f"{choice.source.name}: a single state has no changes: use --log or --bootstrap-controller")
    image = choice.image()
    follower = _Follower(choice=choice, options=options)
    with serving(options.http, follower.status), on_signals(follower.stop):
        if options.format is OutputFormat.TEXT:
            say(
                f"following {printable(choice.source.name)} from offset {image.end_offset}; stop with Ctrl-C",
                flush=True,
            )
        try:
            for step in follow(choice.source, log, image, follower.idle):
                follower.show(step)
        except _DiffStoppedError:
            return


@define(eq=False, kw_only=True)
class _Follower:
    """Prints steps, and reports its status."""

    choice: ChosenSource
    options: FollowOptions
    stopping: bool = field(default=False, init=False)
    """Set by a signal: a line is never cut."""
    status: FollowerStatus = field(factory=FollowerStatus, init=False)
    _last: dict[Generation, Policy] = field(factory=dict, init=False)
    _age: AgeWatch = field(factory=AgeWatch, init=False)
    _regions: Counter = field(init=False)
    _changes: Counter = field(init=False)

    def __attrs_post_init__(self) -> None:
        registry = self.status.registry
        self._changes = Counter("aclog_acl_changes", "ACLs that were added or removed.", registry=registry)
        self._regions = Counter(
            "aclog_effective_differences",
            "Regions of requests that committed changes allowed, or no longer allow.",
            ["change"],
            registry=registry,
        )
        for direction in Direction:
            self._regions.labels(direction.value)

    def stop(self) -> None:
        """End after the step that is being shown."""
        self.stopping = True

    def idle(self) -> None:
        """Note that the log was read; raise _DiffStoppedError if it is time to end."""
        freshness = self.choice.source.freshness()
        if freshness is None or freshness.seconds < STALE_SECONDS:
            self.status.succeeded()
        else:
            self.status.failed(freshness.problem or f"no answer for {freshness.seconds:.0f} s")
            self._age.tell(freshness)
            patience = self.options.give_up_after
            if patience is not None and freshness.seconds > patience:
                raise LogError(
                    f"{freshness.server}: no answer for {freshness.seconds:.0f} s: gave up (--give-up-after)"
                )
        if self.stopping:
            raise _DiffStoppedError

    def show(self, step: Followed) -> None:
        """Print what a step gives and takes."""
        changes = step_changes(step)
        named = self.options.settings.generation
        was, kafka = kafka_of_both((step.before, step.after), (named, named))
        pairs = generation_pairs(was, kafka)
        is_upgrade = any(pair.old is not pair.new for pair in pairs.values())
        may_before, may_after = ((each.generations, each.only_controllers) for each in (was, kafka))
        if changes or is_upgrade or may_before != may_after:
            before = self._before(step.before, {pair.old for pair in pairs.values()})
            after = self._policies(step.after, {pair.new for pair in pairs.values()})
            self._last = after
            reports: Compared = {
                key: self._compared(before[pair.old], after[pair.new], changes, only_controllers=pair.only_controllers)
                for key, pair in pairs.items()
            }
            self._changes.inc(len(changes))
            lines = list(difference_objects(reports))
            for line in lines:
                self._regions.labels(str(line["change"])).inc()
            self._print(step, _summary(changes) if changes else kafka_text(kafka), reports, lines)
        if self.stopping:
            raise _DiffStoppedError
        self.status.succeeded()

    def _compared(self, old: Policy, new: Policy, changes: list[RuleChange], *, only_controllers: bool) -> Comparison:
        """Return what a step changes on some nodes."""
        comparison = Comparison.of(old, new, changes=changes, topics=self.options.topics)
        return comparison.by_controllers() if only_controllers else comparison

    def _before(self, image: Image, generations: AbstractSet[Generation]) -> dict[Generation, Policy]:
        """Return the policies of the last step if nothing came in between: they have many of the answers."""
        last = self._last
        if last.keys() >= generations and next(iter(last.values())).acls.index is image.acls.index:
            return last
        return self._policies(image, generations)

    def _policies(self, image: Image, generations: AbstractSet[Generation]) -> dict[Generation, Policy]:
        settings = self.options.settings
        return {
            each: Policy(
                image.acls.with_options(documented=settings.documented, cidr=each.has_ranges),
                evolve(settings, cidr=each.has_ranges, is_kafka_stated=True),
            )
            for each in generations
        }

    def _print(self, step: Followed, what: str, reports: Compared, lines: list[JsonObject]) -> None:
        if self.options.format is OutputFormat.JSONL:
            where: JsonObject = {
                "offset": step.before.end_offset,
                "endOffset": step.after.end_offset,
                "timestamp": step.after.timestamp,
            }
            for line in lines:
                emit(json_text({**where, **line}), flush=True)
            return
        place = f"offset {step.before.end_offset}..{step.after.end_offset - 1}, {time_text(step.after.timestamp)}"
        say(f"{place}: {what}", flush=True)
        for row in rows_of_each(reports):
            for text in row_lines(row):
                say(f"  {printable(text)}", flush=True)
        if not lines:
            say("  no difference: every request is decided as before", flush=True)


def _summary(changes: list[RuleChange]) -> str:
    if len(changes) == 1:
        return f"{'added' if changes[0].added else 'removed'} {printable(acl_text(changes[0].acl))}"
    added = sum(change.added for change in changes)
    return f"{plural(added, 'ACL')} added, {len(changes) - added:,} removed"
