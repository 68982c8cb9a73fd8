"""A log in memory that several controllers share, as they share a topic of a Kafka: one writer is fenced by the next.

A test says who is elected, whether whoever was so before hears of it, and what becomes of commits.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.committed_log import Appended
from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter, control_batch
from aclog.metalog.errors import ConfigError, FencedError, LogError, MetadataError
from aclog.metalog.group_commit import read_prebuilt_header
from aclog.metalog.topiclog import Leader, TopicId
from tests.support.fakes.memory_log import MemoryLog


class SharedTopic:
    """What is committed, the newest epoch and its leader, and who stands for election."""

    name = "memory topic"

    def __init__(self) -> None:
        self.store = MemoryLog(leader_epoch=0)
        self.leader: Leader | None = None
        self.candidates: dict[int, Candidate] = {}
        self.elected: int | None = None
        self.logs: list[WriterLog] = []
        self.lock = threading.RLock()
        self.topic_id: str | None = "a-topic"
        self.unsuitable: str | None = None
        self.silent = False

    def of(self, node_id: int) -> "NodeView":
        """The log as one controller has it."""
        return NodeView(self, node_id)

    def elect(self, node_id: int | None, *, notify: bool = True) -> None:
        """Elect a candidate, or nobody; unless `notify`, whoever was elected before does not hear of it yet."""
        before, self.elected = self.elected, node_id
        if notify and before is not None and before in self.candidates and before != node_id:
            self.candidates[before].on_deposed()
        # A controller leaves the election in a thread of its own, so it may have just gone.
        candidate = None if node_id is None else self.candidates.get(node_id)
        if candidate is None:
            self.elected = None
        else:
            candidate.on_elected()

    def open(self, node_id: int, on_failure: Callable[[LogError], None]) -> "WriterLog":
        """Begin the next epoch."""
        with self.lock:
            self.store.leader_epoch += 1
            start = self.store.end_offset()
            voter = (LeaderChangeVoter(voter_id=node_id),)
            change = LeaderChange(leader_id=node_id, voters=voter, granting_voters=voter)
            self.store.append_control(change, timestamp=1)
            self.leader = Leader(node_id=node_id, epoch=self.store.leader_epoch, start_offset=start)
            log = WriterLog(self, node_id, on_failure)
            self.logs.append(log)
            return log


class Candidate:
    """A candidacy; where it ends, nobody is elected until a test says so."""

    def __init__(self, view: "NodeView", on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> None:
        self.view, self.on_elected, self.on_deposed = view, on_elected, on_deposed

    def close(self) -> None:
        topic, node_id = self.view.topic, self.view.node_id
        if topic.candidates.pop(node_id, None) is not None:
            self.on_deposed()
            topic.elected = None if topic.elected == node_id else topic.elected


class NodeView:
    """Implements aclog.server.controller.shared.SharedLog."""

    def __init__(self, topic: SharedTopic, node_id: int) -> None:
        self.topic, self.node_id, self.name = topic, node_id, f"{topic.name} of {node_id}"
        self.refusing: LogError | None = None
        """Why the log cannot be opened for writing."""
        self.stuck: threading.Event | None = None
        """If it is given, opening sets it, and ends only once it is abandoned."""
        self.unanswered: LogError | None = None
        """Why this controller alone gets no answer about the topic's settings."""
        self.reader: Reader | None = None

    def identify(self) -> TopicId | None:
        if self.topic.silent:
            raise LogError(f"{self.name}: no response")
        if self.topic.topic_id is None:
            return None
        return TopicId(kafka_cluster_id="a-kafka", topic_id=self.topic.topic_id)

    def check_settings(self) -> None:
        if self.topic.silent:
            raise LogError(f"{self.name}: no response")
        if self.unanswered is not None:
            raise self.unanswered
        if self.topic.unsuitable is not None:
            raise ConfigError(f"{self.name}: unsuitable for a log: {self.topic.unsuitable}")

    def create(self) -> None:
        self.topic.topic_id = "created"

    def open_reader(self) -> "Reader":
        self.reader = Reader(self.topic)
        return self.reader

    def open(self, reader: "Reader", on_failure: Callable[[LogError], None], abandoned: threading.Event) -> "WriterLog":
        if self.refusing is not None:
            raise self.refusing
        if self.stuck is not None:
            self.stuck.set()
            abandoned.wait()
            raise LogError(f"{self.name}: abandoned")
        return self.topic.open(self.node_id, on_failure)

    def join_election(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidate:
        self.topic.candidates[self.node_id] = Candidate(self, on_elected, on_deposed)
        return self.topic.candidates[self.node_id]


class Reader:
    """Implements SharedReader; while it is cut off it sees nothing new."""

    def __init__(self, topic: SharedTopic) -> None:
        self.topic, self.name, self._closed = topic, topic.name, threading.Event()
        self._cut: tuple[int, Leader | None] | None = None
        self.failure: MetadataError | None = None

    def cut(self) -> None:
        self._cut = self.topic.store.high_watermark(), self.topic.leader

    def heal(self) -> None:
        self._cut = None

    def leader(self) -> Leader | None:
        return self.topic.leader if self._cut is None else self._cut[1]

    def wait_known(self, timeout: float) -> None:
        pass

    def start_offset(self) -> int:
        return 0

    def high_watermark(self) -> int:
        return self.topic.store.high_watermark() if self._cut is None else self._cut[0]

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        return below(self.topic.store.read(offset, max_bytes), self.high_watermark())

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes | None:
        return self.read(offset, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        if self._cut is None:
            self.topic.store.wait(offset, min(timeout, 0.01))
        else:
            self._closed.wait(0.005)
        return self.high_watermark() > offset

    def close(self) -> None:
        self._closed.set()


class WriterLog:
    """Implements FencedLog. Appends are committed at once, unless `holding`: then by `flush`, or never."""

    def __init__(self, topic: SharedTopic, node_id: int, on_failure: Callable[[LogError], None]) -> None:
        self.topic, self.node_id, self.name = topic, node_id, topic.name
        self.leader_epoch = topic.store.leader_epoch
        self.holding = False
        self.failure: LogError | None = None
        self._on_failure = on_failure
        self._mark = self._end = topic.store.end_offset()
        self._waiting: list[tuple[bytes, Future[Appended]]] = []
        self.closed = False

    def start_offset(self) -> int:
        return 0

    def high_watermark(self) -> int:
        return self._mark

    def end_offset(self) -> int:
        return self._end

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        if self.closed:
            raise LogError(f"{self.name}: closed")
        return below(self.topic.store.read(offset, max_bytes), self._mark)

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes | None:
        return self.read(offset, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        return self._mark > offset

    def append(self, values: list[bytes], *, timestamp: int) -> Future[Appended]:
        return self._submit(
            build_batch(values, base_offset=self._end, leader_epoch=self.leader_epoch, timestamp=timestamp)
        )

    def append_batch(self, batch: bytes) -> Future[Appended]:
        read_prebuilt_header(self.name, batch, self.leader_epoch)
        return self._submit(batch)

    def append_control(self, *records: object, timestamp: int) -> Future[Appended]:
        return self._submit(
            control_batch(*records, base_offset=self._end, leader_epoch=self.leader_epoch, timestamp=timestamp)
        )

    def _submit(self, batch: bytes) -> Future[Appended]:
        with self.topic.lock:
            if self.failure is not None or self.closed:
                raise self.failure or LogError(f"{self.name}: closed")
            header = read_header(batch)
            assert header.base_offset == self._end
            self._end += header.record_count
            future: Future[Appended] = Future()
            self._waiting.append((batch, future))
            if not self.holding:
                self.flush()
            return future

    def flush(self, *, answered: bool = True) -> None:
        """Commit what waits, or find out to be fenced; unless `answered`, the writer never hears of the commit."""
        with self.topic.lock:
            waiting, self._waiting = self._waiting, []
            if not waiting or self.failure is not None:
                return
            if self.topic.store.leader_epoch != self.leader_epoch:
                self._fail(FencedError(f"{self.name}: epoch {self.leader_epoch} is fenced"), waiting)
                return
            store = self.topic.store
            with store._grown:
                for batch, _ in waiting:
                    store._appended(batch, read_header(batch).record_count)
            if not answered:
                self._fail(LogError(f"{self.name}: no answer to a commit"), waiting)
                return
            self._mark = self._end
        for batch, future in waiting:
            header = read_header(batch)
            future.set_result(
                Appended(
                    base_offset=header.base_offset,
                    last_offset=header.base_offset + header.record_count - 1,
                    leader_epoch=self.leader_epoch,
                )
            )

    def break_down(self) -> None:
        """Nothing that waits is committed, and the writer hears of a failure."""
        with self.topic.lock:
            waiting, self._waiting = self._waiting, []
            self._fail(LogError(f"{self.name}: broken"), waiting)

    def _fail(self, error: LogError, waiting: list[tuple[bytes, "Future[Appended]"]]) -> None:
        if self.failure is None:
            self.failure = error
            for _, future in waiting:
                future.set_exception(error)
            self._on_failure(error)

    def abandon(self, why: str) -> None:
        with self.topic.lock:
            waiting, self._waiting = self._waiting, []
            if self.failure is None:
                self.failure = LogError(f"{self.name}: {why}")
            for _, future in waiting:
                future.set_exception(self.failure)

    def close(self) -> None:
        if self.failure is None:
            self.flush()
        self.closed = True


def below(data: bytes, mark: int) -> bytes:
    """The batches that end at or below a mark."""
    position = 0
    while position < len(data):
        header = read_header(data, position)
        if header.base_offset + header.record_count > mark:
            break
        position += header.size
    return data[:position]
