"""asyncio's event loop on virtual time: its selector is the scheduler, its sockets are the simulated network's."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from typing import Any

from tests.simulation.scheduler import ProcessDeathError, Scheduler


class _Selector:
    """Blocks the loop's thread until there is something to do."""

    def __init__(self, loop: "SimLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        """Wait; there are no files to report."""
        loop = self._loop
        scheduler = loop.scheduler
        if scheduler.fiber().process is not loop.process:
            raise ProcessDeathError
        if timeout is None or timeout > 0:
            loop.fiber = scheduler.current
            loop.is_selecting = True
            try:
                scheduler.block(timeout)
            finally:
                loop.is_selecting = False
        return []

    def close(self) -> None:
        """Nothing to close."""


class SimLoop(asyncio.BaseEventLoop):
    """An event loop of a simulated process. Callbacks run in the order of call_soon, as asyncio promises."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self.scheduler = scheduler
        self.process = scheduler.fiber().process
        self.process.loops.append(self)
        self.fiber: Any = None
        self.is_selecting = False
        self._selector = _Selector(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(self._report)

    def _report(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ProcessDeathError) or self.process.dead or self.process.dying:
            return
        self.process.report(f"{context.get('message')}: {error!r}")

    def time(self) -> float:
        """See asyncio."""
        return self.process.monotonic()  # type: ignore[no-any-return]

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        if self.is_selecting:
            self.scheduler.wake(self.fiber)

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
        handle = super().call_soon_threadsafe(callback, *args, context=context)
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
