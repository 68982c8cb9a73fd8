"""Virtual time, and the simulated threads of all processes on one thread of the operating system.

A simulated thread is a greenlet. It runs until it blocks (a lock, a sleep, an fsync, an event loop without work), and
the hub then lets the next event happen. Events of one moment happen in an order that the seed draws. Nothing here reads
a real clock, so that a seed is the whole input of a run.
"""

from asyncio import _get_running_loop, _set_running_loop
from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any
from zlib import crc32

from greenlet import getcurrent, greenlet


class ProcessDeathError(BaseException):
    """Raised in every thread of a process that has crashed; no `except Exception` of the process catches it."""


class Event(list[Any]):
    """A call at a moment of virtual time: moment, drawn order, number, call, arguments.

    A list, because the queue compares and makes them more often than anything else happens.
    """

    __slots__ = ()

    @property
    def cancelled(self) -> bool:
        """Whether nothing will be done."""
        return self[3] is None

    def cancel(self) -> None:
        """Do nothing at that moment."""
        self[3] = None


class Fiber:
    """A simulated thread of a process."""

    def __init__(self, scheduler: "Scheduler", process: Any, target: Callable[[], object], name: str) -> None:
        self.scheduler, self.process, self.name = scheduler, process, name
        self.target = target
        self.ended = False
        self.waiting = 0
        """The number of the wait in progress; 0: not waiting."""
        self.running_loop: Any = None
        self.joiners: list[Fiber] = []
        self.greenlet = greenlet(self._run, scheduler.hub)

    def _run(self, _: object = None) -> None:
        try:
            self.target()
        except ProcessDeathError:
            pass
        finally:
            self.ended = True
            self.process.fibers.pop(self, None)
            for joiner in self.joiners:
                self.scheduler.wake(joiner)


class Scheduler:
    """The hub: a queue of events, the fiber that runs, the only source of chance, and the trace."""

    def __init__(self, seed: int, *, trace: Callable[[str], object] | None = None) -> None:
        self.seed, self.random = seed, Random(seed)
        self.now = 0.0
        self.hub = getcurrent()
        self.current: Fiber | None = None
        self.covered: Counter[str] = Counter()
        """How often each kind of fault and each recovery path happened."""
        self.failures: list[str] = []
        self.digest = 0
        self.steps = 0
        self.descriptors = 1000
        self._trace = trace
        self._draw = self.random.random
        self._queue: list[Event] = []
        self._sequence = 0
        self._waits = 0

    # Events

    def at(self, when: float, call: Callable[..., object], *args: Any) -> Event:
        """Call at a moment; calls of the same moment happen in a drawn order."""
        self._sequence = number = self._sequence + 1
        event = Event((max(self.now, when), self._draw(), number, call, args))
        heappush(self._queue, event)
        return event

    def after(self, delay: float, call: Callable[..., object], *args: Any) -> Event:
        """Call `delay` seconds from now."""
        return self.at(self.now + delay, call, *args)

    def run(self, until: float, done: Callable[[], bool] | None = None) -> None:
        """Let events happen until a moment, or until `done`, or until something has failed."""
        queue, failures = self._queue, self.failures
        while queue and not failures and not (done is not None and done()):
            if queue[0][0] > until:
                break
            when, _, _, call, args = heappop(queue)
            if call is None:
                continue
            self.now = when
            self.steps += 1
            call(*args)
        if not failures and not (done is not None and done()):
            self.now = max(self.now, until)

    def note(self, *what: object) -> None:
        """Add a line to the trace."""
        line = f"{self.now:.6f} {' '.join(map(str, what))}"
        self.digest = crc32(line.encode(), self.digest)
        if self._trace is not None:
            self._trace(line)

    def cover(self, kind: str) -> None:
        """Count a kind of fault or a recovery path."""
        self.covered[kind] += 1

    def fail(self, what: str) -> None:
        """Record a failure; the run ends."""
        self.note("FAILURE", what)
        self.failures.append(what)

    def forget(self) -> None:
        """Drop what has not happened."""
        self._queue.clear()

    # Fibers

    def spawn(self, process: Any, target: Callable[[], object], name: str, *, delay: float = 0.0) -> Fiber:
        """Start a thread of a process."""
        fiber = Fiber(self, process, target, name)
        process.fibers[fiber] = None
        self.after(delay, self._resume, fiber, True)
        return fiber

    def _resume(self, fiber: Fiber, value: object) -> None:
        process = fiber.process
        if fiber.ended or process.dead:
            return
        if process.paused_until > self.now:
            self.at(process.paused_until, self._resume, fiber, value)
            return
        self.current = fiber
        loop = fiber.running_loop
        if loop is not None:
            _set_running_loop(loop)
        try:
            fiber.greenlet.switch(value)
        finally:
            fiber.running_loop = loop = _get_running_loop()
            if loop is not None:
                _set_running_loop(None)
            self.current = None
        if process.dying:
            process.bury()

    def end(self, fiber: Fiber) -> None:
        """Raise ProcessDeathError in a fiber of a process that has crashed; called by the hub."""
        if fiber.ended:
            return
        if not fiber.greenlet:  # it has not begun, or has ended
            fiber.ended = True
            return
        self.current = fiber
        _set_running_loop(None)
        try:
            fiber.greenlet.throw(ProcessDeathError())
        finally:
            _set_running_loop(None)
            self.current = None

    def block(self, timeout: float | None = None) -> bool:
        """Let others run until this fiber is woken, or until the timeout; return whether it was woken."""
        fiber = self.fiber()
        self._waits = fiber.waiting = wait = self._waits + 1
        timer = None if timeout is None else self.at(self.now + timeout, self._time_out, fiber, wait)
        woken = bool(self.hub.switch())
        if woken and timer is not None:
            timer.cancel()
        if fiber.process.dead:
            raise ProcessDeathError
        return woken

    def wake(self, fiber: Fiber) -> None:
        """End a fiber's wait."""
        if fiber.waiting:
            fiber.waiting = 0
            self.at(self.now, self._resume, fiber, True)

    def _time_out(self, fiber: Fiber, wait: int) -> None:
        if fiber.waiting == wait:
            fiber.waiting = 0
            self._resume(fiber, False)

    def fiber(self) -> Fiber:
        """Return the fiber that runs."""
        fiber = self.current
        if fiber is None:
            raise RuntimeError("not in a simulated thread")
        process = fiber.process
        if process.dead or process.dying:
            raise ProcessDeathError
        return fiber

    def sleep(self, seconds: float) -> None:
        """Let others run for a while."""
        self.block(seconds)

    def step(self, chance: float = 0.1) -> None:
        """A point at which another thread may be scheduled."""
        self.fiber()
        if self.random.random() < chance:
            self.block(self.random.random() * 1e-4)


