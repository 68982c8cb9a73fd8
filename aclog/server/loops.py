"""Event loops, threads and futures between them."""

import asyncio
import gc
import logging
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, ParamSpec, TypeVar

from aclog.config.node_config import NodeConfig
from aclog.metalog.machine import threads
from aclog.metalog.values import frozen

# The event loop of a node: uvloop's if it is installed, else asyncio's own.


@frozen(kw_only=True)
class LoopKind:
    """An implementation of event loops: its name in the log and the metrics, and its factory."""

    name: str
    factory: Callable[[], asyncio.AbstractEventLoop]


ASYNCIO = LoopKind(name="asyncio", factory=asyncio.new_event_loop)


def loop_for(config: NodeConfig) -> LoopKind:
    """Return the kind of event loop for a node.

    A node with a TLS listener gets asyncio's: what a client receives on a failed handshake depends on asyncio's TLS
    (aclog.server.network.listeners).
    """
    if any(each.security_protocol.tls for each in config.listeners):
        return ASYNCIO
    return installed_loop()


def running_loop() -> str:
    """Return the name of the kind of event loop that runs."""
    loop = installed_loop()
    module = type(asyncio.get_running_loop()).__module__
    return loop.name if module.partition(".")[0] == loop.name.partition(" ")[0] else ASYNCIO.name


def installed_loop() -> LoopKind:
    """Return uvloop, if it is installed."""
    if find_spec("uvloop") is None:
        return ASYNCIO
    uvloop = import_module("uvloop")
    return LoopKind(name=f"uvloop {uvloop.__version__}", factory=uvloop.new_event_loop)


def prepare_collector() -> None:
    """Have the garbage collector leave alone what is imported, and pause briefly: for a process that serves."""
    gc.collect()
    gc.freeze()  # imported modules stay for good: the collector need not scan them
    gc.set_threshold(5_000, 2, 10_000)  # short pauses


# A concurrent Future that an event loop's own thread completes, without the locks of Future.


T = TypeVar("T")

_log = logging.getLogger(__name__)


class LoopFuture(Future[T], Generic[T]):
    """The future of a change, created and completed on one event loop's thread; it cannot be cancelled.

    A Future takes a lock and a condition, and a coroutine that waits for one a second future: together half of what a
    small request costs. Other threads may wait with `result` and `exception`, and nothing else.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """`loop` is the event loop of this thread. Future's own fields are left out: every method is replaced."""
        self._loop = loop
        self._ended = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._sleepers: list[asyncio.Future[None]] = []
        self._callbacks: list[Callable[[Future[T]], object]] = []

    def cancel(self) -> bool:
        """Return False: an append cannot be withdrawn."""
        return False

    def cancelled(self) -> bool:
        """Return False."""
        return False

    def running(self) -> bool:
        """Whether there is no result yet."""
        return not self._ended

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._ended

    def set_running_or_notify_cancel(self) -> bool:
        """Return True: it is never pending."""
        return True

    def waiter(self) -> "asyncio.Future[None]":
        """Return a future for one coroutine of the loop, which may be cancelled; it completes with this one."""
        waiter = self._loop.create_future()
        if self._ended:
            waiter.set_result(None)
        else:
            self._sleepers.append(waiter)
        return waiter

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn` on the loop's thread once this is done; at once if it is."""
        if self._ended:
            self._call(fn)
        else:
            self._callbacks.append(fn)

    def set_result(self, result: T) -> None:
        """Complete it."""
        self._value = result
        self._end()

    def set_exception(self, exception: BaseException | None) -> None:
        """Let it fail."""
        self._error = exception
        self._end()

    def result(self, timeout: float | None = None) -> T:
        """Return the result or raise the error; other threads than the loop's wait for it, `timeout` seconds at most.

        Raises:
            TimeoutError: There is no result yet.
            RuntimeError: There is no result, and the loop is closed.

        """
        self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the error, if there is one. Waits and raises as `result`."""
        self._wait(timeout)
        return self._error

    def _end(self) -> None:
        self._ended = True
        for waiter in self._sleepers:
            if not waiter.done():
                waiter.set_result(None)
        for fn in self._callbacks:
            self._call(fn)
        self._sleepers, self._callbacks = [], []

    def _call(self, fn: Callable[[Future[T]], object]) -> None:
        try:
            fn(self)
        except Exception:  # noqa: BLE001 - as Future does: the others must be called all the same
            _log.exception("a callback failed")

    def _wait(self, timeout: float | None) -> None:
        if self._ended:
            return
        if asyncio._get_running_loop() is self._loop:
            raise TimeoutError("not done yet, and its own event loop cannot wait for it")
        ended = threads.Event()
        self._loop.call_soon_threadsafe(self.add_done_callback, lambda _: ended.set())
        if not ended.wait(timeout):
            raise TimeoutError


# Bridges between the event loop and threads: offloading long work, awaiting commits.


P = ParamSpec("P")

MANY = 256
"""Requests with more entries than this are processed in an executor thread; one entry takes about 10 us."""

MANY_BYTES = 4 << 10
"""Larger requests are decoded in a thread: these bytes may take 3 ms."""

MANY_ENTRIES_BYTES = 1 << 10
"""Larger requests are answered with errors in a thread: an entry may take 3 bytes, and its error 20 us."""


async def offload_if(large: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` and return its result, in a thread if it is `large`. Raises what `work` raises."""
    # Small work stays on the loop: a thread hop costs more than the work itself.
    if large:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


async def committed(future: "Future[T]") -> T:
    """Await the future of a QuorumController or another AclMutator on the event loop.

    Unlike asyncio.wrap_future, a future completed on the loop's own thread (QuorumController's are) needs no
    cross-thread wake-up. Raises the future's exception.
    """
    if isinstance(future, LoopFuture):
        if not future.done():
            await future.waiter()
    elif not future.done():
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def done(_: "Future[T]") -> None:
            if asyncio._get_running_loop() is loop:
                wake()
            else:
                loop.call_soon_threadsafe(wake)

        future.add_done_callback(done)
        await waiter
    return future.result()
