"""The audit log of a node: Kafka's line, or an event as JSON, for each decision whose level is logged.

The deciding thread only queues the decision: to format and write a line takes several times as long as to decide. A
thread of this module's writes the lines, in the order of the decisions and many at a time. The queue is bounded: when
the stream is slower than the decisions, they wait. A node that is killed loses what is queued, a few milliseconds of
lines; one that stops, by a signal or an error, has written them.
"""

import json
import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, TextIO, TypeAlias

from attrs import field
from prometheus_client import CollectorRegistry, Counter

from aclog.authorizer import audit
from aclog.authorizer.acls_image import Decision
from aclog.authorizer.interface import Action, RequestContext
from aclog.metalog.errors import printable
from aclog.metalog.machine import clock, threads
from aclog.metalog.values import define

Queued: TypeAlias = tuple[float, RequestContext, Action, Decision]
"""A decision and its time, in seconds since 1970."""

MAX_QUEUED: Final = 2048
"""Decisions that wait to be written. Names are of at most 32 kB: this bounds the memory as well."""
_AT_ONCE = 256
"""Lines in one write."""

_API_KEYS = len(audit.API_NAMES)
_OUTCOMES = {
    "TRACE": audit.EVERY_OUTCOME,
    "DEBUG": audit.DENIED_LOGGED | audit.ALLOWED_LOGGED,
    "INFO": audit.DENIED_LOGGED,
}
_LEVELS = {audit.TRACE: "TRACE", audit.DEBUG: "DEBUG", audit.INFO: "INFO"}

_log = logging.getLogger("aclog.server.audit_log")


@define(eq=False)
class AuditLog:
    """An audit hook (SelectiveHook) that writes to a stream; used in a `with`, at whose end every line is written.

    `level`: TRACE, DEBUG, INFO, WARNING or ERROR, the lowest that is logged. Decisions of other levels are not wanted,
    and their ACLs not looked for.
    """

    _stream: TextIO
    level: str = "INFO"
    _format: Callable[[Queued], str] = field(factory=lambda: KafkaLines().line, kw_only=True)
    _registry: CollectorRegistry | None = field(default=None, kw_only=True)
    """Where the number of failed writes is registered as a metric."""
    _clock: Callable[[], float] = field(factory=lambda: clock.time, kw_only=True)
    wanted: int = field(init=False)
    """The outcomes that are logged, as bits (SelectiveHook)."""
    _queue: deque[Queued] = field(factory=deque, init=False)
    _awake: Any = field(factory=threads.event, init=False)
    _room: Any = field(factory=threads.condition, init=False)
    _writer: Any = field(init=False)
    _is_closed: bool = field(default=False, init=False)
    _doubtful: int = field(default=0, init=False)
    """Lines of the last writes, if these failed: a part of them may be in the stream, or in its buffer."""
    _failures: Counter = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.wanted = _OUTCOMES.get(self.level, 0)
        self._failures = Counter(
            "aclog_audit_write_failures",
            "Writes of the audit log that failed; up to 256 lines each may be missing.",
            registry=self._registry,
        )
        self._writer = threads.Thread(target=self._write_all, name="audit log", daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._awake.set()
        with self._room:
            self._room.notify_all()
        self._writer.join()

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """Queue one decision, and wait while the queue is full. Raises InvalidRequestError: an apiKey unknown to Kafka.

        The decision is made by then: a line that cannot be written later does not change it.
        """
        if not 0 <= context.request_type < _API_KEYS:
            audit.api_name(context.request_type)
        queue = self._queue
        if len(queue) >= MAX_QUEUED:
            self._wait_for_room()
        queue.append((self._clock(), context, action, decision))
        if not self._awake.is_set():
            self._awake.set()

    def _wait_for_room(self) -> None:
        with self._room:
            while len(self._queue) >= MAX_QUEUED and not self._is_closed:
                self._room.wait()

    def _write_all(self) -> None:
        """Write what is queued until the end of the `with`."""
        queue = self._queue
        while not (self._is_closed and not queue):
            self._awake.wait()
            self._awake.clear()  # before the queue is read: what is queued from here on sets it again
            while queue:
                batch = [queue.popleft() for _ in range(min(len(queue), _AT_ONCE))]
                with self._room:
                    self._room.notify_all()
                self._write(batch)
            if self._is_closed:
                self._awake.set()

    def _write(self, batch: list[Queued]) -> None:
        try:
            # A failed write may have ended within a line, which must not be the beginning of the next one.
            start = "\n" if self._doubtful else ""
            self._stream.write(start + "".join(map(self._format, batch)))
            self._stream.flush()
        except Exception as error:  # noqa: BLE001 - without this thread, every decision would wait for room
            # As Kafka's appenders, a node continues to decide on a full disk; the metric and the log have the gap.
            if not self._doubtful:
                _log.error("cannot write the audit log: %s", error)
            self._doubtful += len(batch)
            self._failures.inc()
            return
        if self._doubtful:
            _log.error("the audit log is written again; lines that may be missing: %d", self._doubtful)
            self._doubtful = 0


@define(eq=False)
class KafkaLines:
    """Lines in the layout of Kafka's log4j configuration: `[%d] %p %m (%c)`, in local time.

    Unprintable characters are escaped: clients choose names, and must not be able to forge lines.
    """

    _second: int = field(default=-1, init=False)
    _text: str = field(default="", init=False)
    """The second as text."""

    def line(self, queued: Queued) -> str:
        """Return the line of a decision."""
        at, context, action, decision = queued
        second = int(at)
        if second != self._second:
            self._second = second
            self._text = f"{datetime.fromtimestamp(second):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006 - as log4j's %d
        level = _LEVELS[audit.audit_level(action, decision.result)]
        message = printable(audit.audit_line(context, action, decision))
        return f"[{self._text},{int((at - second) * 1000):03d}] {level} {message} ({audit.AUDIT_LOGGER})\n"


@define(eq=False)
class JsonLines:
    """Objects as those of the node's other events, with `audit`: an event of aclog/authorizer/audit_event.avsc."""

    _node_id: int

    def line(self, queued: Queued) -> str:
        """Return the line of a decision."""
        at, context, action, decision = queued
        row = {
            "node_id": self._node_id,
            "event": audit.audit_line(context, action, decision),
            "level": _LEVELS[audit.audit_level(action, decision.result)].lower(),
            "logger": audit.AUDIT_LOGGER,
            "timestamp": datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "audit": audit.audit_event(context, action, decision, timestamp=int(at * 1000)).to_dict(),
        }
        return f"{json.dumps(row)}\n"
