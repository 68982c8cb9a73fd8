"""An observer of a test Kafka as a node has one, which remembers all that it ever showed."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from aclog.authorizer.acl import StandardAcl
from aclog.client.fetching import ObserverOptions
from aclog.client.follower import Follower
from aclog.client.quorum_log import QuorumLog
from aclog.config.node_config import HostPort
from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import LogError
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher
from tests.support.kafka.described import acl_rows
from tests.support.kafka.quorum_changes import RuleChanges
from tests.support.kafka.server import AdminClient
from tests.support.nodes.acl_client import login
from tests.support.processes.waiting import SECONDS, wait_until

_READ_BYTES = 1 << 20
"""Seconds that something that must come may take."""


class Watched:
    """A rule that is to come, or to go, and when images told of it."""

    def __init__(self, rule: StandardAcl, *, present: bool) -> None:
        self.rule, self.present = rule, present
        self.seen_at = 0.0
        """A time.perf_counter()."""
        self.seen = threading.Event()

    def look(self, image: Image) -> None:
        """Called with each image."""
        if not self.seen.is_set() and (image.acls.find(self.rule) is not None) == self.present:
            self.seen_at = time.perf_counter()
            self.seen.set()


class QuorumObserver:
    """Follows from its making on: images by a Follower, bytes by a reader beside it, which keeps them all."""

    def __init__(
        self, servers: Sequence[HostPort], *, options: ObserverOptions | None = None, user: str = "admin"
    ) -> None:
        self.log = QuorumLog(servers=tuple(servers), security=login(user), options=options or ObserverOptions())
        self.publisher = Publisher()
        self.notes: list[str] = []
        self.follower = Follower(log=self.log, publisher=self.publisher, notify=self.notes.append)
        self._data = bytearray()
        self.watched: Watched | None = None
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._reader = threading.Thread(target=self._read, name="test-reader", daemon=True)

    def __enter__(self) -> Self:
        self.publisher.subscribe(self._look)
        self.follower.start()
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.follower.stop(0)
        self.log.close()
        self.follower.wait_ended(SECONDS)
        self._reader.join(SECONDS)

    @property
    def image(self) -> Image:
        """What is shown now."""
        return self.publisher.current

    @property
    def read(self) -> bytes:
        """What `read` of the log gave, in order, from where the log began when it began last.

        It begins again after a snapshot that a leader offers: to an observer that is behind its log, and also to one
        whose last epoch is older than the oldest snapshot's (RaftLog.validateOffsetAndEpoch).
        """
        return bytes(self._data)

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rules that are shown now, as Kafka's Admin client describes them."""
        return acl_rows(self.image)

    @property
    def pending(self) -> bytes:
        """What it was given, and must not show yet."""
        return b"".join(run.data for run in list(self.log._fetcher.state._pending))

    @property
    def held_batches(self) -> int:
        """How many batches that is."""
        return len(list(iter_batches(self.pending)))

    def watch(self, rule: StandardAcl, *, present: bool) -> Watched:
        """Look out for a rule from now on, and for no other."""
        self.watched = Watched(rule, present=present)
        return self.watched

    def check(self) -> None:
        """Check that it goes on."""
        assert self.follower.failure is None, self.follower.failure
        assert self._failure is None, self._failure

    def _look(self, image: Image) -> None:
        if (watched := self.watched) is not None:
            watched.look(image)

    def _read(self) -> None:
        try:
            offset = -1
            while not self._stopping.is_set():
                offset = self._read_from(offset)
        except Exception as error:  # noqa: BLE001 - told by `check`
            self._failure = error

    def _read_from(self, offset: int) -> int:
        """Read what comes next; where the next read begins. Troubles of the network pass."""
        try:
            if self.log.high_watermark() < 0 or not self.log.wait(max(offset, 0), 0.2):
                self._stopping.wait(0.01)
                return offset
            data = self.log.read(self.log.start_offset() if offset < 0 else offset, _READ_BYTES)
        except LogError:
            self._stopping.wait(0.01)
            return -1 if 0 <= offset < self.log.start_offset() else offset
        if offset < 0:
            self._data.clear()
        self._data += data
        return max((header.end_offset for _, header in iter_batches(data)), default=offset)


def segment_bytes(log_directory: Path) -> bytes:
    """All that stands in a node's segment files, committed or not."""
    return b"".join(path.read_bytes() for path in sorted(log_directory.glob("*.log")))


def start_of(data: bytes) -> int:
    """The offset of the first record in whole batches."""
    return next(header.base_offset for _, header in iter_batches(data))


def end_of(data: bytes) -> int:
    """The offset after the last record in whole batches; 0 if there are none."""
    return max((header.end_offset for _, header in iter_batches(data)), default=0)


def between(data: bytes, start: int, end: int) -> bytes:
    """The bytes of the batches that begin at or above `start` and end at or below `end`."""
    batches = [
        data[position : position + header.size]
        for position, header in iter_batches(data)
        if header.base_offset >= start and header.end_offset <= end
    ]
    return b"".join(batches)


def assert_same(observer: QuorumObserver, admin: AdminClient, changes: RuleChanges) -> None:
    """When all is quiet: what is shown is what the client was told, and what Kafka says itself."""
    wait_until(lambda: observer.rows == changes.rows)
    wait_until(lambda: admin.acls() == changes.rows)  # a broker may be behind its controller
    observer.check()


def assert_same_bytes(read: bytes, log_directory: Path) -> int:
    """What was read stands in a directory's segments, byte for byte, from where they begin; that offset.

    Waits until they reach as far.
    """
    end = end_of(read)
    wait_until(lambda: end_of(segment_bytes(log_directory)) >= end)
    stored = segment_bytes(log_directory)
    start = max(start_of(read), start_of(stored))
    expected = between(read, start, end)
    assert expected
    assert between(stored, start, end) == expected
    return start


def assert_unseen(observer: QuorumObserver, text: str, mark: int) -> None:
    """What is held above the mark is not shown, while three more records come in above it."""
    log, sizes = observer.log, {len(observer.pending)}
    while len(sizes) <= 3:
        assert log.high_watermark() == mark
        assert log.read(mark) == b""
        assert observer.image.end_offset <= mark
        assert text not in {row["resourceName"] for row in observer.rows}
        assert text.encode() in observer.pending, "the leader gave up before this was looked at"
        sizes.add(len(observer.pending))
