"""What an append returns: a future whose waiters are woken by a plain lock, at half the cost of a condition."""

import threading
from concurrent.futures import Future

from aclog.metalog.log import Appended


class Acknowledgement(Future[Appended]):
    """A Future in every respect; only the wait of `result` and `exception` is another.

    Future waits by a Condition, which takes two locks and a queue for each waiter: with 64 threads that each wait for
    their own append, that was half of all the time (docs/decisions/0002-group-commit.md).
    """

    def __init__(self) -> None:
        """Not done, and running already: a write that is under way cannot be called off."""
        super().__init__()
        self.set_running_or_notify_cancel()
        self._gate = threading.Lock()
        self._gate.acquire()

    def set_result(self, result: Appended) -> None:
        """As Future has it; whoever waits goes on even if a callback raises."""
        try:
            super().set_result(result)
        finally:
            self._gate.release()

    def set_exception(self, exception: BaseException | None) -> None:
        """As Future has it; whoever waits goes on even if a callback raises."""
        try:
            super().set_exception(exception)
        finally:
            self._gate.release()

    def result(self, timeout: float | None = None) -> Appended:
        """As Future has it; raises TimeoutError."""
        self._pass(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As Future has it; raises TimeoutError."""
        self._pass(timeout)
        return super().exception(0)

    def _pass(self, timeout: float | None) -> None:
        """Wait at the gate, and leave it open for whoever waits behind."""
        if self.done():
            return
        longest = -1.0 if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX)
        if self._gate.acquire(timeout=longest):
            self._gate.release()
