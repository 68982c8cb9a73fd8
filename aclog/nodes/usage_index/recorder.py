"""Counts the distinct accesses that each image decides, in bounded memory, until they are drained."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext

AccessKey: TypeAlias = tuple[str, str, int, int, str]
"""Principal, host, operation, resource type and name."""

MOST_BYTES: Final = 64 << 20
"""Of accesses between two drains. Names may be long, and clients choose them."""
_ENTRY_BYTES = 400
"""Of a distinct access, besides its texts."""

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
    """What one image has decided since the last drain."""

    number: int
    """Images are numbered upwards."""
    since: int
    """When it began to decide, in us since 1970."""
    image: AclsImage
    counts: list[AccessCount]


class Left(NamedTuple):
    """Decisions that no ACL made, and accesses for which there was no memory."""

    super_user: int = 0
    early: int = 0
    """Of super users, before the log had been replayed."""
    not_ready: int = 0
    dropped: int = 0


class Drained(NamedTuple):
    """What happened between two drains."""

    images: list[ImageAccesses]
    """In order: that of the drain before, those that have decided anything since, and the newest."""
    left: Left


def now_us() -> int:
    """Return the time in us since 1970."""
    return time.time_ns() // 1000


@define(eq=False)
class AccessRecorder:
    """An AccessObserver; any thread may call it."""

    is_ready: Callable[[], bool]
    """Whether the log has been replayed."""
    clock: Callable[[], int] = time.time_ns
    """Returns the time in ns since 1970."""
    most_bytes: int = MOST_BYTES
    half_full: threading.Event = field(factory=threading.Event, init=False)
    """Set when it is time to drain before the interval is over."""
    lock: threading.Lock = field(factory=threading.Lock, init=False)
    _number: int = field(default=0, init=False)
    _newest: "ImageTally | None" = field(default=None, init=False)
    _before: "ImageTally | None" = field(default=None, init=False)
    """The newest one at the last drain."""
    _pending: "list[ImageTally]" = field(factory=list, init=False)
    _bytes: int = field(default=0, init=False)
    _left: list[int] = field(factory=lambda: [0] * len(Left._fields), init=False)

    def begin(self, image: AclsImage) -> "ImageTally":
        """See AccessObserver."""
        with self.lock:
            self._number += 1
            self._newest = ImageTally(self, image, self._number, self.clock() // 1000)
            return self._newest

    def drain(self) -> Drained:
        """Take what was counted since the last drain."""
        with self.lock:
            tallies, self._pending, self._bytes = self._pending, [], 0
            tallies += [each for each in (self._before, self._newest) if each is not None and each not in tallies]
            tallies = list(dict.fromkeys(tallies))
            self._before = self._newest
            taken = [(tally, tally.take()) for tally in tallies]
            left, self._left = Left(*self._left), [0] * len(Left._fields)
            self.half_full.clear()
        images = [ImageAccesses(tally.number, tally.since, tally.image, _listed(days)) for tally, days in taken]
        return Drained(sorted(images, key=lambda each: each.number), left)

    def leave(self, reason: int, count: int) -> None:
        """Count what no ACL decided; `reason` is a place in Left."""
        with self.lock:
            self._left[reason] += count

    def admit(self, tally: "ImageTally", key: AccessKey) -> bool:
        """Find memory for one more distinct access; the lock is held."""
        size = _ENTRY_BYTES + sys.getsizeof(key[0]) + sys.getsizeof(key[1]) + sys.getsizeof(key[4])
        if self._bytes + size > self.most_bytes:
            self._left[_DROPPED] += 1
            return False
        self._bytes += size
        if 2 * self._bytes > self.most_bytes:
            self.half_full.set()
        if not tally.is_pending:
            tally.is_pending = True
            self._pending.append(tally)
        return True


_SUPER_USER, _EARLY, _NOT_READY, _DROPPED = range(len(Left._fields))
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
        """See AccessTally. Counts decisions that ask for a line in the audit log."""
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
                    known = counts.get(key)
                    if known is not None:
                        known[0] += 1
                        known[2] = now
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
        taken, self._days, self._counts = self._days, [], {}
        self._day_begins = self._day_ends = 0
        self.is_pending = False
        return taken


def _listed(days: list[tuple[int, _Counts]]) -> list[AccessCount]:
    # the clock may have been set back
    return [
        AccessCount(key, day, count, min(first, last) // 1000, max(first, last) // 1000)
        for day, counts in days
        for key, (count, first, last) in counts.items()
    ]
