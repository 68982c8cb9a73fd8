"""A node's index of last use: the accesses of each interval, judged by the ACLs that decided them."""

import logging
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
from attrs import evolve, field
from prometheus_client import CollectorRegistry

from aclog.authorizer.acl import StandardAclWithId, acl_of, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Settings
from aclog.metalog import machine
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import MetadataError
from aclog.metalog.machine import randomness, threads
from aclog.metalog.primitives import uuid_text
from aclog.metalog.values import define, frozen
from aclog.server.telemetry import UsageMetrics
from aclog.usage.counting import COUNTED_BY_DAY, DayTallies
from aclog.usage.decisions.intervals import RULE_COLUMNS, Rules, rule_table
from aclog.usage.index.lives import SeenRules, always
from aclog.usage.index.tallies import DayTally
from aclog.usage.index.usage_index import PROPERTIES_KEY, Batch, Run, UsageIndex
from aclog.usage.rules import seen_rules
from aclog.usage.window import HOUR, LOST_DECISIONS, Coverage, UnreadAccesses, UnreadCounter, UnreadSpan

# The coverage of a node's own decisions: when it was running, with or without requests.


def hourly_coverage(broker: str, since: int, until: int, decisions: int) -> Coverage:
    """Return that a broker was at work from `since` to `until` (us since 1970), hour by hour.

    Its decisions count in the last hour, in which an interval of seconds lies nearly always.
    """
    hour = np.arange(since // HOUR, until // HOUR + 1, dtype=np.int64)
    rows = np.zeros(len(hour), np.int64)
    rows[-1] = decisions
    return Coverage(
        brokers=(broker,),
        broker=np.zeros(len(hour), np.int64),
        hour=hour,
        rows=rows,
        first=np.maximum(hour * HOUR, since),
        last=np.minimum((hour + 1) * HOUR - 1, until),
    )


def expected(brokers: Sequence[str], at: int) -> Coverage:
    """Record that there are other brokers, whose decisions are unknown from `at` (us since 1970) on."""
    return Coverage.sum(hourly_coverage(broker, at, at, 0) for broker in brokers)


# The changes from one image to a later one, by id.


class ImageChanges(NamedTuple):
    """ACLs that are in one image only."""

    removed: Sequence[UUID]
    added: Sequence[StandardAclWithId]


def image_changes(old: AclsImage, new: AclsImage) -> ImageChanges:
    """Compare two images; quickly if they share their base, as an image and those made from it by changes do."""
    if old.index is new.index:
        return ImageChanges((), ())
    base = new.index.base
    before, after = old.index.overlay, new.index.overlay
    if old.index.base is not base or any(row not in after.removed for row in before.removed):
        return _compared(old, new)
    rows = [row for row in after.removed if row not in before.removed]
    removed = {UUID(bytes=bytes(base.ids.ids[16 * row : 16 * row + 16])) for row in rows}
    removed.update(UUID(int=number) for number in before.added if number not in after.added)
    came = [record for number, record in after.added.items() if number not in before.added]
    # an id that went and came back is in both images
    same = removed.intersection(record.id for record in came)
    return ImageChanges(
        list(removed - same),
        [StandardAclWithId(id=record.id, acl=acl_of(record)) for record in came if record.id not in same],
    )


def _compared(old: AclsImage, new: AclsImage) -> ImageChanges:
    before, after = set(old.ids()), set(new.ids())
    added = [(each, new.get(each)) for each in after - before]
    return ImageChanges(
        list(before - after), [StandardAclWithId(id=each, acl=acl) for each, acl in added if acl is not None]
    )


# Counts the distinct accesses that each image decides, in bounded memory, until they are drained.


AccessKey: TypeAlias = tuple[str, str, int, int, str]
"""Principal, host, operation, resource type and name."""

MOST_BYTES: Final = 64 << 20
"""The memory limit of accesses between two drains. Names may be long, and clients choose them."""
_ENTRY_BYTES = 400
"""The memory of a distinct access, besides its texts."""
MOST_IMAGES: Final = 1000
"""The most images with accesses between two drains. Each is kept until it is drained, with all rules that it shares
with no other one."""

_DAY_NS = 86_400_000_000_000
_ALLOWED = AuthorizationResult.ALLOWED


class AccessCount(NamedTuple):
    """How often an access was decided on a day, and when first and last, in us since 1970."""

    key: AccessKey
    day: int
    times: int
    first: int
    last: int


class ImageAccesses(NamedTuple):
    """The decisions of one image since the last drain."""

    number: int
    """Images are numbered upwards."""
    since: int
    """When it began to decide, in us since 1970."""
    image: AclsImage
    counts: list[AccessCount]


class Uncounted(NamedTuple):
    """Decisions that no ACL made, and accesses for which there was no memory."""

    super_user: int = 0
    early: int = 0
    """Decisions for super users, before the log had been replayed."""
    not_ready: int = 0
    dropped: int = 0


class Drained(NamedTuple):
    """The decisions between two drains."""

    images: list[ImageAccesses]
    """The images in order: that of the drain before, those that have decided since, and the newest."""
    uncounted: Uncounted


def now_us() -> int:
    """Return the time in us since 1970."""
    return machine.clock.time_ns() // 1000


@define(eq=False)
class AccessRecorder:
    """An AccessObserver; any thread may call it."""

    is_ready: Callable[[], bool]
    """Whether the log has been replayed."""
    clock: Callable[[], int] = field(factory=lambda: machine.clock.time_ns)
    """Returns the time in ns since 1970."""
    most_bytes: int = MOST_BYTES
    most_images: int = MOST_IMAGES
    half_full: Any = field(factory=threads.event, init=False)
    """Set when it is time to drain before the interval is over."""
    lock: Any = field(factory=threads.lock, init=False)
    _number: int = field(default=0, init=False)
    _newest: "ImageTally | None" = field(default=None, init=False)
    _before: "ImageTally | None" = field(default=None, init=False)
    """The newest one at the last drain."""
    _pending: "list[ImageTally]" = field(factory=list, init=False)
    _bytes: int = field(default=0, init=False)
    _uncounted: list[int] = field(factory=lambda: [0] * len(Uncounted._fields), init=False)

    def begin(self, image: AclsImage) -> "ImageTally":
        """See AccessObserver."""
        with self.lock:
            self._number += 1
            self._newest = ImageTally(self, image, self._number, self.clock() // 1000)
            return self._newest

    def drain(self) -> Drained:
        """Take the counts since the last drain."""
        with self.lock:
            tallies, self._pending, self._bytes = self._pending, [], 0
            tallies += [each for each in (self._before, self._newest) if each is not None and each not in tallies]
            tallies = list(dict.fromkeys(tallies))
            self._before = self._newest
            counts = [(tally, tally.take()) for tally in tallies]
            uncounted, self._uncounted = Uncounted(*self._uncounted), [0] * len(Uncounted._fields)
            self.half_full.clear()
        images = [ImageAccesses(tally.number, tally.since, tally.image, _listed(days)) for tally, days in counts]
        return Drained(sorted(images, key=lambda each: each.number), uncounted)

    def leave(self, reason: int, count: int) -> None:
        """Count decisions without an ACL; `reason` is an index of Uncounted."""
        with self.lock:
            self._uncounted[reason] += count

    def admit(self, tally: "ImageTally", key: AccessKey) -> bool:
        """Find memory for one more distinct access; the lock is held."""
        size = _ENTRY_BYTES + sys.getsizeof(key[0]) + sys.getsizeof(key[1]) + sys.getsizeof(key[4])
        is_full = not tally.is_pending and len(self._pending) >= self.most_images
        if is_full or self._bytes + size > self.most_bytes:
            self._uncounted[_DROPPED] += 1
            return False
        self._bytes += size
        if not tally.is_pending:
            tally.is_pending = True
            self._pending.append(tally)
        if 2 * self._bytes > self.most_bytes or 2 * len(self._pending) > self.most_images:
            self.half_full.set()
        return True


_SUPER_USER, _EARLY, _NOT_READY, _DROPPED = range(len(Uncounted._fields))
_Counts: TypeAlias = dict[AccessKey, list[int]]
"""Count, first and last time, in ns since 1970."""


@define(eq=False)
class ImageTally:
    """An AccessTally of one image. A request that began with it may still count when a newer image decides."""

    recorder: AccessRecorder
    image: AclsImage
    number: int
    since: int
    is_pending: bool = field(default=False, init=False)
    _days: list[tuple[int, _Counts]] = field(factory=list, init=False)
    _counts: _Counts = field(factory=dict, init=False)
    _day_begins: int = field(default=0, init=False)
    _day_ends: int = field(default=0, init=False)

    def decided(
        self, context: RequestContext, actions: Sequence[Action], results: Sequence[AuthorizationResult]
    ) -> None:
        """See AccessTally. Counts decisions that require a line in the audit log."""
        recorder, principal, host = self.recorder, context.principal, context.host
        # The hot path of a server that keeps an index: little is called, and nothing divided.
        now = recorder.clock()
        with recorder.lock:
            if not self._day_begins <= now < self._day_ends:
                self._begin_day(now)
            counts = self._counts
            for action, result in zip(actions, results, strict=False):
                if action.log_if_allowed if result is _ALLOWED else action.log_if_denied:
                    pattern = action.resource_pattern
                    key = (principal, host, action.operation, pattern.resource_type, pattern.name)
                    entry = counts.get(key)
                    if entry is not None:
                        entry[0] += 1
                        entry[2] = now
                    elif recorder.admit(self, key):
                        counts[key] = [1, now, now]

    def left_to_super_users(self, actions: Sequence[Action]) -> None:
        """See AccessTally."""
        recorder = self.recorder
        recorder.leave(_SUPER_USER if recorder.is_ready() else _EARLY, len(actions))

    def not_ready(self, actions: Sequence[Action]) -> None:
        """See AccessTally."""
        self.recorder.leave(_NOT_READY, len(actions))

    def _begin_day(self, now: int) -> None:
        day = now // _DAY_NS
        self._day_begins, self._day_ends = day * _DAY_NS, (day + 1) * _DAY_NS
        self._counts = {}
        self._days.append((day, self._counts))

    def take(self) -> list[tuple[int, _Counts]]:
        """Take the counts by day and begin anew; the recorder's lock is held."""
        days, self._days, self._counts = self._days, [], {}
        self._day_begins = self._day_ends = 0
        self.is_pending = False
        return days


def _listed(days: list[tuple[int, _Counts]]) -> list[AccessCount]:
    # the clock may have been set back
    return [
        AccessCount(key, day, count, min(first, last) // 1000, max(first, last) // 1000)
        for day, counts in days
        for key, (count, first, last) in counts.items()
    ]


# The rules by which the accesses of an interval were decided: those of all its images, each while it decided.


@frozen(eq=False, kw_only=True)
class JudgedRules:
    """The rules of one or several images."""

    rules: Rules
    newest: int | None
    """When the last image with a new rule began, in us since 1970; None if none has."""
    begins: Int64s
    """When each image began to decide, in ms since 1970: ascending, each once. What the first is does not matter."""

    @classmethod
    def of(cls, images: Sequence[ImageAccesses]) -> Self:
        """Join the rules of images; there is at least one, and they are in order."""
        table, begins = rule_table(images[0].image), [images[0].since // 1000]
        added, removed = dict[str, int](), dict[str, int]()
        more: list[dict[str, str | None]] = []
        for old, new in pairwise(images):
            # two images may have begun in one millisecond, or the clock been set back
            begins.append(max(new.since // 1000, begins[-1] + 1))
            changes = image_changes(old.image, new.image)
            removed |= {uuid_text(each): begins[-1] for each in changes.removed}
            for each in changes.added:
                row = each.to_dict()
                more.append(row)
                added[str(row["id"])] = begins[-1]
        if more:
            columns = {name: pa.array([row[name] for row in more], pa.string()) for name in RULE_COLUMNS}
            table = pa.concat_tables([table, pa.table(columns)])
        if added or removed:
            ids = table.column("id").to_pylist()
            for name, times in (("visible_from", added), ("visible_to", removed)):
                table = table.append_column(name, pa.array([times.get(str(each)) for each in ids], pa.int64()))
        return cls(
            rules=Rules.of_table(table),
            newest=max(added.values()) * 1000 if added else None,
            begins=np.array(begins, np.int64),
        )

    def within(self, place: int, times: Int64s) -> Int64s:
        """Return times (us since 1970) as times at which the image at an index decided.

        A request keeps the image that it began with, so that its accesses may come after the image's time.
        """
        limits = np.iinfo(np.int64)
        low = limits.min if place == 0 else self.begins[place] * 1000
        high = limits.max if place + 1 == len(self.begins) else self.begins[place + 1] * 1000 - 1
        return np.clip(times, low, high)

    def index_rules(self) -> SeenRules:
        """Return the rules as the index takes them.

        A life begins when this node first decided by the rule. Its exact times, which only the log knows, are left out:
        the same life taken from the log would count as another one. Rules that came within the interval count from the
        last of them on: rather too late than too early.
        """
        rules = seen_rules(self.rules, own_time=False)
        begins, ends = always(len(rules))
        return evolve(rules, begins=begins, ends=ends, known_from=self.newest)


# Evaluates a node's decisions in an interval by the rules that made them, for the index of last use.


_MOST_REMEMBERED = 1 << 16
"""Distinct accesses after which a judge, which remembers them all, is made anew."""


@frozen(eq=False, kw_only=True)
class _Judge:
    """A judge by the rules of one interval. If these did not change meanwhile, it also serves the next one."""

    indexes: tuple[AclIndex, ...]
    """The indexes of the images."""
    rules: JudgedRules
    index_rules: SeenRules
    tallies: DayTallies


@define(eq=False)
class IntervalJudge:
    """Judges one interval after another; one thread owns it."""

    settings: Settings
    _judge: _Judge | None = field(default=None, init=False)
    _remembered: int = field(default=0, init=False)

    def judged(self, images: Sequence[ImageAccesses]) -> tuple[SeenRules, DayTally]:
        """Return the rules of some images, at least one, and the rules that their accesses matched and needed."""
        judge = self._judge_of(images)
        counted = _counted(images, judge)
        self._remembered += len(counted)
        return judge.index_rules, judge.tallies.tally(counted) if len(counted) else DayTally.nothing()

    def _judge_of(self, images: Sequence[ImageAccesses]) -> _Judge:
        indexes = tuple(each.image.index for each in images)
        judge = self._judge
        if judge is None or self._remembered > _MOST_REMEMBERED or not _same(judge.indexes, indexes):
            rules = JudgedRules.of(images)
            tallies = DayTallies.of(rules.rules.intervals, self.settings, own_time=True)
            judge = _Judge(indexes=indexes, rules=rules, index_rules=rules.index_rules(), tallies=tallies)
            # of an interval with several images the rules will not come again
            self._judge = judge if len(images) == 1 else None
            self._remembered = 0
        return judge


def _same(before: Sequence[AclIndex], now: Sequence[AclIndex]) -> bool:
    return len(before) == len(now) and all(old is new for old, new in zip(before, now, strict=True))


def _counted(images: Sequence[ImageAccesses], judge: _Judge) -> pa.Table:
    parts = [_part(each, place, judge) for place, each in enumerate(images) if each.counts]
    return pa.concat_tables(parts) if parts else COUNTED_BY_DAY.empty_table()


def _part(accesses: ImageAccesses, place: int, judge: _Judge) -> pa.Table:
    keys, days, counts, firsts, lasts = zip(*accesses.counts, strict=True)
    principals, hosts, operations, types, names = zip(*keys, strict=True)
    first = judge.rules.within(place, np.array(firsts, np.int64))
    columns = [
        principals,
        hosts,
        [code_name(AclOperation, code) for code in operations],
        [code_name(ResourceType, code) for code in types],
        names,
        judge.tallies.authorizer.index.versions.at(first),
        np.array(counts, np.int64),
        first,
        np.maximum(np.array(lasts, np.int64), first),
        np.array(days, np.int32),
    ]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, COUNTED_BY_DAY, strict=True)]
    return pa.table(arrays, schema=COUNTED_BY_DAY)


# Keeps a node's index of last use: every few seconds a thread adds the new decisions.


INTERVAL_SECONDS: Final = 5.0
_LONGEST_SECONDS = 60.0
_REST = 500
"""How many times as long as the work of an interval the next one lasts at least: 0.2% of a core.

Most of the work is for distinct accesses, and a longer interval has few more.
"""
_LEAST_REST = 4
"""The same where clients make so many new requests that memory would run out: 20% of a core."""
_READY_SECONDS = 0.2
"""How often to check whether the log has been replayed: the index covers later decisions."""
_STOP_SECONDS = 10.0
"""How long a stop waits for the last interval to be written."""
_CLOCK_JUMP_US = 1_000_000
"""The tolerated drift of the clock in an interval."""

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
    bounded memory. Decisions lost in a kill, or for lack of memory, are not covered by the index.
    """

    directory: Path
    broker: str
    """The id of this node in the index."""
    cluster_id: str
    settings: Settings
    recorder: AccessRecorder
    registry: CollectorRegistry
    brokers: Callable[[], Collection[str]]
    """Returns the ids of all registered brokers."""
    interval: float = INTERVAL_SECONDS
    _metrics: UsageMetrics = field(init=False)
    _judge: IntervalJudge = field(init=False)
    _thread: Any = field(init=False)
    _stopping: Any = field(factory=threads.event, init=False)
    _index: UsageIndex | None = field(default=None, init=False)
    _stream: str = field(init=False)
    _number: int = field(default=0, init=False)
    _began: bool = field(default=False, init=False)
    _waiting: _Judged | None = field(default=None, init=False)
    _lost: UnreadAccesses = field(factory=UnreadAccesses, init=False)
    """Decisions that will not be in the index, for the next run to record."""
    _until: int = field(init=False)
    """The end of the drained decisions, in us since 1970."""
    _written: int = field(init=False)
    """The end of the indexed decisions, in us since 1970."""
    _drained_at: float = field(factory=machine.clock.monotonic_seconds, init=False)
    _last_trouble: str = field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self._judge = IntervalJudge(self.settings)
        # a batch whose write was not confirmed is not added twice
        self._stream = f"node {self.broker} {randomness.token_hex(8)}"
        self._until = self._written = now_us()
        self._metrics = UsageMetrics.registered(self.registry, lambda: max(now_us() - self._written, 0) / 1_000_000)
        self._thread = threads.Thread(target=self._run, name="usage-index", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Write the last interval and end; after ten seconds without success it is lost, and a log line is written."""
        self._stopping.set()
        self.recorder.half_full.set()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            _log.error("%s: the last decisions could not be written in time", self.directory)

    def _run(self) -> None:
        while not (self.recorder.is_ready() or self._stopping.is_set()):
            self._stopping.wait(_READY_SECONDS)
        self._keep()  # later decisions are covered
        worked = 0.0  # the first time most of the work is to import, and is no measure
        while not self._stopping.is_set():
            least = _LEAST_REST * worked
            self._stopping.wait(least)
            self.recorder.half_full.wait(min(max(self.interval, _REST * worked), _LONGEST_SECONDS) - least)
            worked = self._keep()
        if self._keep_once() and self._waiting is None:
            self._keep_once()  # decisions made while an older interval waited
        if self._waiting is not None:
            _log.error("%s: the last decisions are lost: %s", self.directory, self._last_trouble)
        self._close_index()

    def _keep(self) -> float:
        """Index the pending decisions; return how many seconds of a core that took."""
        begun = machine.clock.thread_time()
        self._keep_once()
        if self._waiting is not None:
            self._stopping.wait(self.interval)  # not woken by new counts: there is no room for them
        return min(machine.clock.thread_time() - begun, _LONGEST_SECONDS / _REST)

    def _keep_once(self) -> bool:
        """Drain, judge and write; return whether anything older was written first."""
        had_waited = self._waiting is not None
        try:
            if self._waiting is None and self.recorder.is_ready():
                self._waiting = self._judged()
            if self._waiting is not None:
                self._write(self._waiting)
                self._waiting = None
        except Exception as error:  # noqa: BLE001 - the node continues after any error
            self._trouble(error)
        return had_waited

    def _judged(self) -> _Judged | None:
        drained, before = self.recorder.drain(), self._until
        since, until = self._covered()
        span = min(before, since), max(before, until)
        self._note_left(drained)
        self._note_lost(drained.uncounted.dropped, *span)
        if not drained.images:
            return None
        try:
            rules, tally = self._judge.judged(drained.images)
        except Exception:
            # it would fail again: its decisions are lost, and not covered
            dropped = sum(each.times for image in drained.images for each in image.counts)
            self._metrics.accesses.labels("dropped").inc(dropped)
            self._note_lost(dropped, *span)
            raise
        is_whole = not drained.uncounted.dropped
        decisions = drained.uncounted.super_user + sum(each.times for image in drained.images for each in image.counts)
        self._number += 1
        run = Run(
            rules=rules,
            source=f"node {self.broker}",
            settings=_settings(self.settings),
            at=until // 1000,
            coverage=hourly_coverage(self.broker, since, until, decisions) if is_whole else Coverage.nothing(),
            unread=self._lost,
            batch=Batch(self._stream, self._number),
            cluster_id=self.cluster_id,
        )
        self._lost = UnreadAccesses()
        if not is_whole:
            _log.warning(
                "%s: no memory for %d decisions between two writes: they are lost",
                self.directory,
                drained.uncounted.dropped,
            )
        return _Judged(run, tally, drained, until)

    def _note_lost(self, decisions: int, since: int, until: int) -> None:
        """Note decisions that any ACL may have made, between two times (us since 1970): they are unread accesses."""
        if not decisions:
            return
        lost = UnreadCounter()
        lost.add(None, None, LOST_DECISIONS, UnreadSpan(decisions, since, until), broker=self.broker)
        self._lost = UnreadAccesses.sum_of((self._lost, lost.total))

    def _covered(self) -> tuple[int, int]:
        """Return from when to when the interval is that was just drained, in us since 1970."""
        now, drained_at = now_us(), machine.clock.monotonic()
        passed = int((drained_at - self._drained_at) * 1_000_000) + _CLOCK_JUMP_US
        if not self._began:
            # decisions before the first count are not covered
            self._began, self._until, self._drained_at = True, now, drained_at
        # a clock that was set, or a machine that slept, covers no more than the time that passed
        since = min(max(self._until, now - passed), now)
        self._until, self._drained_at = now, drained_at
        return since, now

    def _write(self, judged: _Judged) -> None:
        index = self._opened()
        run = judged.run
        brokers = {each for each in index.coverage().brokers if each is not None}
        others = sorted(set(self.brokers()) - brokers - {self.broker})
        if others:
            # their decisions are missing: without them no rule is known to be unused
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
        for kind, count in zip(drained.uncounted._fields, drained.uncounted, strict=True):
            self._metrics.accesses.labels(kind).inc(count)


def _settings(settings: Settings) -> Mapping[str, object]:
    return {
        "allow_everyone": settings.allow_everyone,
        "super_users": sorted(settings.super_users),
        "documented": settings.documented,
        "cidr": settings.cidr,
        PROPERTIES_KEY: [ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG],
    }
