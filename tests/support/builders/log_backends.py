"""The places where a log can live, for the contract suite: how to open one that can be written, and one to be read.

A backend that can only be read (a live quorum) joins `READABLE` alone; one that can be written joins both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from aclog.client.quorum_log import QuorumLog
from aclog.metalog.committed_log import Appended, Log, LogReader
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.topiclog import TopicReader, open_topic_log
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.memory_log import MemoryLog
from tests.support.fakes.quorum import FakeQuorum
from tests.support.kafka.shared import SharedKafka
from tests.support.kafka.topics import new_topic

SEGMENT_BYTES = 2048


@frozen(kw_only=True)
class Place:
    """Where a test may have its log: an empty directory, and a Kafka, which is started when it is asked for."""

    directory: Path
    kafka: Callable[[], SharedKafka]


@frozen(kw_only=True)
class Readable:
    """A reader, and how to have something committed in the log that it reads: `feed(values, timestamp=ms)`."""

    reader: LogReader
    feed: Callable[..., Appended]


@contextmanager
def writable_file(place: Place) -> Iterator[Log]:
    with open_log(place.directory / "log", create=True, segment_bytes=SEGMENT_BYTES) as log:
        yield log


@contextmanager
def writable_memory(place: Place) -> Iterator[Log]:
    with closing(MemoryLog()) as log:
        yield log


@contextmanager
def writable_topic(place: Place) -> Iterator[Log]:
    with open_topic_log(new_topic(place.kafka()), node_id=1) as log:
        yield log


def _feeder(log: Log) -> Callable[..., Appended]:
    return lambda values, timestamp=0: log.append(values, timestamp=timestamp).result(timeout=300)


@contextmanager
def readable_file(place: Place) -> Iterator[Readable]:
    """The writer itself as a reader."""
    with writable_file(place) as log:
        yield Readable(reader=log, feed=_feeder(log))


@contextmanager
def readable_directory(place: Place) -> Iterator[Readable]:
    """A reader as another process would open it."""
    with ExitStack() as stack:
        log = stack.enter_context(writable_file(place))
        reader = stack.enter_context(open_reader(place.directory / "log"))
        yield Readable(reader=reader, feed=_feeder(log))


@contextmanager
def readable_memory(place: Place) -> Iterator[Readable]:
    with writable_memory(place) as log:
        yield Readable(reader=log, feed=_feeder(log))


@contextmanager
def readable_topic(place: Place) -> Iterator[Readable]:
    """The writer itself as a reader, which holds what it has written."""
    with writable_topic(place) as log:
        yield Readable(reader=log, feed=_feeder(log))


@contextmanager
def readable_topic_elsewhere(place: Place) -> Iterator[Readable]:
    """A reader as another process would open it; one that holds hardly anything, and so reads from the topic."""
    settings = new_topic(place.kafka())
    with open_topic_log(settings, node_id=1) as log, TopicReader(settings, window_bytes=600) as reader:
        reader.wait_known(60)
        yield Readable(
            reader=reader, feed=_fed(lambda values, time: log.append(values, timestamp=time).result(60), reader)
        )


@contextmanager
def readable_quorum(place: Place) -> Iterator[Readable]:
    """An observer of a quorum of one, which it has to fetch from."""
    quorum = FakeQuorum()
    with FakeLeader(quorum) as leader, QuorumLog(servers=(leader.address,)) as reader:
        reader.wait_known(60)
        yield Readable(reader=reader, feed=_fed(quorum.append, reader))


def _fed(append: Callable[[Sequence[bytes], int], Appended], reader: LogReader) -> Callable[..., Appended]:
    """Appends, and waits until a reader elsewhere has heard that it is committed."""

    def feed(values: Sequence[bytes], timestamp: int = 0) -> Appended:
        appended = append(values, timestamp)
        assert reader.wait(appended.last_offset, 60)
        return appended

    return feed


WRITABLE: dict[str, Callable[[Place], AbstractContextManager[Log]]] = {
    "file": writable_file,
    "memory": writable_memory,
    "topic": writable_topic,
}

READABLE: dict[str, Callable[[Place], AbstractContextManager[Readable]]] = {
    "file": readable_file,
    "directory": readable_directory,
    "memory": readable_memory,
    "quorum": readable_quorum,
    "topic": readable_topic,
    "topic elsewhere": readable_topic_elsewhere,
}


def kinds(backends: Mapping[str, object]) -> list[object]:
    """The names of backends, as the parameters of a fixture; those that need a Kafka are marked `server`."""
    return [pytest.param(name, marks=[pytest.mark.server] if name.startswith("topic") else []) for name in backends]
