"""Notices on stderr that are limited, and progress: the step of a command, its amount done and the remaining time."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from attrs import field

from aclog.metalog.errors import printable
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define
from aclog.snapshots.image import Freshness
from aclog.terminal.output import has_notices_taken, time_text, warn

if TYPE_CHECKING:
    from aclog.terminal.bar import Bar


# Notices on stderr that are limited: of a server, so many of a kind; of an old state, as its age doubles.


@define(eq=False, kw_only=True, repr=False)
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


# Progress on stderr: the step of a command, its amount done and the remaining time; nothing if it is not a terminal.
#
# Work of less than a second shows nothing. A thread draws, so that work which does not report its progress is seen to
# be under way too; to report it costs two assignments.


_T = TypeVar("_T")

Advance: TypeAlias = Callable[[int, int | None], None]
"""Called with the amount done and the total, if it is known."""

BYTES = "bytes"
"""The unit of amounts that are shown as kB, MB, GB and so on."""

DELAY_SECONDS = 1.0
_STEP = 1024
"""How many items pass between two reports."""


@contextmanager
def progress(what: str, unit: str = "", *, streams: bool = False) -> Iterator[Advance]:
    """Show a step during the `with`, from the end of its first second; it is removed at the end.

    `unit` is a noun in the plural, or BYTES. Inside another `progress` that is shown, nothing is. `streams`: the work
    writes to stdout, and nothing is shown if that is a terminal, since the output is its progress.
    """
    if (
        has_notices_taken()
        or not sys.stderr.isatty()
        or (streams and sys.stdout.isatty())
        or os.environ.get("TERM") == "dumb"
    ):
        yield _ignore
        return
    amounts = Amounts()
    line = _ProgressLine(printable(what), unit, amounts)
    timer = threading.Timer(DELAY_SECONDS, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield amounts.set
    finally:
        timer.cancel()
        line.stop()


def tracked(
    items: Iterable[_T], what: str, unit: str, total: int | None = None, *, streams: bool = False
) -> Iterator[_T]:
    """Yield the items, and show how many meanwhile, as `progress` does.

    With `streams`, each item becomes output: if that goes to a terminal, the first one is waited for only.
    """
    if streams and sys.stdout.isatty():
        iterator = iter(items)
        with progress(what, unit):
            first = list(islice(iterator, 1))
        yield from first
        yield from iterator
        return
    with progress(what, unit, streams=streams) as advance:
        if advance is _ignore:
            yield from items
            return
        for number, item in enumerate(items):
            if not number % _STEP:
                advance(number, total)
            yield item


@define(eq=False, repr=False)
class Amounts:
    """How far the work is: written by it, read by the thread that draws."""

    done: int = 0
    total: int | None = None

    def set(self, done: int, total: int | None) -> None:
        """Take the amount done and the total."""
        self.done, self.total = done, total

    def get(self) -> tuple[int, int | None]:
        """Return the amount done and the total."""
        return self.done, self.total


@define(eq=False, repr=False)
class _ProgressLine:
    """A bar that may be on the screen; started by the timer's thread, stopped by the one that works."""

    what: str
    unit: str
    amounts: Amounts
    _guard: threading.Lock = field(factory=threading.Lock)
    _stopped: bool = False
    _bar: "Bar | None" = None

    def start(self) -> None:
        """Draw from now on, unless the work has ended."""
        from aclog.terminal.bar import Bar, is_shown  # takes a tenth of a second, which only long work pays

        with self._guard:
            if not self._stopped and not is_shown():
                self._bar = Bar(self.what, self.unit, self.amounts.get)
                self._bar.start()

    def stop(self) -> None:
        """Remove what is drawn, and draw no more."""
        with self._guard:
            self._stopped = True
            if self._bar is not None:
                self._bar.stop()


def _ignore(_done: int, _total: int | None) -> None:
    """Ignore an amount that is not shown."""
