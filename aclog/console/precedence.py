"""Pages go before work that nobody waits for: all of them share one interpreter, which runs one thread at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

from aclog.authorizer.index.arrays import Pause
from aclog.metalog.clock import elapsed_seconds

_WORK_S = 0.01
"""For how long work goes on before it looks whether a page is being made."""
_WAIT_S = 0.05
"""The longest that it then waits: it goes on all the same, though pages are asked for without end."""


@define(eq=False)
class Precedence:
    """Which of the threads of a console goes first. Thread-safe."""

    _pages: int = field(default=0, init=False)
    """That are being made."""
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
        """Return what one thread calls again and again while it works: it waits there for pages, for a while."""
        began = elapsed_seconds()

        def paused() -> None:
            """Wait, if it is time to."""
            nonlocal began
            if elapsed_seconds() - began >= _WORK_S:
                self._free.wait(_WAIT_S)
                began = elapsed_seconds()

        return paused
