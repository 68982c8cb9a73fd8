"""The check that a topic is the log that this controller has followed, and the record of how far it has."""

import logging
import threading
import time
from pathlib import Path

from attrs import define, evolve, field

from aclog.metalog.batches import read_header
from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import TopicId
from aclog.nodes.controller.shared.fenced_log import SharedLog, SharedReader
from aclog.nodes.controller.shared.followed_log import checkpoints_in
from aclog.nodes.controller.shared.topic_identity import (
    ADOPT,
    IDENTITY_FILE,
    LogEnd,
    OtherLogError,
    TopicIdentity,
    read_identity,
    write_identity,
)

_ARRIVE_SECONDS = 10.0
"""How long a reader may take to come as far as what was recorded."""
_SURE_SECONDS = 1.0
"""After this, a bad answer is asked for again: a broker that has just started may not know its topics yet."""

_log = logging.getLogger(__name__)


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
    _recording: threading.Lock = field(factory=threading.Lock, init=False)

    def establish(self) -> None:
        """Find the topic, or create it for a controller that has never seen a log.

        Raises:
            OtherLogError: the topic is missing, or another one than recorded.
            ConfigError: its settings could lose or hide records.
            LogError: no broker responds.

        """
        self._recorded = recorded = read_identity(self.home)
        known = recorded is not None or bool(checkpoints_in(self.checkpoints))
        found = self.shared.identify()
        if found is None and known:
            found = self._again()
        if found is None and known:
            raise OtherLogError(self._missing())
        if found is None:
            self.shared.create()
            found = self.shared.identify()
            if found is None:
                raise LogError(f"{self.shared.name}: there is no such topic")
            _log.info("%s: created, as this controller has not followed a log yet", self.shared.name)
        if recorded is not None and found.topic_id != recorded.topic.topic_id:
            raise OtherLogError(self._other(found, recorded.topic))
        self.shared.check_settings()
        self.topic = found

    def check_contents(self, reader: SharedReader) -> None:
        """Check that the topic holds what was recorded, or the newest checkpoint if nothing was.

        A controller with neither adopts what it finds: it has no rules that it could lose.

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
            OtherLogError: it is not, after asking twice.
            LogError: no broker responds.

        """
        found = self.shared.identify()
        if found is None or self._is_other(found):
            found = self._again()
        if found is None:
            raise OtherLogError(self._missing())
        if self.topic is not None and self._is_other(found):
            raise OtherLogError(self._other(found, self.topic))

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
        time.sleep(_SURE_SECONDS)
        return self.shared.identify()

    def _is_other(self, found: TopicId) -> bool:
        return self.topic is not None and found.topic_id != self.topic.topic_id

    def _missing(self) -> str:
        return f"{self.shared.name}: there is no such topic, but this controller has followed a log there: {_advice()}"

    def _other(self, found: TopicId, expected: TopicId) -> str:
        what = f"the topic's id is {found.topic_id} on Kafka {found.kafka_cluster_id}"
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
