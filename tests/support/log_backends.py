"""The places where a log can live, for the contract suite: how to open one that can be written, and one to be read.

A backend that can only be read (a live quorum) joins `READABLE` alone; one that can be written joins both.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

from attrs import frozen

from metalog.filelog import open_log, open_reader
from metalog.log import Appended, Log, LogReader
from metalog.memorylog import MemoryLog
from nodes.observer.quorum_log import QuorumLog
from tests.support.fake_leader import FakeLeader
from tests.support.fake_quorum import FakeQuorum

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


@contextmanager
def readable_quorum(directory: Path) -> Iterator[Readable]:
    """An observer of a quorum of one, which it has to fetch from."""
    quorum = FakeQuorum()
    with FakeLeader(quorum) as leader, QuorumLog(servers=(leader.address,)) as reader:
        reader.wait_known(60)
        yield Readable(reader=reader, feed=_fed(quorum, reader))


def _fed(quorum: FakeQuorum, reader: LogReader) -> Callable[..., Appended]:
    """Appends, and waits until the observer has heard that it is committed."""

    def feed(values: Sequence[bytes], timestamp: int = 0) -> Appended:
        appended = quorum.append(values, timestamp)
        assert reader.wait(appended.last_offset, 60)
        return appended

    return feed


WRITABLE: dict[str, Callable[[Path], AbstractContextManager[Log]]] = {
    "file": writable_file,
    "memory": writable_memory,
}

READABLE: dict[str, Callable[[Path], AbstractContextManager[Readable]]] = {
    "file": readable_file,
    "directory": readable_directory,
    "memory": readable_memory,
    "quorum": readable_quorum,
}
