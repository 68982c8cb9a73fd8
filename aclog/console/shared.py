"""Values that are costly to make, the order of work, turns, and rates that are bounded by key."""

import asyncio
import errno
import fcntl
import os
import stat
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from attrs import field

from aclog.authorizer.index.layout import Pause
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.terminal.columns import json_text

# A cache of costly values by key: each is made once, even if several threads need it at the same time.


_Value = TypeVar("_Value")


@define(eq=False)
class Cache(Generic[_Value]):
    """A cache of bounded size that evicts the least recently used value. Thread-safe."""

    most: int
    _values: "OrderedDict[Hashable, _Value]" = field(factory=OrderedDict, init=False)
    _making: "dict[Hashable, threading.Lock]" = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def has(self, key: Hashable) -> bool:
        """Return whether a value is there."""
        with self._lock:
            return key in self._values

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return a value, made if it is missing; concurrent callers wait for it. Raises what `make` raises."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:  # another one has made it
                    return self._values[key]
            try:
                value = make()
                with self._lock:
                    self._values[key] = value
                    while len(self._values) > self.most:
                        self._values.popitem(last=False)
                return value
            finally:
                with self._lock:
                    self._making.pop(key, None)


# A file that lines of JSON are appended to, each in one write.


_ROOM = "free space on its disk; no restart is needed"


