"""The history of a source's rules: followed as it goes on, and read back to where the log begins, newest first."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from attrs import define, evolve, field, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.console.live_state import LiveState
from aclog.console.rule_timeline import RuleTimeline, merge_at
from aclog.console.time_offsets import TimeOffsets
from aclog.metalog.batches import iter_batches
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.log import LogReader
from aclog.snapshots.image import Image
from aclog.snapshots.rule_history import Change
from aclog.snapshots.rule_watch import RuleWatch
from aclog.sources.log_history import start_of
from aclog.sources.log_mark import LogMark, ReplacedError

_EVERY_S = 0.2
"""How long a change may wait for being seen, when no page asks."""
_CHECK_S = 1.0
"""Between two looks whether the log still is the same."""
_FIRST, _GROWTH = 20_000, 8
"""Records that are read back at first, and how many times more each time after: each time takes a replay."""
MOST_CHANGES = 100_000
"""Changes that are kept, at about 3 kB each with the states between them."""
_STOP_S = 10.0


@frozen(eq=False, kw_only=True)
class KnownHistory:
    """What is known of a history at one time."""

    timeline: RuleTimeline
    is_reading: bool
    """Whether older changes are still being read."""
    older: str
    """Why nothing before its beginning is known; empty while that is being read, and if there is nothing."""
    trouble: str | None = None
    """Why nothing later is known than its end; None while it is followed."""
    edition: int = 0
    """Another one whenever more is known of the past, or there is other trouble; what comes next does not count."""


@define(eq=False, kw_only=True)
class LiveHistory:
    """A history in two threads of its own; owned by the server that starts and stops it."""

    live: LiveState
    log: LogReader
    most: int = MOST_CHANGES
    first_part: int = _FIRST
    """Records that are read back at first."""
    warm: Callable[[AclsImage], None] = field(default=lambda _: None)
    """Called with rules on each new base, in the history's thread: to find what questions of its states need."""
    pause: Pause = no_pause
    """Called again and again while the past is read, which others may have to wait for."""
    times: TimeOffsets = field(init=False)
    _mark: LogMark = field(init=False)
    _known: KnownHistory | None = field(default=None, init=False)
    _warmed: object = field(default=None, init=False)
    _changed: threading.Condition = field(factory=threading.Condition, init=False)
    _wanted: threading.Event = field(factory=threading.Event, init=False)
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
        self._wanted.set()
        for thread in list(self._threads):
            thread.join(_STOP_S)

    @property
    def known(self) -> KnownHistory | None:
        """What is known now; None before the first state."""
        return self._known

    def caught_up(self, offset: int, seconds: float) -> KnownHistory | None:
        """Return what is known, once it reaches an offset, or when so many seconds are over."""
        known = self._known
        if known is None or known.timeline.end >= offset or known.trouble is not None:
            return known
        self._wanted.set()
        with self._changed:
            self._changed.wait_for(lambda: self._reaches(offset), seconds)
        return self._known

    def _reaches(self, offset: int) -> bool:
        known = self._known
        return known is not None and (known.timeline.end >= offset or known.trouble is not None)

    def _begin_thread(self, run: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _set(self, change: Callable[[KnownHistory], KnownHistory]) -> None:
        with self._changed:
            assert self._known is not None  # noqa: S101 - set before anything else is
            self._known = change(self._known)
            self._changed.notify_all()

    def _follow(self) -> None:
        image = self._first_image()
        if image is None:
            return
        first = RuleTimeline.at(image.acls, offset=image.end_offset, timestamp=image.timestamp)
        with self._changed:
            self._known = KnownHistory(timeline=first, is_reading=True, older="")
            self._changed.notify_all()
        self._begin_thread(self._read_back, "history-past")
        watch = self._watch(image)
        looked = 0.0
        while not self._stopping.is_set():
            try:
                if elapsed_seconds() - looked >= _CHECK_S:
                    self._mark.compare()
                    self._mark.set_before(watch.end_offset)
                    looked = elapsed_seconds()
                self._take_all(watch)
                self._note_trouble(None)
                self._warm(watch.acls)
            except ReplacedError as error:
                self._note_trouble(str(error))
                return
            except (MetadataError, OSError) as error:
                self._note_trouble(str(error))
            self._wanted.wait(_EVERY_S)
            self._wanted.clear()

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
        """Return the state from which a log goes on whose next records a snapshot has replaced."""
        seen = self.live.newest
        if seen is None or seen.image.end_offset < self.log.start_offset():
            raise LogError(f"{self.log.name}: a snapshot has replaced records that were not read yet: it is being read")
        return seen.image

    def _take_all(self, watch: RuleWatch) -> None:
        """Take what was committed since the last time."""
        while not self._stopping.is_set():
            before = watch.end_offset
            changes = watch.step(0)
            if watch.end_offset == before:
                return
            self._add(changes, watch)

    def _add(self, changes: Sequence[Change], watch: RuleWatch) -> None:
        def added(known: KnownHistory) -> KnownHistory:
            """Return the history with these changes at its end, shortened if it is too long; its trouble is over."""
            if known.trouble is not None:
                known = evolve(known, trouble=None, edition=known.edition + 1)
            timeline = known.timeline.followed_by(changes, end=watch.end_offset, acls=watch.acls)
            if len(timeline) <= self.most + self.most // 10:  # some at a time, as it takes a copy of the rest
                return evolve(known, timeline=timeline)
            older = _too_many(self.most)
            return evolve(known, timeline=timeline.shortened(self.most), is_reading=False, older=older)

        self._set(added)

    def _note_trouble(self, trouble: str | None) -> None:
        known = self._known
        if known is not None and known.trouble != trouble:
            self._set(lambda known: evolve(known, trouble=trouble, edition=known.edition + 1))

    def _read_back(self) -> None:
        """Read what is older, a part at a time, until the log begins or enough is known."""
        try:
            older = self._parts()
        except (MetadataError, OSError) as error:
            older = f"what is older cannot be read: {error}"
        if not self._stopping.is_set():
            self._set(lambda known: _ended(known, older))

    @property
    def _timeline(self) -> RuleTimeline:
        assert self._known is not None  # noqa: S101 - the thread begins after the first state
        return self._known.timeline

    def _parts(self) -> str:
        """Read back part by part; return why nothing older is known."""
        begin, size = start_of(self.live.source), self.first_part
        while not self._stopping.is_set():
            newer = self._timeline
            room = self.most - len(newer)
            if newer.begin <= begin.end_offset:
                return "" if begin.end_offset == 0 else "the log begins with this state"
            if room <= 0:
                return _too_many(self.most)
            wanted = self._batch_at(max(newer.begin - size, begin.end_offset))
            image = begin if wanted <= begin.end_offset else self.live.image_at(wanted)
            part = self._part(image, newer, room)
            if part is None:
                break
            if part.begin >= newer.begin:  # what became visible last before it is more than there is room for
                return _too_many(self.most)
            self._set(lambda known, part=part: _with_older(known, part))  # type: ignore[misc]
            size *= _GROWTH
        return ""

    def _batch_at(self, offset: int) -> int:
        """Return the offset at which the batch begins that holds another one: in its middle there is no state."""
        chunk = self.log.read(offset, 1)
        return next((header.base_offset for _, header in iter_batches(chunk)), offset)

    def _part(self, image: Image, newer: RuleTimeline, room: int) -> RuleTimeline | None:
        """Return what led from a state to the beginning of what is known; None if it is to stop."""

        def deleted() -> Image:
            raise LogError(f"{self.log.name}: retention has deleted records while they were read")

        watch = RuleWatch.after(image, self.log, newest=deleted, notify=lambda _: None, pause=self.pause)
        found, left = deque[Change](maxlen=room), image.end_offset
        timestamp = image.timestamp
        while watch.end_offset < newer.begin:
            if self._stopping.is_set():
                return None
            for change in watch.step(0):
                if change.end_offset > newer.begin:
                    break
                if len(found) == room:
                    left, timestamp = found[0].end_offset, found[0].timestamp
                found.append(change)
        while found and found[0].end_offset == left:  # others that became visible with it are left out
            timestamp = found.popleft().timestamp
        part = RuleTimeline.back_from(newer, tuple(found), begin=left, timestamp=timestamp, pause=self.pause)
        if left == image.end_offset and len(part.anchors[0].acls) != len(image.acls):
            raise LogError(f"{self.log.name}: from offset {left} on its changes do not lead to the newest state")
        return part


def _too_many(most: int) -> str:
    return f"at most the newest {most:,} changes are kept"


def _ended(known: KnownHistory, older: str) -> KnownHistory:
    return evolve(known, is_reading=False, older=known.older or older, edition=known.edition + 1)


def _with_older(known: KnownHistory, part: RuleTimeline) -> KnownHistory:
    if known.timeline.begin != part.end:  # its beginning was given up meanwhile, for there are too many changes
        return known
    return evolve(known, timeline=part.joined(known.timeline), edition=known.edition + 1)
