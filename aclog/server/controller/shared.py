"""A log that several controllers share: election, terms, and the identity of its topic."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve, field

from aclog.client.errors import FollowingEndedError
from aclog.client.follower import Follower
from aclog.metalog import topiclog
from aclog.metalog.batches import read_header
from aclog.metalog.committed_log import ServedLog
from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError
from aclog.metalog.filelog import files
from aclog.metalog.machine import clock, threads
from aclog.metalog.topiclog import Leader, TopicId, TopicSettings
from aclog.metalog.values import define, frozen
from aclog.server.controller.activation import LedLog
from aclog.snapshots.publisher import Publisher

if TYPE_CHECKING:
    from aclog.metalog.topiclog import TopicInspector


# Whether this controller should lead, according to the election and the node's lifecycle.


@define(eq=False)
class ElectionState:
    """Read and awaited on one event loop; `elect`, `depose` and `wake` may be called from any thread."""

    loop: asyncio.AbstractEventLoop
    elected: bool = field(default=False, init=False)
    stopping: bool = field(default=False, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def should_lead(self) -> bool:
        """Whether this node is elected and not stopping."""
        return self.elected and not self.stopping

    def elect(self) -> None:
        """Record that this node is elected."""
        self.loop.call_soon_threadsafe(self._set_elected, True)

    def depose(self) -> None:
        """Record that this node is not, or no longer, elected."""
        self.loop.call_soon_threadsafe(self._set_elected, False)

    def wake(self) -> None:
        """Wake the waiting task without a change of election."""
        self.loop.call_soon_threadsafe(self._changed.set)

    def stop(self) -> None:
        """Record that the node is stopping."""
        self.stopping = True
        self._changed.set()

    async def wait(self, seconds: float, work: "asyncio.Future[Any] | None" = None) -> None:
        """Wait for a change or for `work` to complete, at most `seconds`."""
        changed = asyncio.ensure_future(self._changed.wait())
        waiting: set[asyncio.Future[Any]] = {changed} if work is None else {changed, work}
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            with suppress(asyncio.CancelledError):
                await changed
        self._changed.clear()

    async def still_elected(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether this node is still elected."""
        deadline = self.loop.time() + seconds
        while self.should_lead and (remaining := deadline - self.loop.time()) > 0:
            await self.wait(remaining)
        return self.elected

    def _set_elected(self, elected: bool) -> None:
        self.elected = elected
        self._changed.set()


# Protocols of a log that several controllers share: a reader, a writer that can be fenced, an election.
#
# Fencing is the log's task: once another controller has opened it, no append of the previous leader can be committed,
# independent of that leader (on a topic, by Kafka's transactional producer epochs). `LeadershipTerm` only reacts
# to it.


