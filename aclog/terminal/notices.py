"""Notices on stderr that are limited: of a server, so many of a kind; of an old state, as its age doubles."""

import threading
from collections.abc import Callable

from attrs import define, field

from aclog.metalog.clock import elapsed_seconds
from aclog.snapshots.freshness import Freshness
from aclog.terminal.output import time_text, warn


@define(eq=False, kw_only=True)
class FewNotices:
    """Prints notices of one kind, so many a minute at most: a server repeats some for each request. Thread-safe."""

    tell: Callable[[str], None]
    most: int = 20
    seconds: float = 60.0
    clock: Callable[[], float] = elapsed_seconds
    _began: float | None = field(default=None, init=False)
    _printed: int = field(default=0, init=False)
    _left_out: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __call__(self, text: str) -> None:
        """Print a notice, or suppress it; the first one after suppressed notices is preceded by their number."""
        left_out = self.admit()
        if left_out is None:
            return
        if left_out:
            self.tell(
                f"{left_out:,} notices such as the next one were left out: at most {self.most} a minute are shown"
            )
        self.tell(text)

    def admit(self) -> int | None:
        """Return how many were left out before one that is printed; None if this one is left out."""
        with self._lock:
            now, left_out = self.clock(), 0
            if self._began is None or now - self._began >= self.seconds:
                left_out, self._left_out = self._left_out, 0
                self._began, self._printed = now, 0
            if self._printed == self.most:
                self._left_out += 1
                return None
            self._printed += 1
            return left_out


# Warnings on stderr that a state is old.


STALE_SECONDS = 5.0
"""From this age on a state is reported as old. A healthy leader answers an observer at least every second."""


def age_text(freshness: Freshness) -> str:
    """Return the age of a state, its time, its server, and why there is no newer one."""
    time = time_text(freshness.time)
    if not freshness.followed:
        return f"this state was read {freshness.seconds:.0f} s ago from {freshness.server}, at {time}"
    why = f": {freshness.problem}" if freshness.problem else ""
    return (
        f"the cluster has not answered for {freshness.seconds:.0f} s; this state is from {time}, "
        f"by {freshness.server}{why}"
    )


def warn_if_stale(freshness: Freshness | None) -> None:
    """Warn if the state may be out of date; an age of None means that the state is not from a cluster."""
    if freshness is not None and freshness.seconds >= STALE_SECONDS:
        warn(age_text(freshness))


@define
class AgeWatch:
    """Warns when a state becomes old, and again whenever its age has doubled."""

    _next: float = field(default=0.0, init=False)

    def tell(self, freshness: Freshness | None) -> None:
        """Warn if it is time to."""
        if freshness is None or freshness.seconds < STALE_SECONDS:
            self._next = 0.0
        elif freshness.seconds >= self._next:
            self._next = 2 * freshness.seconds
            warn(age_text(freshness))
