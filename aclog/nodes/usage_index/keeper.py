"""Keeps a node's index of last use: every few seconds a thread takes what was decided into it."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from attrs import define, evolve, field
from prometheus_client import CollectorRegistry

from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import MetadataError
from aclog.nodes.telemetry.usage_metrics import UsageMetrics
from aclog.nodes.usage_index.heard import expected, heard
from aclog.nodes.usage_index.interval_judge import IntervalJudge
from aclog.nodes.usage_index.recorder import AccessRecorder, Drained, now_us
from aclog.usage.coverage import Coverage
from aclog.usage.index.run import GIVEN, Batch, Run
from aclog.usage.index.tallies import DayTally
from aclog.usage.index.usage_index import UsageIndex

INTERVAL_SECONDS: Final = 5.0
_LONGEST_SECONDS = 60.0
_REST = 500
"""How many times as long as the work of an interval the next one lasts at least: 0.2% of a core.

Most of the work is for distinct accesses, and in a longer interval there are hardly more of them.
"""
_LEAST_REST = 4
"""The same where clients ask for so much that is new that memory would run out: 20% of a core."""
_READY_SECONDS = 0.2
"""How often it is asked whether the log has been replayed: the index covers what is decided from then on."""
_STOP_SECONDS = 10.0
"""How long a stop waits for the last interval to be written."""
_CLOCK_JUMP_US = 1_000_000
"""What the clock may gain or lose in an interval."""

_log = logging.getLogger(__name__)


class _Judged(NamedTuple):
    """An interval that is ready to be written."""

    run: Run
    tally: DayTally
    drained: Drained
    until: int


@define(eq=False, kw_only=True)
class UsageKeeper:
    """Started and closed by a node. Nothing that goes wrong here reaches the node: it is logged and counted.

    An interval is written in one transaction, and again until that succeeds; meanwhile accesses are counted on, in
    bounded memory. What a kill, or a lack of memory, loses is not covered by the index.
    """

    directory: Path
    broker: str
    """The id under which the index knows this node."""
    cluster_id: str
    settings: Settings
    recorder: AccessRecorder
    registry: CollectorRegistry
    brokers: Callable[[], Collection[str]]
    """Returns the ids of all registered brokers."""
    interval: float = INTERVAL_SECONDS
    _metrics: UsageMetrics = field(init=False)
    _judge: IntervalJudge = field(init=False)
    _thread: threading.Thread = field(init=False)
    _stopping: threading.Event = field(factory=threading.Event, init=False)
    _index: UsageIndex | None = field(default=None, init=False)
    _stream: str = field(init=False)
    _number: int = field(default=0, init=False)
    _began: bool = field(default=False, init=False)
    _waiting: _Judged | None = field(default=None, init=False)
    _until: int = field(init=False)
    """To where what was drained reaches, in us since 1970."""
    _written: int = field(init=False)
    """To where what is in the index reaches, in us since 1970."""
    _drained_at: float = field(factory=time.monotonic, init=False)
    _last_trouble: str = field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self._judge = IntervalJudge(self.settings)
        # a batch that was written, though nobody learned of it, is not taken twice
        self._stream = f"node {self.broker} {secrets.token_hex(8)}"
        self._until = self._written = now_us()
        self._metrics = UsageMetrics.registered(self.registry, lambda: max(now_us() - self._written, 0) / 1_000_000)
        self._thread = threading.Thread(target=self._run, name="usage-index", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Write the last interval and end; after ten seconds without success it is lost, and the log says so."""
        self._stopping.set()
        self.recorder.half_full.set()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            _log.error("%s: the last decisions could not be written in time", self.directory)

    def _run(self) -> None:
        while not (self.recorder.is_ready() or self._stopping.is_set()):
            self._stopping.wait(_READY_SECONDS)
        self._keep()  # what is decided from now on is covered
        worked = 0.0  # the first time most of the work is to import, and is no measure
        while not self._stopping.is_set():
            least = _LEAST_REST * worked
            self._stopping.wait(least)
            self.recorder.half_full.wait(min(max(self.interval, _REST * worked), _LONGEST_SECONDS) - least)
            worked = self._keep()
        if self._keep_once() and self._waiting is None:
            self._keep_once()  # what was decided while an older interval waited
        if self._waiting is not None:
            _log.error("%s: the last decisions are lost: %s", self.directory, self._last_trouble)
        self._close_index()

    def _keep(self) -> float:
        """Keep what there is; return how many seconds of a core that took."""
        begun = time.thread_time()
        self._keep_once()
        if self._waiting is not None:
            self._stopping.wait(self.interval)  # not woken by what is counted meanwhile: there is no room for it
        return min(time.thread_time() - begun, _LONGEST_SECONDS / _REST)

    def _keep_once(self) -> bool:
        """Drain, judge and write; return whether anything older was written first."""
        had_waited = self._waiting is not None
        try:
            if self._waiting is None and self.recorder.is_ready():
                self._waiting = self._judged()
            if self._waiting is not None:
                self._write(self._waiting)
                self._waiting = None
        except Exception as error:  # noqa: BLE001 - whatever it is, the node goes on
            self._trouble(error)
        return had_waited

    def _judged(self) -> _Judged | None:
        drained = self.recorder.drain()
        since, until = self._covered()
        self._note_left(drained)
        if not drained.images:
            return None
        try:
            seen, tally = self._judge.judged(drained.images)
        except Exception:
            # it would fail again: what it held is lost, and not covered
            dropped = sum(each.times for image in drained.images for each in image.counts)
            self._metrics.accesses.labels("dropped").inc(dropped)
            raise
        is_whole = not drained.left.dropped
        decisions = drained.left.super_user + sum(each.times for image in drained.images for each in image.counts)
        self._number += 1
        run = Run(
            rules=seen,
            source=f"node {self.broker}",
            settings=_settings(self.settings),
            at=until // 1000,
            coverage=heard(self.broker, since, until, decisions) if is_whole else Coverage.nothing(),
            batch=Batch(self._stream, self._number),
            cluster_id=self.cluster_id,
        )
        if not is_whole:
            _log.warning(
                "%s: no memory for %d decisions between two writes: they are lost", self.directory, drained.left.dropped
            )
        return _Judged(run, tally, drained, until)

    def _covered(self) -> tuple[int, int]:
        """Return from when to when the interval is that was just drained, in us since 1970."""
        now, drained_at = now_us(), time.monotonic()
        passed = int((drained_at - self._drained_at) * 1_000_000) + _CLOCK_JUMP_US
        if not self._began:
            # what nobody has counted from the beginning is not covered
            self._began, self._until, self._drained_at = True, now, drained_at
        # a clock that was set, or a machine that slept, covers no more than the time that passed
        since = min(max(self._until, now - passed), now)
        self._until, self._drained_at = now, drained_at
        return since, now

    def _write(self, judged: _Judged) -> None:
        index = self._opened()
        run = judged.run
        known = {each for each in index.coverage().brokers if each is not None}
        others = sorted(set(self.brokers()) - known - {self.broker})
        if others:
            # their decisions are not in here: without them nobody knows that a rule is not used
            run = evolve(run, coverage=Coverage.sum((run.coverage, expected(others, judged.until))))
        index.take(run, [judged.tally] if judged.tally.accesses else [])
        self._metrics.accesses.labels("judged").inc(judged.tally.accesses)
        self._written = judged.until
        if self._last_trouble:
            _log.info("%s: written again", self.directory)
            self._last_trouble = ""

    def _opened(self) -> UsageIndex:
        if self._index is None:
            self._index = UsageIndex.create(self.directory)
        return self._index

    def _trouble(self, error: Exception) -> None:
        self._metrics.failures.inc()
        text = str(error) if isinstance(error, (MetadataError, OSError)) else repr(error)
        if text != self._last_trouble:
            _log.warning("%s: the index of last use cannot be kept (tried again): %s", self.directory, text)
        self._last_trouble = text
        self._close_index()

    def _close_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            try:
                index.close()
            except (MetadataError, OSError) as error:
                _log.warning("%s: %s", self.directory, error)

    def _note_left(self, drained: Drained) -> None:
        for kind, count in zip(drained.left._fields, drained.left, strict=True):
            self._metrics.accesses.labels(kind).inc(count)


def _settings(settings: Settings) -> Mapping[str, object]:
    return {
        "allow_everyone": settings.allow_everyone,
        "super_users": sorted(settings.super_users),
        "documented": settings.documented,
        "cidr": settings.cidr,
        GIVEN: [ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG],
    }
