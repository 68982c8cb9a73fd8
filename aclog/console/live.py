"""A state source, followed: its newest state, its history and its premises."""

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypeVar, overload

from attrs import evolve, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.batches import iter_batches
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.primitives import current_time_ms, elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.snapshots.history import Change, RuleWatch
from aclog.snapshots.image import Image, StateSource
from aclog.snapshots.moments import Moment, first_later, read_moment
from aclog.sources.logs import LogMark, ReplacedError, start_of
from aclog.targets.applies import APPLIES_FILE, AppliedChange, read_applies

# Unknown settings of the decisions, read once; and gaps of the log, read with each state.


@define(eq=False, kw_only=True)
class LivePremises:
    """Read by the thread that reads the states; other threads may read the result."""

    settings: Callable[[], Premises]
    """Read once. Raises MetadataError: no node of the cluster has an authorizer."""
    tell: Callable[[str], None]
    """Called with each premise that is unknown, and was known before."""
    gaps: Callable[[], Premises] = field(default=lambda: ALL_KNOWN)
    """The gaps in the log of the newest state (aclog.sources.notes): read again with each."""
    _settings: Premises | None = field(default=None, init=False)
    _unknown: Premises = field(default=ALL_KNOWN, init=False)

    @property
    def unknown(self) -> Premises:
        """Unknown premises; empty before the first state."""
        return self._unknown

    def look(self) -> None:
        """Read the gaps, and once the settings. Raises as `settings`: without them there is no decision."""
        if self._settings is None:
            self._settings = self.settings()
        before, unknown = self._unknown, self._settings.also(self.gaps())
        if unknown == before:
            return  # the same value: what was made with it stays valid
        self._unknown = unknown
        for premise in unknown.unknown:
            if premise not in before.unknown:
                self.tell(premise.note())


def none_unknown() -> LivePremises:
    """Return those of a source that is no running cluster."""
    return LivePremises(settings=lambda: ALL_KNOWN, tell=lambda _: None)


# A state source that is polled in a separate thread; requests read the newest state without waiting.


_MOMENTS = 8
"""States of the past that are kept."""
_SETTLED = timedelta(minutes=1)
"""The state at a moment more recent than this may still change: a log's clock may be behind ours."""


@frozen(eq=False, kw_only=True)
class ReadState:
    """A state, and when it was read (aclog.metalog.primitives.elapsed_seconds)."""

    image: Image
    at: float