class Lock:
    """threading.Lock, and threading.RLock with `reentrant`."""

    def __init__(self, scheduler: Scheduler, *, reentrant: bool = False) -> None:
        self._scheduler, self._reentrant = scheduler, reentrant
        self._owner: Fiber | None = None
        self._depth = 0
        self._waiters: deque[Fiber] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See threading."""
        fiber = self._scheduler.fiber()
        if self._owner is None:
            self._owner, self._depth = fiber, 1
            return True
        if self._owner is fiber and self._reentrant:
            self._depth += 1
            return True
        if not blocking or timeout == 0:
            return False
        end = None if timeout < 0 else self._scheduler.now + timeout
        while self._owner is not None:
            self._waiters.append(fiber)
            remaining = None if end is None else end - self._scheduler.now
            woken = (remaining is None or remaining > 0) and self._scheduler.block(remaining)
            if fiber in self._waiters:
                self._waiters.remove(fiber)
            if not woken:
                return False
        self._owner, self._depth = fiber, 1
        return True

    def release(self) -> None:
        """See threading."""
        if self._owner is None:
            raise RuntimeError("release unlocked lock")
        self._depth -= 1
        if not self._depth or not self._reentrant:
            self._owner = None
            if self._waiters:
                self._scheduler.wake(self._waiters[0])

    def locked(self) -> bool:
        """See threading."""
        return self._owner is not None

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        if self._owner is not None:
            self.release()


class Condition:
    """threading.Condition."""

    def __init__(self, scheduler: Scheduler, lock: Lock | None = None) -> None:
        self._scheduler = scheduler
        self._lock = lock or Lock(scheduler, reentrant=True)
        self._waiters: deque[Fiber] = deque()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()

    def wait(self, timeout: float | None = None) -> bool:
        """See threading."""
        fiber = self._scheduler.fiber()
        self._waiters.append(fiber)
        self._lock.release()
        woken = self._scheduler.block(timeout)
        if fiber in self._waiters:
            self._waiters.remove(fiber)
        self._lock.acquire()
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """See threading."""
        end = None if timeout is None else self._scheduler.now + timeout
        result = predicate()
        while not result:
            remaining = None if end is None else end - self._scheduler.now
            if remaining is not None and remaining <= 0:
                break
            self.wait(remaining)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """See threading."""
        while n > 0 and self._waiters:
            self._scheduler.wake(self._waiters.popleft())
            n -= 1

    def notify_all(self) -> None:
        """See threading."""
        self.notify(len(self._waiters))


class ThreadEvent:
    """threading.Event."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._set = scheduler, False
        self._waiters: list[Fiber] = []

    def is_set(self) -> bool:
        """See threading."""
        return self._set

    def set(self) -> None:
        """See threading."""
        self._set = True
        waiters, self._waiters = self._waiters, []
        for fiber in waiters:
            self._scheduler.wake(fiber)

    def clear(self) -> None:
        """See threading."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """See threading."""
        if not self._set:
            fiber = self._scheduler.fiber()
            self._waiters.append(fiber)
            self._scheduler.block(timeout)
            if fiber in self._waiters:
                self._waiters.remove(fiber)
        return self._set


class Thread:
    """threading.Thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "thread",
        daemon: bool = True,
    ) -> None:
        self._scheduler, self._target, self._args = scheduler, target, args
        self.name, self.daemon = name, daemon
        self.fiber: Fiber | None = None

    def start(self) -> None:
        """See threading."""
        scheduler = self._scheduler
        process = scheduler.fiber().process
        self.fiber = scheduler.spawn(process, lambda: self._target(*self._args), self.name)
        process.threads[self.fiber] = self

    def join(self, timeout: float | None = None) -> None:
        """See threading."""
        fiber = self.fiber
        end = None if timeout is None else self._scheduler.now + timeout
        while fiber is not None and not fiber.ended:
            remaining = None if end is None else end - self._scheduler.now
            if remaining is not None and remaining <= 0:
                return
            here = self._scheduler.fiber()
            fiber.joiners.append(here)
            self._scheduler.block(remaining)
            if here in fiber.joiners:
                fiber.joiners.remove(here)

    def is_alive(self) -> bool:
        """See threading."""
        return self.fiber is not None and not self.fiber.ended
