"""Group commit: many waiting writers share one fsync."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.report import Row
from metalog.filelog import open_log

WRITERS = 64
SHARED_TARGET, DISK_TARGET, SLOW_TARGET = 32.0, 8.0, 30.0
VALUE = bytes(100)


def _measure(directory: Path, writers: int, seconds: float, fsync: Callable[[int], None]) -> tuple[float, float]:
    """Appends a second, and acknowledgements an fsync, of `writers` that each wait for their own."""
    fsyncs = 0

    def counted(fd: int) -> None:
        nonlocal fsyncs
        fsyncs += 1
        fsync(fd)

    done = [0] * writers
    with open_log(directory, create=True, fsync=counted) as log:

        def write(number: int) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                log.append([VALUE], timestamp=1).result()
                done[number] += 1

        threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
        fsyncs = 0
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - start
        return sum(done) / took, sum(done) / max(fsyncs, 1)


def _slow(fd: int) -> None:
    time.sleep(0.002)
    os.fsync(fd)


def run(seconds: float, scratch: Path) -> Iterator[Row]:
    """Rows of 64 writers beside one, on this disk and with 2 ms put into fsync."""
    for name, fsync, target in (("this disk", os.fsync, DISK_TARGET), ("2 ms more in fsync", _slow, SLOW_TARGET)):
        directory = Path(tempfile.mkdtemp(dir=scratch))
        try:
            one, _ = _measure(directory / "one", 1, seconds, fsync)
            many, shared = _measure(directory / "many", WRITERS, seconds, fsync)
        finally:
            shutil.rmtree(directory)
        what = f"group commit, {name}"
        yield Row(
            what=f"{what}: appends/s of {WRITERS} writers beside one",
            ours=many,
            theirs=one,
            unit="/s",
            target=target,
            more_is_better=True,
        )
        yield Row(
            what=f"{what}: acknowledgements an fsync", ours=shared, unit="", target=SHARED_TARGET, more_is_better=True
        )
