"""The `mirror.properties` file: marks a directory as a mirror, with its cluster id and where its log begins.

A mirror is a log directory that `aclog mirror` fills with what a quorum has committed. The file tells every other
writer not to append to it. Replacing it is also the commit point when a mirror restarts after a snapshot.
"""

from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.epochs import MAX_EPOCH
from aclog.metalog.filelog.filesystem import read_small, replace_durably
from aclog.metalog.properties_text import format_properties, parse_properties

MIRROR_FILE = "mirror.properties"
_COMMENT = "A mirror of a quorum's metadata log, kept by `aclog mirror`: nobody else may append to it."
_VERSION = "1"
_MAX_OFFSET = 2**63 - 1


@frozen(kw_only=True, order=True)
class LogEnd:
    """The end of a log, or of a part of it: the offset after its last record, and that record's epoch."""

    end_offset: int
    epoch: int


@frozen(kw_only=True)
class MirrorProperties:
    """The content of the file; `start` is the end of what precedes the log, None until that is known."""

    cluster_id: str
    start: LogEnd | None = None


def read_mirror_properties(directory: Path) -> MirrorProperties | None:
    """Return the content of a directory's file; None if there is none, so that it is not a mirror.

    Raises:
        DecodeError: the file is not in the format of `write_mirror_properties`.
        LogError: it cannot be read.

    """
    path = directory / MIRROR_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_mirror_properties(data)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def write_mirror_properties(directory: Path, properties: MirrorProperties) -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / MIRROR_FILE, encode_mirror_properties(properties))


def refuse_mirror(directory: Path) -> None:
    """Raise if a directory is a mirror.

    Raises:
        LogError: it is: its content belongs to a quorum, and only `aclog mirror` appends to it.
        DecodeError: its file is damaged.

    """
    found = read_mirror_properties(directory) if directory.is_dir() else None
    if found is not None:
        raise LogError(
            f"{directory}: a mirror of cluster {found.cluster_id}: only `aclog mirror` appends to it; "
            f"a copy of it without {MIRROR_FILE} is a log of its own"
        )


def encode_mirror_properties(properties: MirrorProperties) -> bytes:
    """Return the file's content."""
    values = {"version": _VERSION, "cluster.id": properties.cluster_id}
    if properties.start is not None:
        values |= {"start.offset": str(properties.start.end_offset), "start.epoch": str(properties.start.epoch)}
    return format_properties(values, comments=_COMMENT)


def decode_mirror_properties(data: bytes) -> MirrorProperties:
    """Parse the file's content.

    Raises:
        DecodeError: not a properties file, another version, or a missing or invalid value.

    """
    try:
        values = parse_properties(data)
    except ValueError as error:
        raise DecodeError(f"not a properties file: {error}") from error
    if values.get("version") != _VERSION:
        raise DecodeError(f"unknown version {values.get('version')}: expected {_VERSION}")
    if not values.get("cluster.id"):
        raise DecodeError("cluster.id is missing")
    # A mirror is bound to a cluster before it knows where the cluster's log begins.
    if "start.offset" not in values:
        return MirrorProperties(cluster_id=values["cluster.id"])
    start = LogEnd(
        end_offset=_number(values, "start.offset", _MAX_OFFSET), epoch=_number(values, "start.epoch", MAX_EPOCH)
    )
    return MirrorProperties(cluster_id=values["cluster.id"], start=start)


def _number(values: dict[str, str], key: str, most: int) -> int:
    text = values.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise DecodeError(f"{key}={text}: expected an integer from 0 to {most}")
    return int(text)
