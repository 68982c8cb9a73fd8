"""Which log a controller on a topic has followed, and how far: a small file beside meta.properties.

`topic.identity` is text, one key a line, so that an operator can read it; its last line is the CRC-32C of the lines
before it. It is replaced as a whole.
"""

from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.filelog.filesystem import read_small, replace_durably
from aclog.metalog.filelog.text_checksum import with_checksum, without_checksum
from aclog.metalog.topiclog import TopicId

IDENTITY_FILE = "topic.identity"
_VERSION = "1"
_KEYS = ("version", "kafka.cluster.id", "topic.id", "end.offset", "leader.epoch")

ADOPT = "`aclog log adopt CONFIG`"


class OtherLogError(ConfigError):
    """The topic is not the log that this controller has followed, or no longer holds all of it."""


@frozen(kw_only=True)
class LogEnd:
    """An end offset, exclusive, and the leader epoch of the batch before it."""

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        """As messages show it."""
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
    return with_checksum(text)


def decode_identity(data: bytes) -> TopicIdentity:
    """Return the identity in the content of the file.

    Raises:
        DecodeError: a CRC that does not match, or another format or version.

    """
    text = without_checksum(data)
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
    """Return what a controller has recorded in its metadata log directory; None if it has recorded nothing.

    Raises:
        OtherLogError: the file is damaged.
        LogError: it cannot be read.

    """
    path = directory / IDENTITY_FILE
    data = read_small(path)
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
    replace_durably(directory / IDENTITY_FILE, encode_identity(identity))
