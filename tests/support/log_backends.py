"""The places where a log can live, for the contract suite: how to open one that can be written, and one to be read.

A backend that can only be read (a live quorum) joins `READABLE` alone; one that can be written joins both.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

from attrs import frozen

from metalog.filelog import open_log, open_reader
from metalog.log import Appended, Log, LogReader
from metalog.memorylog import MemoryLog

SEGMENT_BYTES = 2048


@frozen(kw_only=True)
class Readable:
    """A reader, and how to have something committed in the log that it reads: `feed(values, timestamp=ms)`."""

    reader: LogReader
    feed: Callable[..., Appended]


@contextmanager
def writable_file(directory: Path) -> Iterator[Log]:
    with open_log(directory / "log", create=True, segment_bytes=SEGMENT_BYTES) as log:
        yield log


@contextmanager
def writable_memory(directory: Path) -> Iterator[Log]:
    with closing(MemoryLog()) as log:
        yield log


def _feeder(log: Log) -> Callable[..., Appended]:
    return lambda values, timestamp=0: log.append(values, timestamp=timestamp).result(timeout=60)


@contextmanager
def readable_file(directory: Path) -> Iterator[Readable]:
    """The writer itself as a reader."""
    with writable_file(directory) as log:
        yield Readable(reader=log, feed=_feeder(log))


@contextmanager
def readable_directory(directory: Path) -> Iterator[Readable]:
    """A reader as another process would open it."""
    with ExitStack() as stack:
        log = stack.enter_context(writable_file(directory))
        reader = stack.enter_context(open_reader(directory / "log"))
        yield Readable(reader=reader, feed=_feeder(log))


@contextmanager
def readable_memory(directory: Path) -> Iterator[Readable]:
    with writable_memory(directory) as log:
        yield Readable(reader=log, feed=_feeder(log))


WRITABLE: dict[str, Callable[[Path], AbstractContextManager[Log]]] = {
    "file": writable_file,
    "memory": writable_memory,
}

READABLE: dict[str, Callable[[Path], AbstractContextManager[Readable]]] = {
    "file": readable_file,
    "directory": readable_directory,
    "memory": readable_memory,
}