@define(eq=False)
class LineFile:
    """Opens its file when it is made; safe for any number of threads. The directory must exist.

    Processes that share a file lock it for each line, and see whether one of them has written its last line in part.
    """

    path: Path
    is_shared: bool = field(default=False, kw_only=True)
    """Whether other processes append to it as well."""
    _number: int = field(init=False)
    _is_torn: bool = field(default=False, init=False)
    """Whether the last line was written in part."""
    _has_failed: bool = field(default=False, init=False)
    """Whether the last write failed."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._number = _opened(self.path, is_shared=self.is_shared)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line, with the time before its fields. Raises OSError as append."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.append(json_text({"time": time, **line}))

    def append(self, text: str) -> None:
        """Append a line. Raises OSError: it was not written whole; the next one begins a line of its own."""
        # Text that is not UTF-8, such as a lone surrogate in a name, is written escaped.
        line = f"{text}\n".encode("utf-8", "backslashreplace")
        with self._lock, self._locked():
            is_torn = self._is_torn or (self.is_shared and _ends_within_a_line(self._number))
            data = b"\n" + line if is_torn else line
            written = self._written(data)
            if written < len(data):
                self._is_torn, self._has_failed = True, True
                raise OSError(f"{self.path}: a line was not written whole: {_ROOM}")
            self._is_torn = self._has_failed = False

    def check(self) -> None:
        """After a failed write: write an empty line, so that no work begins of which no line could be written.

        Raises OSError: it is not written either.
        """
        with self._lock, self._locked():
            if self._has_failed:
                self._written(b"\n")
                self._is_torn = self._has_failed = False

    def _written(self, data: bytes) -> int:
        try:
            return os.write(self._number, data)
        except OSError as error:
            self._has_failed = True
            advice = f": {_ROOM}" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
            raise OSError(f"{self.path}: {error.strerror}{advice}") from error

    def reopen(self) -> None:
        """Reopen the path after the file was rotated. Raises OSError: it cannot be opened."""
        number = _opened(self.path, is_shared=self.is_shared)
        with self._lock:
            os.close(self._number)
            self._number, self._is_torn = number, False

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._number)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing during the `with`. Raises OSError: no file that can be locked."""
        if not self.is_shared:
            yield
            return
        number = self._number
        fcntl.flock(number, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(number, fcntl.LOCK_UN)


def _opened(path: Path, *, is_shared: bool) -> int:
    """Open a file to append to; a shared one also to read its end, unless it is a pipe or a device."""
    mode = os.O_RDWR if is_shared and not (path.exists() and not path.is_file()) else os.O_WRONLY
    return os.open(path, mode | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _ends_within_a_line(number: int) -> bool:
    status = os.fstat(number)
    is_begun = stat.S_ISREG(status.st_mode) and status.st_size > 0
    return is_begun and os.pread(number, 1, status.st_size - 1) != b"\n"


# Pages go before background work: all threads share one interpreter, which runs one at a time.


_WORK_S = 0.01
"""How long background work runs before it checks for pages in progress."""
_WAIT_S = 0.05
"""The longest wait of background work: it then continues, even if there are always pages in progress."""


@define(eq=False)
class Precedence:
    """Which of the threads of a console goes first. Thread-safe."""

    _pages: int = field(default=0, init=False)
    """Pages that are being made."""
    _free: threading.Event = field(factory=threading.Event, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._free.set()

    @contextmanager
    def page(self) -> Iterator[None]:
        """Make a page during the `with`."""
        with self._lock:
            self._pages += 1
            self._free.clear()
        try:
            yield
        finally:
            with self._lock:
                self._pages -= 1
                if not self._pages:
                    self._free.set()

    def give_way(self) -> Pause:
        """Return a callback that background work calls regularly: it waits there for pages, for a bounded time."""
        began = elapsed_seconds()

        def paused() -> None:
            """Wait, if it is time to."""
            nonlocal began
            if elapsed_seconds() - began >= _WORK_S:
                self._free.wait(_WAIT_S)
                began = elapsed_seconds()

        return paused


# Rates that are bounded by key: so many at once, and then one more after each interval.


_REMEMBERED = 10_000
"""Keys that are kept; the one that was not used for longest goes first."""


@frozen
class Budget:
    """So many at once, and one more each time that so many seconds have passed."""

    burst: int
    seconds: float


@define(eq=False)
class RateBudget:
    """Remaining budgets by key. Memory is bounded."""

    budget: Budget
    _balances: "OrderedDict[Hashable, tuple[float, float]]" = field(factory=OrderedDict, init=False)
    """The balance, and its time."""

    def balance(self, key: Hashable, now: float) -> float:
        """Return how much is left, as a fraction."""
        balance, then = self._balances.get(key, (float(self.budget.burst), now))
        return min(balance + max(now - then, 0.0) / self.budget.seconds, float(self.budget.burst))

    def wait(self, key: Hashable, now: float) -> float:
        """Return for how many seconds nothing is left; 0 if something is."""
        return max(1.0 - self.balance(key, now), 0.0) * self.budget.seconds

    def spend(self, key: Hashable, now: float, number: float) -> None:
        """Take from a budget, or give back."""
        self._balances[key] = min(self.balance(key, now) - number, float(self.budget.burst)), now
        self._balances.move_to_end(key)
        if len(self._balances) > _REMEMBERED:
            self._balances.popitem(last=False)


# Turns: one at a time for each key, and a bounded number that wait.


class NoTurnError(Exception):
    """Too many of this key wait already; the request can be sent again later."""


@frozen(eq=False)
class _Waiting:
    turn: "asyncio.Future[None]"
    is_lasting: bool


@define(eq=False, kw_only=True)
class Turns:
    """Owned by one event loop."""

    waiting: int
    """How many of one key may wait, besides the one whose turn it is."""
    replaces: bool = False
    """Whether a new one replaces the one that has waited longest; a browser has given that up by then."""
    _lines: dict[Hashable, deque[_Waiting]] = field(factory=dict, init=False)
    """Waiting requests by key."""

    @asynccontextmanager
    async def turn(self, key: Hashable, *, is_lasting: bool = False) -> AsyncIterator[None]:
        """Wait for the key's turn, which ends with the `with`. One that `is_lasting` is never replaced.

        Raises:
            NoTurnError: too many wait already, or a new one has replaced it.

        """
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque()
        else:
            await self._wait(key, line, is_lasting=is_lasting)
        try:
            yield
        finally:
            self._pass_on(key)

    async def _wait(self, key: Hashable, line: deque[_Waiting], *, is_lasting: bool) -> None:
        if len(line) >= self.waiting:
            self._make_place(line)
        mine = _Waiting(asyncio.get_running_loop().create_future(), is_lasting)
        line.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in line:
                line.remove(mine)
            elif mine.turn.done() and not mine.turn.cancelled() and mine.turn.exception() is None:
                self._pass_on(key)
            raise

    def _make_place(self, line: deque[_Waiting]) -> None:
        """Refuse one that waits. Raises NoTurnError: none may be replaced."""
        oldest = next((each for each in line if not each.is_lasting), None) if self.replaces else None
        if oldest is None:
            raise NoTurnError
        line.remove(oldest)
        if not oldest.turn.done():
            oldest.turn.set_exception(NoTurnError())

    def _pass_on(self, key: Hashable) -> None:
        line = self._lines[key]
        while line:
            turn = line.popleft().turn
            if not turn.done():
                turn.set_result(None)
                return
        del self._lines[key]