@define(eq=False, kw_only=True)
class LiveState:
    """The newest state of a source; owned by the server that starts and stops it."""

    source: StateSource
    seconds: float
    """The interval between two reads, in seconds."""
    busy_seconds: float = 0.0
    """The interval after a read that found another state, if it is longer: each state has its costs."""
    tell: Callable[[str], None]
    """Called with why the newest read failed, once for each reason, and with None when one succeeds again."""
    prepare: Callable[[Image], None] = field(default=lambda _: None)
    """Called with each state before it becomes the newest one, so that no request pays for derived data.

    Raises MetadataError: nothing can be answered from it.
    """
    _newest: ReadState | None = field(default=None, init=False)
    _trouble: str | None = field(default="no state was read yet", init=False)
    _stopping: threading.Event = field(factory=threading.Event, init=False)
    _reading: threading.Lock = field(factory=threading.Lock, init=False)
    """Held while the newest state is read; requests for past states do not wait for it."""
    _reading_past: threading.Lock = field(factory=threading.Lock, init=False)
    """Held while a past state is read: one at a time, as each takes the memory of a state."""
    _past: "OrderedDict[Moment, Image]" = field(factory=OrderedDict, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to read."""
        self._thread = threading.Thread(target=self._run, name="live-state", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and close the source."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)
        self.source.close()

    def replace(self, source: StateSource) -> None:
        """Read another source from now on, which is of the same rules, at once; the one before is closed."""
        with self._reading_past, self._reading:
            before, self.source = self.source, source
            self._past.clear()
        before.close()
        self._look()

    @property
    def newest(self) -> ReadState | None:
        """The newest state; None before the first."""
        return self._newest

    @property
    def trouble(self) -> str | None:
        """Why the newest read failed; None after a good one."""
        return self._trouble

    def age(self) -> float | None:
        """Return for how many seconds nothing has confirmed the newest state; None before the first."""
        newest = self._newest
        if newest is None:
            return None
        freshness = self.source.freshness()
        read = max(elapsed_seconds() - newest.at, 0.0)
        return read if freshness is None else max(read, freshness.seconds)

    def past(self, text: str) -> Image | None:
        """Return the state at a moment in the past; None if the text names the newest one.

        Raises:
            ConfigError: neither an offset nor a time. MetadataError: the state is unknown.

        """
        now = datetime.fromtimestamp(current_time_ms() / 1000, UTC)
        moment = read_moment(text, now=now).moment
        if moment is None:
            return None
        with self._reading_past:
            image = self._past.get(moment)
            if image is None:
                image = self.source.image_at(moment)
                if isinstance(moment, datetime) and now - moment < _SETTLED:
                    return image
                self._past[moment] = image
                if len(self._past) > _MOMENTS:
                    self._past.popitem(last=False)
            self._past.move_to_end(moment)
            return image

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment, read anew. Raises MetadataError: the state is unknown."""
        with self._reading_past:
            return self.source.image_at(moment)

    def _run(self) -> None:
        while True:
            before = self._newest
            self._look()
            is_other = before is not None and self._newest is not None and before.image is not self._newest.image
            if self._stopping.wait(max(self.seconds, self.busy_seconds) if is_other else self.seconds):
                return

    def look(self) -> None:
        """Read the newest state now, without waiting for the interval; any thread may."""
        self._look()

    def _look(self) -> None:
        with self._reading:  # until the state is stored: the source may be replaced meanwhile
            try:
                newest = ReadState(image=self.source.image(), at=elapsed_seconds())
                self.prepare(newest.image)
            except (MetadataError, OSError) as error:
                if str(error) != self._trouble:
                    self.tell(str(error))
                self._trouble = str(error)
            else:
                self._newest, self._trouble = newest, None


# The applies to a log, read again when there are more.


@define(eq=False)
class FollowedApplies:
    """The applies recorded in the file beside a log. Safe for any number of threads."""

    directory: Path
    _file_identity: tuple[int, ...] | None = field(default=None, init=False)
    _applies: tuple[AppliedChange, ...] | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def read(self) -> tuple[AppliedChange, ...] | None:
        """Return the applies in the order in which they began; None: no file records any.

        Raises:
            MetadataError: the file is damaged, or cannot be read.

        """
        with self._lock:
            identity = self._identity()
            if identity != self._file_identity:
                applies = None if identity is None else read_applies(self.directory)
                self._applies, self._file_identity = None if applies is None else applies.applied, identity
            return self._applies

    def _identity(self) -> tuple[int, ...] | None:
        path = self.directory / APPLIES_FILE
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LogError(f"{path}: cannot be read: {error.strerror}") from error
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# The state of a log at a time, without a scan of the whole log for each request.


_MOST = 1_000


@define(eq=False, kw_only=True)
class TimeOffsets:
    """Requested times of a log, and the offset after each. Safe for any number of threads."""

    log: LogReader
    _times: list[int] = field(factory=list, init=False)
    _offsets: list[int] = field(factory=list, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def after(self, time: int) -> int:
        """Return the offset of the first batch later than a time (ms since 1970); the high-water mark without one.

        The state at that time is the one that ends there (aclog.snapshots.moments.end_offset_at).

        Raises:
            MetadataError: the log is damaged, or cannot be read.

        """
        with self._lock:
            number = bisect_right(self._times, time)
            floor = self._offsets[number - 1] if number else 0
        # A later time has no earlier offset, so the offset of an earlier time is where the search begins.
        later = first_later(self.log, time, max(floor, self.log.start_offset()))
        with self._lock:
            if len(self._times) >= _MOST:
                self._times.clear()
                self._offsets.clear()
            number = bisect_right(self._times, time)
            if not number or self._times[number - 1] != time:
                self._times.insert(number, time)
                self._offsets.insert(number, later.offset)
            else:
                self._offsets[number - 1] = later.offset
        return later.offset


# The changes of rules between two offsets of a log, and the rules at each of them (RuleTimeline).


_Item = TypeVar("_Item")

_STEP = 64
"""Changes between two states that are kept: others are made from the one before, at about 20 us a change."""
_FEWEST_MERGED, _SHARE = 4096, 8
"""An overlay is merged when it has so many changes, or this fraction of the rules if that is more, so that the memory
of bases grows with the number of changes."""


@frozen(eq=False, kw_only=True)
class Anchor:
    """The rules after so many changes. Most share the base of their neighbours."""

    position: int
    acls: AclsImage
    is_after_gap: bool = False
    """Whether the changes before it were not seen: they may not lead to the same ids."""


@frozen(eq=False)
class Grown(Sequence[_Item]):
    """A sequence that shares its items with those that it grew from, so that growth costs what is added. Immutable.

    At most one thread at a time may grow sequences that share their items.
    """

    items: list[_Item] = field(factory=list)
    """Shared, and only ever appended to: the first ones are those of this sequence."""
    size: int = 0

    def grown(self, more: Iterable[_Item]) -> "Grown[_Item]":
        """Return these items, and then others."""
        items = self.items if len(self.items) == self.size else self.items[: self.size]
        items.extend(more)
        return Grown(items, len(items))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[_Item]:
        return islice(self.items, self.size)

    @overload
    def __getitem__(self, place: int) -> _Item: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[_Item, ...]: ...
    def __getitem__(self, place: int | slice) -> _Item | tuple[_Item, ...]:
        if isinstance(place, slice):
            return tuple(self.items[slice(*place.indices(self.size))])
        return self.items[range(self.size)[place]]


@frozen(eq=False, kw_only=True)
class RuleTimeline:
    """All changes of rules from the state at `begin` to the state at `end`.

    A position is a number of changes. Immutable: an extension at either end is a new value that shares its parts.
    """

    begin: int
    """The end offset of the first known state."""
    begin_time: int
    """The time of its last record, in ms since 1970; -1 if unknown."""
    end: int
    """The end offset of the last known state."""
    changes: Grown[Change]
    ends: Grown[int]
    """The end offset of the first state with each change; never decreasing."""
    anchors: tuple[Anchor, ...]
    """By position: of the first and the last one, and of enough in between."""

    @staticmethod
    def at(acls: AclsImage, *, offset: int, timestamp: int) -> "RuleTimeline":
        """Return a timeline of a single state."""
        anchor = Anchor(position=0, acls=acls)
        return RuleTimeline(
            begin=offset, begin_time=timestamp, end=offset, changes=Grown(), ends=Grown(), anchors=(anchor,)
        )

    @staticmethod
    def back_from(
        newer: "RuleTimeline",
        changes: Sequence[Change],
        *,
        begin: int,
        timestamp: int,
        pause: Pause = no_pause,
    ) -> "RuleTimeline":
        """Return the timeline before this one, made by undoing all these changes from its first state.

        `begin` is the end offset of the state before them, `timestamp` that of its last record. `pause` is called at
        each change.

        Raises:
            ReplayError: they did not lead to that state.

        """
        acls = newer.anchors[0].acls
        anchors = [Anchor(position=len(changes), acls=acls)]
        for position in range(len(changes) - 1, -1, -1):
            pause()
            acls = kept_small(acls.apply((changes[position].record(undo=True),)), pause)
            if position % _STEP == 0:
                anchors.append(Anchor(position=position, acls=acls))
        return RuleTimeline(
            begin=begin,
            begin_time=timestamp,
            end=newer.begin,
            changes=Grown[Change]().grown(changes),
            ends=Grown[int]().grown(change.end_offset for change in changes),
            anchors=tuple(reversed(anchors)),
        )

    def __len__(self) -> int:
        return len(self.changes)

    def followed_by(self, changes: Sequence[Change], *, end: int, acls: AclsImage) -> "RuleTimeline":
        """Return this one with the changes that came next, and the rules after them."""
        last, total = self.anchors[-1], len(self.changes) + len(changes)
        if not changes and acls is last.acls:
            return evolve(self, end=end)
        # In a gap a rule may have been added again under another id, which no change shows.
        is_after_gap = not changes or any(change.gap for change in changes)
        # The last one is an anchor only as the last one: it stays only if the one before it is far enough.
        anchors = self.anchors
        if len(anchors) > 1 and not last.is_after_gap and last.position - anchors[-2].position < _STEP:
            anchors = anchors[:-1]
        between = () if len(changes) <= _STEP else self._between(last.acls, changes)
        return evolve(
            self,
            end=end,
            changes=self.changes.grown(changes),
            ends=self.ends.grown(change.end_offset for change in changes),
            anchors=(*anchors, *between, Anchor(position=total, acls=acls, is_after_gap=is_after_gap)),
        )

    def joined(self, newer: "RuleTimeline") -> "RuleTimeline":
        """Return this one and another that begins where it ends."""
        size = len(self.changes)
        moved = (evolve(each, position=each.position + size) for each in newer.anchors[1:])
        return RuleTimeline(
            begin=self.begin,
            begin_time=self.begin_time,
            end=newer.end,
            changes=self.changes.grown(newer.changes),
            ends=self.ends.grown(newer.ends),
            anchors=(*self.anchors, *moved),
        )

    def shortened(self, most: int) -> "RuleTimeline":
        """Return this one with about `most` of its newest changes; changes of one state stay together."""
        cut = len(self.changes) - most
        if cut <= 0:
            return self
        cut = self.position(self.ends[cut - 1])
        first = Anchor(position=0, acls=self.acls_at(cut))
        later = (evolve(each, position=each.position - cut) for each in self.anchors if each.position > cut)
        return RuleTimeline(
            begin=self.ends[cut - 1],
            begin_time=self.changes[cut - 1].timestamp,
            end=self.end,
            changes=Grown[Change]().grown(self.changes[cut:]),
            ends=Grown[int]().grown(self.ends[cut:]),
            anchors=(first, *later),
        )

    def position(self, offset: int) -> int:
        """Return how many changes the state at an offset has; between two states it is the earlier one."""
        return bisect_right(self.ends.items, offset, hi=self.ends.size)

    def offset(self, position: int) -> int:
        """Return the end offset from which on the rules are those of a position."""
        return self.ends[position - 1] if position else self.begin

    def time(self, position: int) -> int:
        """Return the time of the last change before a position, in ms since 1970; -1 if it is unknown."""
        return self.changes[position - 1].timestamp if position else self.begin_time

    def before(self, position: int) -> int:
        """Return the position before the changes that last became visible at this one; 0 at the beginning."""
        return bisect_left(self.ends.items, self.ends[position - 1], hi=self.ends.size) if position else 0

    def after(self, position: int) -> int:
        """Return the position after the changes that become visible next; the last one at the end."""
        return self.position(self.ends[position]) if position < len(self.ends) else len(self.ends)

    def acls_at(self, position: int) -> AclsImage:
        """Return the rules at a position."""
        number = bisect_right(self.anchors, position, key=lambda each: each.position) - 1
        anchor = self.anchors[number]
        changes = self.changes[anchor.position : position]
        return anchor.acls.apply(map(Change.record, changes)) if changes else anchor.acls

    def _between(self, acls: AclsImage, changes: Sequence[Change]) -> list[Anchor]:
        """Return the states between the last one and those changes that come next."""
        anchors: list[Anchor] = []
        if any(change.gap for change in changes):  # it is one step without states in between
            return anchors
        start = len(self.changes)
        for number, change in enumerate(changes[:-1], 1):
            acls = kept_small(acls.apply((change.record(),)))
            if number % _STEP == 0:
                anchors.append(Anchor(position=start + number, acls=acls))
        return anchors


def merge_at(rules: int) -> int:
    """Return how many changes an overlay over so many rules may have."""
    return max(_FEWEST_MERGED, rules // _SHARE)


def kept_small(acls: AclsImage, pause: Pause = no_pause) -> AclsImage:
    """Return the same rules, merged into a new base if too much was changed since the old one was built."""
    return acls.merged(pause) if acls.overlay_size > merge_at(len(acls)) else acls


# The history of a source's rules: followed live, and read back to the beginning of the log, newest first.


_EVERY_S = 0.2
"""How long a change may wait until it is read, if no page is requested."""
_CHECK_S = 1.0
"""The interval of checks whether the log still is the same, in seconds."""
_FIRST, _GROWTH = 20_000, 8
"""Records that are read back at first, and how many times more each time after: each time takes a replay."""
MOST_CHANGES = 100_000
"""Changes that are kept, at about 3 kB each with the states between them."""
_STOP_S = 10.0


@frozen(eq=False, kw_only=True)
class KnownHistory:
    """The known part of a history at one time."""

    timeline: RuleTimeline
    is_reading: bool
    """Whether older changes are still being read."""
    older: str
    """Why nothing before its beginning is known; empty while that is being read, and if nothing precedes it."""
    trouble: str | None = None
    """Why nothing later than its end is known; None while the source is followed."""
    edition: int = 0
    """A version that changes when more of the past is known, or the error changes; new changes do not count."""


@define(eq=False, kw_only=True)
class LiveHistory:
    """A history in two separate threads; owned by the server that starts and stops it."""

    live: LiveState
    log: LogReader
    most: int = MOST_CHANGES
    first_part: int = _FIRST
    """Records that are read back at first."""
    warm: Callable[[AclsImage], None] = field(default=lambda _: None)
    """Called with rules on each new base, in the history's thread, to prepare its lookup caches."""
    pause: Pause = no_pause
    """Called again and again while the past is read, which others may have to wait for."""
    times: TimeOffsets = field(init=False)
    _mark: LogMark = field(init=False)
    _history: KnownHistory | None = field(default=None, init=False)
    _warmed: object = field(default=None, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _stopping: threading.Event = field(factory=threading.Event, init=False)
    _threads: list[threading.Thread] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.times, self._mark = TimeOffsets(log=self.log), LogMark(log=self.log)

    def start(self) -> None:
        """Begin to read."""
        self._begin_thread(self._follow, "history")

    def stop(self) -> None:
        """End. The source belongs to the live state, which must be stopped after this."""
        self._stopping.set()
        self._wake.set()
        for thread in list(self._threads):
            thread.join(_STOP_S)

    @property
    def current(self) -> KnownHistory | None:
        """Return the known history; None before the first state."""
        return self._history

    def caught_up(self, offset: int, seconds: float) -> KnownHistory | None:
        """Return the known history, once it reaches an offset, or after so many seconds."""
        history = self._history
        if history is None or history.timeline.end >= offset or history.trouble is not None:
            return history
        self._wake.set()
        with self._changed:
            self._changed.wait_for(lambda: self._reaches(offset), seconds)
        return self._history

    def _reaches(self, offset: int) -> bool:
        history = self._history
        return history is not None and (history.timeline.end >= offset or history.trouble is not None)

    def _begin_thread(self, run: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _set(self, change: Callable[[KnownHistory], KnownHistory]) -> None:
        with self._changed:
            assert self._history is not None  # noqa: S101 - set before anything else is
            self._history = change(self._history)
            self._changed.notify_all()

    def _follow(self) -> None:
        image = self._first_image()
        if image is None:
            return
        first = RuleTimeline.at(image.acls, offset=image.end_offset, timestamp=image.timestamp)
        with self._changed:
            self._history = KnownHistory(timeline=first, is_reading=True, older="")
            self._changed.notify_all()
        self._begin_thread(self._read_back, "history-past")
        watch = self._watch(image)
        checked_at = 0.0
        while not self._stopping.is_set():
            try:
                if elapsed_seconds() - checked_at >= _CHECK_S:
                    self._mark.compare()
                    self._mark.set_before(watch.end_offset)
                    checked_at = elapsed_seconds()
                self._take_all(watch)
                self._note_trouble(None)
                self._warm(watch.acls)
            except ReplacedError as error:
                self._note_trouble(str(error))
                return
            except (MetadataError, OSError) as error:
                self._note_trouble(str(error))
            self._wake.wait(_EVERY_S)
            self._wake.clear()

    def _warm(self, acls: AclsImage) -> None:
        if acls.index.base is not self._warmed:
            self._warmed = acls.index.base
            self.warm(acls)

    def _first_image(self) -> Image | None:
        while not self._stopping.wait(0.02):
            if self.live.newest is not None:
                return self.live.newest.image
        return None

    def _watch(self, image: Image) -> RuleWatch:
        return RuleWatch.after(
            image,
            self.log,
            newest=self._newest_image,
            notify=lambda _: None,
            merge_at=merge_at(len(image.acls)),
        )

    def _newest_image(self) -> Image:
        """Return the state from which to continue after a snapshot has replaced the next records of the log."""
        newest = self.live.newest
        if newest is None or newest.image.end_offset < self.log.start_offset():
            raise LogError(f"{self.log.name}: a snapshot has replaced records that were not read yet: it is being read")
        return newest.image

    def _take_all(self, watch: RuleWatch) -> None:
        """Append the changes committed since the last read."""
        while not self._stopping.is_set():
            before = watch.end_offset
            changes = watch.step(0)
            if watch.end_offset == before:
                return
            self._add(changes, watch)

    def _add(self, changes: Sequence[Change], watch: RuleWatch) -> None:
        def added(history: KnownHistory) -> KnownHistory:
            """Return the history with these changes at its end, shortened if it is too long; its trouble is over."""
            if history.trouble is not None:
                history = evolve(history, trouble=None, edition=history.edition + 1)
            timeline = history.timeline.followed_by(changes, end=watch.end_offset, acls=watch.acls)
            if len(timeline) <= self.most + self.most // 10:  # some at a time, as it takes a copy of the rest
                return evolve(history, timeline=timeline)
            older = _too_many(self.most)
            return evolve(history, timeline=timeline.shortened(self.most), is_reading=False, older=older)

        self._set(added)

    def _note_trouble(self, trouble: str | None) -> None:
        history = self._history
        if history is not None and history.trouble != trouble:
            self._set(lambda history: evolve(history, trouble=trouble, edition=history.edition + 1))

    def _read_back(self) -> None:
        """Read older changes, a part at a time, until the log begins or the limit is reached."""
        try:
            older = self._parts()
        except (MetadataError, OSError) as error:
            older = f"older changes cannot be read: {error}"
        if not self._stopping.is_set():
            self._set(lambda history: _ended(history, older))

    @property
    def _timeline(self) -> RuleTimeline:
        assert self._history is not None  # noqa: S101 - the thread begins after the first state
        return self._history.timeline

    def _parts(self) -> str:
        """Read older changes part by part; return why nothing older is known."""
        begin, size = start_of(self.live.source), self.first_part
        while not self._stopping.is_set():
            newer = self._timeline
            room = self.most - len(newer)
            if newer.begin <= begin.end_offset:
                return "" if begin.end_offset == 0 else "the log begins with this state"
            if room <= 0:
                return _too_many(self.most)
            offset = self._batch_at(max(newer.begin - size, begin.end_offset))
            image = begin if offset <= begin.end_offset else self.live.image_at(offset)
            part = self._part(image, newer, room)
            if part is None:
                break
            if part.begin >= newer.begin:  # the changes that became visible together exceed the limit
                return _too_many(self.most)
            self._set(lambda history, part=part: _with_older(history, part))  # type: ignore[misc]
            size *= _GROWTH
        return ""

    def _batch_at(self, offset: int) -> int:
        """Return the offset at which the batch begins that holds another one: in its middle there is no state."""
        chunk = self.log.read(offset, 1)
        return next((header.base_offset for _, header in iter_batches(chunk)), offset)

    def _part(self, image: Image, newer: RuleTimeline, room: int) -> RuleTimeline | None:
        """Return the timeline from a state to the beginning of the known history; None: stopped."""

        def deleted() -> Image:
            raise LogError(f"{self.log.name}: retention has deleted records while they were read")

        watch = RuleWatch.after(image, self.log, newest=deleted, notify=lambda _: None, pause=self.pause)
        changes, begin = deque[Change](maxlen=room), image.end_offset
        timestamp = image.timestamp
        while watch.end_offset < newer.begin:
            if self._stopping.is_set():
                return None
            for change in watch.step(0):
                if change.end_offset > newer.begin:
                    break
                if len(changes) == room:
                    begin, timestamp = changes[0].end_offset, changes[0].timestamp
                changes.append(change)
        while changes and changes[0].end_offset == begin:  # others that became visible with it are left out
            timestamp = changes.popleft().timestamp
        part = RuleTimeline.back_from(newer, tuple(changes), begin=begin, timestamp=timestamp, pause=self.pause)
        if begin == image.end_offset and len(part.anchors[0].acls) != len(image.acls):
            raise LogError(f"{self.log.name}: from offset {begin} on its changes do not lead to the newest state")
        return part


def _too_many(most: int) -> str:
    return f"at most the newest {most:,} changes are kept"


def _ended(history: KnownHistory, older: str) -> KnownHistory:
    return evolve(history, is_reading=False, older=history.older or older, edition=history.edition + 1)


def _with_older(history: KnownHistory, part: RuleTimeline) -> KnownHistory:
    if history.timeline.begin != part.end:  # its beginning was given up meanwhile, for there are too many changes
        return history
    return evolve(history, timeline=part.joined(history.timeline), edition=history.edition + 1)
