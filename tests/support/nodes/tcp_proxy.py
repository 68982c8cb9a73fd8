"""A TCP proxy that is as bad as a network can be: it delays, cuts, refuses, and holds back what it was given."""

import asyncio
import random
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from tests.support.fakes.connections import end_connections
from tests.support.processes.waiting import SECONDS

T = TypeVar("T")

_CHUNK = 1 << 16


class TcpProxy:
    """Serves on a port of its own, in a thread of its own; what is turned holds for all connections at once."""

    def __init__(self, target: int, host: str = "127.0.0.1") -> None:
        self.target, self.host = target, host
        self.port = 0
        self.delay = 0.0
        """Seconds that each piece of a connection waits."""
        self.refusing = False
        """Whether new connections are closed at once."""
        self.budget: int | None = None
        """How many bytes still come back from the target, over all connections; None: all of them."""
        self.cuts = self.connections = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._held = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)

    def hold(self) -> None:
        """Let no byte through, on connections that stay open."""
        self._held = True

    def release(self) -> None:
        """Let everything through, also what was held back."""
        self._held, self.budget = False, None

    def cut(self) -> None:
        """Cut all connections, with a reset."""
        self._call(self._cut())

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self.release()
        await end_connections(self._server, self._abort)

    async def _cut(self) -> None:
        self.cuts += bool(self._open)
        self._abort()

    def _abort(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection(self.host, self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there[1]}
        self._open |= both
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, there[1], back=False))
                group.create_task(self._pump(there[0], writer, back=True))
        except* OSError:
            pass
        finally:
            self._open -= both
            for each in both:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool) -> None:
        while data := await reader.read(_CHUNK):
            while self._held or (back and self.budget is not None and self.budget < len(data)):
                await asyncio.sleep(0.01)
            if back and self.budget is not None:
                self.budget -= len(data)
            if self.delay:
                await asyncio.sleep(random.uniform(0, 2 * self.delay))
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError  # the other direction ends with this one


__all__ = ["TcpProxy"]
