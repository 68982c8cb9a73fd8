"""Group commit: many concurrent writers share one fsync."""

import asyncio
import os
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeAlias

from attrs import define, field

from aclog.metalog.committed_log import Appended
from aclog.metalog.filelog import FileLog, open_log
from benchmarks.report import Row

WRITERS = 64
SHARED_TARGET, DISK_TARGET, SLOW_TARGET = 32.0, 8.0, 30.0
VALUE = bytes(100)


Measured: TypeAlias = tuple[float, float]
"""Appends per second, and acknowledgements per fsync."""


def _measure(directory: Path, fsync: Callable[[int], None], work: Callable[[FileLog], tuple[int, float]]) -> Measured:
    fsyncs = 0

    def counted(fd: int) -> None:
        nonlocal fsyncs
        fsyncs += 1
        fsync(fd)

    with open_log(directory, create=True, fsync=counted) as log:
        fsyncs = 0
        done, took = work(log)
        return done / took, done / max(fsyncs, 1)


def _in_threads(log: FileLog, writers: int, seconds: float) -> tuple[int, float]:
    """Append from threads that each wait for their own append; return acknowledged appends and elapsed seconds."""
    done = [0] * writers

    def write(number: int) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            log.append([VALUE], timestamp=1).result()
            done[number] += 1

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done), time.monotonic() - start


@define
class _Bridge:
    """Passes acknowledgements from the commit thread to an event loop, with one wake-up per commit, as a node does."""

    loop: asyncio.AbstractEventLoop
    _ready: deque["asyncio.Future[None]"] = field(factory=deque)
    _waking: bool = False

    def acknowledged(self, appended: "Future[Appended]") -> "asyncio.Future[None]":
        waiter = self.loop.create_future()
        appended.add_done_callback(lambda _: self._done(waiter))
        return waiter

    def _done(self, waiter: "asyncio.Future[None]") -> None:
        self._ready.append(waiter)
        if not self._waking:
            self._waking = True
            self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._waking = False
        while self._ready:
            self._ready.popleft().set_result(None)


def _on_a_loop(log: FileLog, writers: int, seconds: float) -> tuple[int, float]:
    """Append from coroutines of one event loop; return as `_in_threads`."""

    async def all_of_them() -> tuple[int, float]:
        bridge, start = _Bridge(asyncio.get_running_loop()), time.monotonic()

        async def write() -> int:
            done = 0
            while time.monotonic() < start + seconds:
                await bridge.acknowledged(log.append([VALUE], timestamp=1))
                done += 1
            return done

        counts = await asyncio.gather(*(write() for _ in range(writers)))
        return sum(counts), time.monotonic() - start

    return asyncio.run(all_of_them())


def _slow(fd: int) -> None:
    time.sleep(0.002)
    os.fsync(fd)


def run(seconds: float, scratch: Path) -> Iterator[Row]:
    """Yield rows of 64 writers vs. one, on this disk and with 2 ms added to fsync."""
    for name, fsync, target in (("this disk", os.fsync, DISK_TARGET), ("2 ms added to fsync", _slow, SLOW_TARGET)):
        for form, work in (("threads", _in_threads), ("coroutines", _on_a_loop)):
            directory = Path(tempfile.mkdtemp(dir=scratch))
            try:
                one, _ = _measure(directory / "one", fsync, partial(work, writers=1, seconds=seconds))
                many, shared = _measure(directory / "many", fsync, partial(work, writers=WRITERS, seconds=seconds))
            finally:
                shutil.rmtree(directory)
            what = f"group commit, {name}, {form}"
            yield Row(
                what=f"{what}: appends/s of {WRITERS} writers vs. one",
                ours=many,
                theirs=one,
                unit="/s",
                target=target,
                more_is_better=True,
            )
            yield Row(
                what=f"{what}: acknowledgements per fsync",
                ours=shared,
                unit="",
                target=SHARED_TARGET,
                more_is_better=True,
            )