class SharedReader(ServedLog, Protocol):
    """The log as followers read it (aclog.metalog.topiclog.TopicReader)."""

    @property
    def failure(self) -> MetadataError | None:
        """Why the log can never be followed again; None while it can."""
        ...

    def leader(self) -> Leader | None:
        """The leader of the newest committed epoch; None in an empty log or while the high-water mark is unknown."""
        ...

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: It is still unknown after `timeout` seconds; the text has the reason.

        """
        ...


class FencedLog(LedLog, Protocol):
    """The log as its leader writes it until another controller takes over (aclog.metalog.topiclog.TopicLog)."""

    def abandon(self, why: str) -> None:
        """Stop writing at once; all pending appends fail with a LogError that contains `why`."""
        ...


class Candidacy(Protocol):
    """Membership in the election (aclog.metalog.topiclog.Election)."""

    def close(self) -> None:
        """Leave the election, so that another controller is elected at once. Blocks."""
        ...


class SharedLog(Protocol):
    """A log that several controllers share. All methods but `open_reader` block and are called in threads."""

    @property
    def name(self) -> str:
        """The location, for messages."""
        ...

    def identify(self) -> TopicId | None:
        """Return the identity of the log; None if it does not exist. Raises as TopicInspector.identify."""
        ...

    def check_settings(self) -> None:
        """Check that the topic can hold a log. Raises as TopicInspector.check_settings."""
        ...

    def create(self) -> None:
        """Create an empty log. Raises as TopicInspector.create."""
        ...

    def open_reader(self) -> SharedReader:
        """Start following the log in a thread of the reader."""
        ...

    def open(
        self, reader: SharedReader, on_failure: Callable[[LogError], None], abandoned: "threading.Event"
    ) -> FencedLog:
        """Take over the log, fencing the previous leader. Raises as, and uses the arguments as, open_topic_log."""
        ...

    def join_election(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidacy:
        """Join the election; the callbacks are called from a thread."""
        ...


# The shared log as a standby replays it, starting from local checkpoints (MetadataLoader).


@frozen(kw_only=True)
class FollowedLog:
    """Implements aclog.client.follower.FollowedLog; `on_read` gets the number of bytes read, in that thread.

    A DecodeError ends the follower: the damage is in the log itself, so reading again does not help.
    """

    reader: SharedReader
    directory: Path
    on_read: Callable[[int], object]

    @property
    def name(self) -> str:
        """See LogReader."""
        return self.reader.name

    def start_offset(self) -> int:
        """See LogReader."""
        return self.reader.start_offset()

    def high_watermark(self) -> int:
        """See LogReader."""
        return self.reader.high_watermark()

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """See LogReader."""
        with _decode_error_is_final():
            data = self.reader.read(offset, max_bytes)
        self.on_read(len(data))
        return data

    def wait(self, offset: int, timeout: float) -> bool:
        """See LogReader."""
        with _decode_error_is_final():
            return self.reader.wait(offset, timeout)

    def close(self) -> None:
        """Do nothing: the reader belongs to its creator."""

    def checkpoints(self) -> tuple[files.CheckpointFile, ...]:
        """The non-empty local checkpoints."""
        return checkpoints_in(self.directory)


@contextmanager
def _decode_error_is_final() -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        raise FollowingEndedError(str(error)) from error


def checkpoints_in(directory: Path) -> tuple[files.CheckpointFile, ...]:
    """Return the checkpoints by offset, without the empty one that `format` writes at offset 0."""
    return tuple(each for each in files.list_checkpoints(directory) if each.end_offset)


# The shared log on a topic of a Kafka cluster (aclog.metalog.topiclog).


_INSPECT_SECONDS = 5.0
_OPEN_SECONDS = 20.0
"""Timeout of one attempt. Short, so that the caller can check between attempts whether it is still elected."""


def check_installed() -> None:
    """Check that confluent-kafka is installed before a node starts.

    Raises:
        ConfigError: It is not; the text names the package to install.

    """
    topiclog.ensure_topic  # noqa: B018 - the attribute is imported lazily; accessing it imports confluent-kafka


@frozen(kw_only=True)
class KafkaTopic:
    """Implements SharedLog for controller `node_id`, one of `voters`. confluent-kafka is imported on first use."""

    settings: TopicSettings
    node_id: int
    voters: Sequence[int]
    _inspector: "TopicInspector" = field(init=False)

    @_inspector.default
    def _of_topic(self) -> "TopicInspector":
        return topiclog.TopicInspector(self.settings)

    @property
    def name(self) -> str:
        """The name in messages: kafka://SERVERS/TOPIC."""
        return self.settings.name

    def identify(self) -> TopicId | None:
        """See SharedLog."""
        return self._inspector.identify(_INSPECT_SECONDS)

    def check_settings(self) -> None:
        """See SharedLog."""
        self._inspector.check_settings(_INSPECT_SECONDS)

    def create(self) -> None:
        """See SharedLog."""
        self._inspector.create(_INSPECT_SECONDS)

    def open_reader(self) -> SharedReader:
        """See SharedLog."""
        return topiclog.TopicReader(self.settings)

    def open(
        self, reader: SharedReader, on_failure: Callable[[LogError], None], abandoned: "threading.Event"
    ) -> FencedLog:
        """See SharedLog."""
        return topiclog.open_topic_log(
            self.settings,
            node_id=self.node_id,
            voters=self.voters,
            reader=reader,
            on_failure=on_failure,
            timeout=_OPEN_SECONDS,
            abandoned=abandoned,
        )

    def join_election(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidacy:
        """See SharedLog."""
        return topiclog.Election(self.settings, on_elected, on_deposed)


# A standby controller: it follows the shared log and takes part in the election.


_STARTING_POLL_SECONDS = 0.05
"""Polling interval for the progress of a standby that is not a candidate yet."""
_STANDBY_POLL_SECONDS = 0.5
"""Polling interval of a candidate for failures of its reader and its follower; an election wakes it at once."""
_WARN_SECONDS = 5.0

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Standby:
    """Owned by the node's event loop; the work is done in threads. Created once the high-water mark is known."""

    shared: SharedLog
    election: ElectionState
    publisher: Publisher
    reader: SharedReader
    directory: Path
    """The checkpoint directory."""
    on_read: Callable[[int], None]
    """Receives, on the event loop, the number of bytes read."""
    may_lead: Callable[[], bool] = lambda: True
    """Whether this node may be elected."""
    _first_mark: int = field(init=False)
    """The high-water mark at startup. A controller joins the election only after replaying up to it; if elected
    earlier, it would leave the cluster without an active controller during its replay."""
    _candidacy: Candidacy | None = field(default=None, init=False)
    _join_at: float = field(default=0.0, init=False)
    """When it may join the election again, by the monotonic clock."""

    def __attrs_post_init__(self) -> None:
        self._first_mark = self.reader.high_watermark()

    async def run(self) -> None:
        """Follow until this node is elected or stops.

        The follower has ended before this returns: the term that follows stages on the same image.

        Raises:
            MetadataError: The log cannot be replayed, or can never be followed again.
            ConfigError: The node cannot join the election as configured.

        """
        follower: Follower | None = None
        try:
            while not (self.election.elected or self.election.stopping):
                # Nothing to follow in an empty log, and no checkpoint either: the first leader bootstraps it.
                if follower is None and self._log_begun:
                    follower = self._follow()
                if self.reader.failure is not None:
                    raise self.reader.failure  # the follower would retry for ever, and serve an old state
                if follower is not None and follower.wait_ended(0):
                    raise follower.failure or LogError(f"{self.shared.name}: the follower has ended")
                if self._candidacy is None and self._may_join:
                    self._candidacy = await asyncio.to_thread(
                        self.shared.join_election, self.election.elect, self.election.depose
                    )
                starting = self._candidacy is None or follower is None
                await self.election.wait(_STARTING_POLL_SECONDS if starting else _STANDBY_POLL_SECONDS)
        finally:
            if follower is not None:
                await asyncio.to_thread(_stop_follower, follower)

    async def resign(self, seconds: float = 0.0) -> None:
        """Leave the election until the next `run`, and for `seconds`, so that another controller can be elected."""
        self._join_at = clock.monotonic() + seconds
        if self._candidacy is not None:
            candidacy, self._candidacy = self._candidacy, None
            await asyncio.to_thread(candidacy.close)

    @property
    def _log_begun(self) -> bool:
        """Whether a first leader has begun to write its bootstrap records after its epoch's first record."""
        return self.reader.high_watermark() > 1

    @property
    def _may_join(self) -> bool:
        return self._caught_up and self.may_lead() and clock.monotonic() >= self._join_at

    @property
    def _caught_up(self) -> bool:
        return self.publisher.applier.next_offset >= self._first_mark or not self._log_begun

    def _follow(self) -> Follower:
        loop = asyncio.get_running_loop()
        log = FollowedLog(
            reader=self.reader,
            directory=self.directory,
            on_read=lambda size: loop.call_soon_threadsafe(self.on_read, size),
        )
        follower = Follower(log=log, publisher=self.publisher, notify=_log.warning)
        follower.start()
        return follower


def _stop_follower(follower: Follower) -> None:
    follower.stop(0)
    while not follower.wait_ended(_WARN_SECONDS):
        _log.warning("%s: waiting for a read to complete", follower.log.name)


# Which log a controller on a topic has followed, and how far: a small file beside meta.properties.
#
# `topic.identity` is text, one key a line, so that an operator can read it; its last line is the CRC-32C of the lines
# before it. It is replaced as a whole.


IDENTITY_FILE = "topic.identity"
_VERSION = "1"
_KEYS = ("version", "kafka.cluster.id", "topic.id", "end.offset", "leader.epoch")

ADOPT = "`aclog log adopt CONFIG`"


class OtherLogError(ConfigError):
    """The topic is not the log that this controller has followed, or no longer holds that whole log."""


@frozen(kw_only=True)
class LogEnd:
    """An end offset, exclusive, and the leader epoch of the batch before it."""

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        """Return the text in messages."""
        return f"end offset {self.end_offset}, leader epoch {self.epoch}"


@frozen(kw_only=True)
class TopicIdentity:
    """A topic, and an end below which everything is committed in it."""

    topic: TopicId
    end: LogEnd


def encode_identity(identity: TopicIdentity) -> bytes:
    """Return the content of the file."""
    topic, end = identity.topic, identity.end
    values = (_VERSION, topic.kafka_cluster_id, topic.topic_id, str(end.end_offset), str(end.epoch))
    text = "".join(f"{key}={value}\n" for key, value in zip(_KEYS, values, strict=True)).encode()
    return files.with_checksum(text)


def decode_identity(data: bytes) -> TopicIdentity:
    """Return the identity in the content of the file.

    Raises:
        DecodeError: a CRC that does not match, or another format or version.

    """
    text = files.without_checksum(data)
    if text is None:
        raise DecodeError("its CRC does not match: damaged, or edited")
    pairs = [line.partition("=") for line in text.decode(errors="replace").splitlines()]
    keys, (version, cluster_id, topic_id, end_offset, epoch, *_) = (
        tuple(key for key, _, _ in pairs),
        [value for _, _, value in pairs] + [""] * len(_KEYS),
    )
    if keys != _KEYS or version != _VERSION or not (end_offset.isdigit() and epoch.isdigit()):
        raise DecodeError(f"not a topic's identity of version {_VERSION}")
    return TopicIdentity(
        topic=TopicId(kafka_cluster_id=cluster_id, topic_id=topic_id),
        end=LogEnd(end_offset=int(end_offset), epoch=int(epoch)),
    )


def read_identity(directory: Path) -> TopicIdentity | None:
    """Return the record of a controller in its metadata log directory; None without one.

    Raises:
        OtherLogError: the file is damaged.
        LogError: it cannot be read.

    """
    path = directory / IDENTITY_FILE
    data = files.read_small(path)
    if data is None:
        return None
    try:
        return decode_identity(data)
    except DecodeError as error:
        raise OtherLogError(f"{path}: {error}; {ADOPT} records the topic anew") from None


def write_identity(directory: Path, identity: TopicIdentity) -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    files.replace_durably(directory / IDENTITY_FILE, encode_identity(identity))


# The check that a topic is the log that this controller has followed, and the record of how far it has.


_ARRIVE_SECONDS = 10.0
"""How long a reader may take to reach the recorded offset."""
_SURE_SECONDS = 1.0
"""After this, a bad response is retried: a broker that has just started may not have its topics yet."""


@define(eq=False)
class IdentityKeeper:
    """One controller's memory of its log. All methods block; one thread at a time calls them, but `record` any.

    `home` is the metadata log directory, which holds the file; `checkpoints` is the directory of checkpoints.
    """

    shared: SharedLog
    home: Path
    checkpoints: Path
    topic: TopicId | None = field(default=None, init=False)
    """The topic that was found at the start, and must stay."""
    _recorded: TopicIdentity | None = field(default=None, init=False)
    _recording: "threading.Lock" = field(factory=threads.lock, init=False)

    def establish(self) -> None:
        """Find the topic, or create it for a controller that has never seen a log.

        Raises:
            OtherLogError: the topic is missing, or another one than recorded.
            ConfigError: its settings could lose or hide records.
            LogError: no broker responds.

        """
        self._recorded = recorded = read_identity(self.home)
        has_history = recorded is not None or bool(checkpoints_in(self.checkpoints))
        topic = self.shared.identify()
        if topic is None and has_history:
            topic = self._again()
        if topic is None and has_history:
            raise OtherLogError(self._missing())
        if topic is None:
            self.shared.create()
            topic = self.shared.identify()
            if topic is None:
                raise LogError(f"{self.shared.name}: there is no such topic")
            _log.info("%s: created, as this controller has not followed a log yet", self.shared.name)
        if recorded is not None and topic.topic_id != recorded.topic.topic_id:
            raise OtherLogError(self._other(topic, recorded.topic))
        self.shared.check_settings()
        self.topic = topic

    def check_contents(self, reader: SharedReader) -> None:
        """Check that the topic holds the recorded batches, or the newest checkpoint without a record.

        A controller with neither adopts the topic as it is: it has no rules that it could lose.

        Raises:
            OtherLogError: it does not.
            LogError: it cannot be read.

        """
        newest = checkpoints_in(self.checkpoints)[-1:]
        if self._recorded is not None and self._recorded.end.end_offset:
            reader.wait(self._recorded.end.end_offset - 1, _ARRIVE_SECONDS)
            wrong = difference(reader, self._recorded.end)
            if wrong is not None:
                where = f"{self.home / IDENTITY_FILE} has {self._recorded.end}"
                raise OtherLogError(f"{self.shared.name}: {wrong}, but {where}: {_advice()}")
        for each in newest:
            reader.wait(each.end_offset - 1, _ARRIVE_SECONDS)
            wrong = difference(reader, LogEnd(end_offset=each.end_offset, epoch=each.epoch))
            if self._recorded is None and reader.start_offset() > each.end_offset:
                wrong = f"it begins at offset {reader.start_offset()}"
            if wrong is not None:
                what = f"{each.path}: a checkpoint of another log, or {self.shared.name} has lost its end: {wrong}"
                raise OtherLogError(f"{what}; if the topic is the right one, move the checkpoint away")
        if self._recorded is None and reader.high_watermark():
            _log.info("%s: adopted, as nothing was recorded; it ends at %d", self.shared.name, reader.high_watermark())

    def look(self) -> None:
        """Check that the topic is still there, and still the same.

        Raises:
            OtherLogError: it is missing or another topic, in two requests.
            LogError: no broker responds.

        """
        topic = self.shared.identify()
        if topic is None or self._is_other(topic):
            topic = self._again()
        if topic is None:
            raise OtherLogError(self._missing())
        if self.topic is not None and self._is_other(topic):
            raise OtherLogError(self._other(topic, self.topic))

    def record(self, end: LogEnd) -> None:
        """Record how far the log is committed, unless that is recorded already.

        Raises:
            LogError: the disk is full or fails.

        """
        if self.topic is None or not end.end_offset:
            return
        with self._recording:
            identity = TopicIdentity(topic=self.topic, end=end)
            before = self._recorded
            if before is not None and before.end.end_offset >= end.end_offset:
                # A controller that replays again must not forget how far it was.
                identity = evolve(identity, end=before.end)
            if identity != before:
                write_identity(self.home, identity)
                self._recorded = identity

    def _again(self) -> TopicId | None:
        clock.sleep(_SURE_SECONDS)
        return self.shared.identify()

    def _is_other(self, topic: TopicId) -> bool:
        return self.topic is not None and topic.topic_id != self.topic.topic_id

    def _missing(self) -> str:
        return f"{self.shared.name}: there is no such topic, but this controller has followed a log there: {_advice()}"

    def _other(self, topic: TopicId, expected: TopicId) -> str:
        what = f"the topic's id is {topic.topic_id} on Kafka {topic.kafka_cluster_id}"
        was = f"expected {expected.topic_id} on Kafka {expected.kafka_cluster_id}"
        return f"{self.shared.name}: {what}: {was}, which this controller has followed: {_advice()}"


def difference(reader: SharedReader, end: LogEnd) -> str | None:
    """Return how a topic's content contradicts an end that it should hold; None if it does not.

    A topic that begins at or after that end, since earlier messages were removed, does not contradict it.

    Raises:
        LogError, DecodeError: as LogReader.read.

    """
    mark, start = reader.high_watermark(), reader.start_offset()
    if mark < end.end_offset:
        return f"it ends at offset {mark}"
    if start >= end.end_offset:
        return None  # nothing before this end is left to compare
    epoch = read_header(reader.read(end.end_offset - 1, 1)).leader_epoch
    return None if epoch == end.epoch else f"it has leader epoch {epoch} at offset {end.end_offset - 1}"


def _advice() -> str:
    return (
        f"correct metadata.log.topic or bring that topic back; or stop this node, and accept another topic by {ADOPT}"
    )
