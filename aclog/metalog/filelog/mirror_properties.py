"""The file `mirror.properties`: that a directory is a mirror, of which cluster, and where its log begins.

A mirror is a log directory that `aclog mirror` fills with what a quorum has committed. Nobody else may append to it:
the file says so to every writer. It is also where a mirror that goes on after a snapshot decides so, in one step.
"""

from io import BytesIO
from pathlib import Path

import javaproperties
from attrs import frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.epochs import MAX_EPOCH
from aclog.metalog.filelog.filesystem import read_small, replace_durably

MIRROR_FILE = "mirror.properties"
_COMMENT = "A mirror of a quorum's metadata log, kept by `aclog mirror`: nobody else may append to it."
_VERSION = "1"
_MAX_OFFSET = 2**63 - 1


@frozen(kw_only=True, order=True)
class LogEnd:
    """Where a log ends, or a part of it: the offset after its last record, and that record's epoch (0 at offset 0)."""

    end_offset: int
    epoch: int


@frozen(kw_only=True)
class MirrorProperties:
    """What the file says; `start` is the end of what the log begins after, None as long as that is not known."""

    cluster_id: str
    start: LogEnd | None = None


def read_mirror_properties(directory: Path) -> MirrorProperties | None:
    """What a directory's file says; None if it has none, and so is no mirror.

    Raises:
        DecodeError: the file is not what `write_mirror_properties` writes.
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
        LogError: the disk is full, or refuses.

    """
    replace_durably(directory / MIRROR_FILE, encode_mirror_properties(properties))


def refuse_mirror(directory: Path) -> None:
    """Return if a directory is no mirror, or none at all.

    Raises:
        LogError: it is: what is in it is a quorum's, and nobody appends to it but `aclog mirror`.
        DecodeError: its file is damaged.

    """
    found = read_mirror_properties(directory) if directory.is_dir() else None
    if found is not None:
        raise LogError(
            f"{directory}: a mirror of cluster {found.cluster_id}: only `aclog mirror` appends to it; "
            f"a copy of it without {MIRROR_FILE} is a log of its own"
        )


def encode_mirror_properties(properties: MirrorProperties) -> bytes:
    """The file's content."""
    values = {"version": _VERSION, "cluster.id": properties.cluster_id}
    if properties.start is not None:
        values |= {"start.offset": str(properties.start.end_offset), "start.epoch": str(properties.start.epoch)}
    return javaproperties.dumps(values, comments=_COMMENT, timestamp=False, ensure_ascii=True).encode("ascii")


def decode_mirror_properties(data: bytes) -> MirrorProperties:
    """What the file's content says.

    Raises:
        DecodeError: not a properties file, another version, or a value that is missing or cannot be.

    """
    try:
        values: dict[str, str] = javaproperties.load(BytesIO(data))
    except ValueError as error:
        raise DecodeError(f"not a properties file: {error}") from error
    if values.get("version") != _VERSION:
        raise DecodeError(f"version {values.get('version')} is not known: expected {_VERSION}")
    if not values.get("cluster.id"):
        raise DecodeError("cluster.id is missing")
    if "start.offset" not in values:
        return MirrorProperties(cluster_id=values["cluster.id"])
    start = LogEnd(
        end_offset=_number(values, "start.offset", _MAX_OFFSET), epoch=_number(values, "start.epoch", MAX_EPOCH)
    )
    return MirrorProperties(cluster_id=values["cluster.id"], start=start)


def _number(values: dict[str, str], key: str, most: int) -> int:
    text = values.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise DecodeError(f"{key}={text}: expected a whole number from 0 to {most}")
    return int(text)
