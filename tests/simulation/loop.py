"""asyncio's event loop on virtual time: its selector is the scheduler, its sockets are the simulated network's."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from heapq import heappop, heappush
from typing import Any

from tests.simulation.scheduler import ProcessDeathError, Scheduler

_MOST_SECONDS = 86_400.0
"""The longest wait, as in asyncio."""


class _Selector:
    """What asyncio closes with a loop; the loop waits by itself."""

    def close(self) -> None:
        """Nothing to close."""


class _Handle:
    """A callback of a loop, as asyncio.Handle and asyncio.TimerHandle are, without what they keep for debugging."""

    __slots__ = ("args", "call", "context", "moment")

    def __init__(self, call: Any, args: tuple[Any, ...], context: Any, moment: float = 0.0) -> None:
        self.call, self.args, self.context, self.moment = call, args, context or copy_context(), moment

    def cancel(self) -> None:
        """See asyncio."""
        self.call = None
        self.args = ()

    def cancelled(self) -> bool:
        """See asyncio."""
        return self.call is None

    def when(self) -> float:
        """See asyncio."""
        return self.moment


class SimLoop(asyncio.BaseEventLoop):
    """An event loop of a simulated process. Callbacks run in the order of call_soon, as asyncio promises."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self.scheduler = scheduler
        self.process = scheduler.fiber().process
        self.process.loops.append(self)
        self.fiber: Any = None
        self.is_selecting = False
        self._selector = _Selector()
        self._scheduled: list[tuple[float, int, _Handle]] = []
        self._numbered = 0
        self._clock_resolution = 1e-9
        self.set_exception_handler(self._report)

    def _report(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ProcessDeathError) or self.process.dead or self.process.dying:
            return
        self.process.report(f"{context.get('message')}: {error!r}")

    def time(self) -> float:
        """See asyncio."""
        return self.scheduler.now

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        if self._closed:
            self._check_closed()
        handle = _Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        if self._closed:
            self._check_closed()
        handle = _Handle(callback, args, context, when)
        self._numbered += 1
        heappush(self._scheduled, (when, self._numbered, handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return self.call_at(self.scheduler.now + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        """Wait until there is something to do, and do it: what asyncio's loop does, in the same order."""
        scheduled, ready, scheduler = self._scheduled, self._ready, self.scheduler
        while scheduled and scheduled[0][2].call is None:
            heappop(scheduled)
        if scheduler.fiber().process is not self.process:
            raise ProcessDeathError
        if not ready and not self._stopping:
            timeout = None
            if scheduled:
                timeout = min(max(0.0, scheduled[0][0] - scheduler.now), _MOST_SECONDS)
            if timeout is None or timeout > 0:
                self.fiber = scheduler.current
                self.is_selecting = True
                try:
                    scheduler.block(timeout)
                finally:
                    self.is_selecting = False
        end = scheduler.now + self._clock_resolution
        while scheduled and scheduled[0][0] < end:
            ready.append(heappop(scheduled)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            call = handle.call
            if call is None:
                continue
            try:
                handle.context.run(call, *handle.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio's handles do
                self.call_exception_handler({"message": f"exception in {call!r}", "exception": error})

    def run_forever(self) -> None:
        """See asyncio; without hooks of the interpreter, which all loops would share."""
        self._check_closed()
        self._check_running()
        self._thread_id = threading.get_ident()
        asyncio._set_running_loop(self)
        try:
            while True:
                self._run_once()
                if self.process.dead or self.process.dying:
                    raise ProcessDeathError
                if self._stopping:
                    break
        finally:
            self._stopping, self._thread_id = False, None
            asyncio._set_running_loop(None)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        handle = self.call_soon(callback, *args, context=context)
        if self.is_selecting:
            self.scheduler.wake(self.fiber)
        if self.scheduler.current is not None:
            self.scheduler.step(0.05)
        return handle

    def run_in_executor(self, _executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Run in a simulated thread of its own."""
        self._check_closed()
        future = self.create_future()
        scheduler = self.scheduler

        def finish(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def work() -> None:
            result, error = None, None
            try:
                result = func(*args)
            except ProcessDeathError:
                raise
            except BaseException as caught:  # noqa: BLE001 - as concurrent.futures does
                error = caught
            if not self.is_closed():
                self.call_soon_threadsafe(finish, result, error)

        scheduler.spawn(self.process, work, "executor", delay=scheduler.random.random() * 1e-4)
        return future

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, ssl: Any = None, **_: Any
    ) -> Any:
        """See asyncio. No server here speaks TLS: a handshake ends as it does at a listener without it."""
        future = self.create_future()

        class Done:
            """The end of an attempt to connect."""

            @staticmethod
            def cancelled() -> bool:
                return bool(future.done())

            def __call__(self, outcome: Any) -> None:
                loop = self_loop
                if not loop.process.dead and not loop.is_closed():
                    loop.call_soon_threadsafe(self._finish, outcome)

            @staticmethod
            def _finish(outcome: Any) -> None:
                if future.done():
                    if not isinstance(outcome, OSError):
                        outcome.loop = self_loop
                        outcome.abort()
                elif isinstance(outcome, OSError):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

        self_loop = self
        self.process.network.connect(self.process, host, port, Done())
        side = await future
        if ssl is not None:
            side.loop = self
            side.abort()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        protocol = protocol_factory()
        side.attach(self, protocol)
        return side, protocol

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **_: Any) -> Any:
        """See asyncio."""
        protocol = protocol_factory()
        sock.side.attach(self, protocol)
        return sock.side, protocol

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        """Call when a connection waits at a listening socket."""
        fd.reader = self, (lambda: callback(*args)) if args else callback
        fd.ready()

    def remove_reader(self, fd: Any) -> bool:
        """See asyncio."""
        removed = fd.reader is not None
        fd.reader = None
        return removed
