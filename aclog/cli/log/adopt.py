"""`aclog log adopt`: makes a controller accept the topic that its configuration names as its log."""

from contextlib import closing
from pathlib import Path

from attrs import define, field

from aclog.metalog.batches import read_header
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.log import LogReader
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.config.server_properties import load_config
from aclog.nodes.controller.shared.fenced_log import SharedReader
from aclog.nodes.controller.shared.followed_log import checkpoints_in
from aclog.nodes.controller.shared.identity_keeper import difference
from aclog.nodes.controller.shared.kafka_topic import KafkaTopic, check_installed
from aclog.nodes.controller.shared.topic_identity import (
    IDENTITY_FILE,
    LogEnd,
    OtherLogError,
    TopicIdentity,
    read_identity,
    write_identity,
)
from aclog.nodes.controller.write_path.startup import LOG_DIRECTORY, lock_checkpoints
from aclog.nodes.storage.log_directories import require_formatted
from aclog.terminal.confirmation import confirms
from aclog.terminal.notices import note
from aclog.terminal.output import say, shown

_KNOWN_SECONDS = 30.0


def adopt_topic(path: Path, *, force: bool) -> None:
    """Show what the controller has recorded and what the topic holds; record the latter if the operator agrees.

    Raises:
        ConfigError: the file does not describe a controller on a topic; its directory is not formatted; the topic
            cannot hold a log; no answer.
        LockedError: the controller runs.
        LogError: there is no such topic, it does not hold the newest checkpoint, or no broker responds.
        DecodeError: the topic does not end in a log.

    """
    config = load_config(path)
    if config.topic is None:
        raise ConfigError(f"{path}: metadata.log.kind is not topic: there is no topic to adopt")
    check_installed()
    require_formatted(config)
    with closing(lock_checkpoints(config.metadata_log_dir / LOG_DIRECTORY)):
        _Adoption(config, KafkaTopic(settings=config.topic, node_id=config.node_id, voters=config.voter_ids)).run(force)


@define
class _Adoption:
    """One run of the command."""

    config: NodeConfig
    topic: KafkaTopic
    _home: Path = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._home = self.config.metadata_log_dir

    def run(self, force: bool) -> None:
        """See adopt_topic."""
        recorded, found = self._recorded(), self.topic.identify()
        if found is None:
            raise LogError(
                f"{self.topic.name}: there is no such topic: correct metadata.log.topic, or copy a log to it"
            )
        self.topic.check_settings()
        with closing(self.topic.open_reader()) as reader:
            reader.wait_known(_KNOWN_SECONDS)
            end = end_of(reader)
            say(f"recorded: {'nothing' if recorded is None else _shown(recorded)}")
            say(f"found:    {_shown(TopicIdentity(topic=found, end=end))}, begins at offset {reader.start_offset()}")
            if recorded is not None:
                say(_comparison(reader, recorded, end))
            self._check_checkpoints(reader)
        question = shown()(f"Adopt {self.topic.name} as this controller's log? (y/n)")
        no_answer = "no answer on stdin: nothing is adopted; use --force to adopt without asking"
        if not (force or confirms(question, no_answer)):
            return
        write_identity(self._home, TopicIdentity(topic=found, end=end))
        say(f"{self._home / IDENTITY_FILE}: adopted {self.topic.name}")

    def _recorded(self) -> TopicIdentity | None:
        try:
            return read_identity(self._home)
        except OtherLogError as error:
            note(str(error))
            return None

    def _check_checkpoints(self, reader: SharedReader) -> None:
        for each in checkpoints_in(self.config.metadata_log_dir / LOG_DIRECTORY):
            wrong = difference(reader, LogEnd(end_offset=each.end_offset, epoch=each.epoch))
            if wrong is not None:
                what = f"{each.path}: not a checkpoint of {self.topic.name}: {wrong}"
                raise LogError(f"{what}: expected it to be moved away first; nothing is adopted")


def end_of(reader: LogReader) -> LogEnd:
    """Return where a log ends, and in which epoch. Raises as LogReader.read."""
    mark = reader.high_watermark()
    if mark <= reader.start_offset():
        return LogEnd(end_offset=mark, epoch=0)
    return LogEnd(end_offset=mark, epoch=read_header(reader.read(mark - 1, 1)).leader_epoch)


def _shown(identity: TopicIdentity) -> str:
    topic = identity.topic
    return f"topic {topic.topic_id} on Kafka {topic.kafka_cluster_id}, {identity.end}"


def _comparison(reader: SharedReader, recorded: TopicIdentity, end: LogEnd) -> str:
    """Say what becomes of what was recorded."""
    wrong, start = difference(reader, recorded.end), reader.start_offset()
    if start > recorded.end.end_offset:
        return f"the topic begins at offset {start}, after what was recorded: it cannot be told whether it held that"
    if wrong is None:
        return (
            f"the topic holds everything that was recorded, and {end.end_offset - recorded.end.end_offset} more records"
        )
    lost = recorded.end.end_offset - end.end_offset
    many = f": at least {lost} records are lost" if lost > 0 else ""
    return f"the topic does not hold what was recorded: {wrong}{many}"
