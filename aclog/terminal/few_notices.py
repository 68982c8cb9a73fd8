"""Notices of a server, of which at most so many of a kind are printed.

Apart from the other notices, which `--help` imports: attrs takes a fifth of the time to print a help.
"""

import threading
from collections.abc import Callable

from attrs import define, field

from aclog.metalog.clock import elapsed_seconds


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
        """Print a notice, or leave it out; the first one after those that were left out says how many they were."""
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
