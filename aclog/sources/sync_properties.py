"""The file `sync.properties`: that a log directory is the record of a cluster by `aclog sync`, and since when."""

from datetime import datetime
from io import BytesIO
from pathlib import Path

import javaproperties
from attrs import frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.filesystem import read_small, replace_durably
from aclog.snapshots.moments import Moment, milliseconds, moment_text
from aclog.terminal.timestamps import utc_text

SYNC_FILE = "sync.properties"
_COMMENT = "What a cluster told `aclog sync`, poll by poll: nobody else may append to it."
_VERSION = "1"


@frozen(kw_only=True)
class SyncProperties:
    """Which cluster is recorded, and when its first answer had come (ms since 1970)."""

    cluster_id: str
    first_poll: int


def read_sync_properties(directory: Path) -> SyncProperties | None:
    """What a directory's file says; None if it has none, and so is no record of `aclog sync`.

    Raises:
        DecodeError: the file is not what `write_sync_properties` writes.
        LogError: it cannot be read.

    """
    path = directory / SYNC_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        values: dict[str, str] = javaproperties.load(BytesIO(data))
    except ValueError:
        raise DecodeError("not a properties file", path=str(path)) from None
    if values.get("version") != _VERSION:
        raise DecodeError(f"version {values.get('version')} is not known: expected {_VERSION}", path=str(path))
    cluster_id, first_poll = values.get("cluster.id"), values.get("first.poll.ms", "")
    if not cluster_id or not (first_poll.isascii() and first_poll.isdecimal() and len(first_poll) < 19):
        raise DecodeError("expected cluster.id, and a number as first.poll.ms", path=str(path))
    return SyncProperties(cluster_id=cluster_id, first_poll=int(first_poll))


def write_sync_properties(directory: Path, properties: SyncProperties) -> None:
    """Put the file there durably. Raises LogError: the disk is full, or refuses."""
    values = {
        "version": _VERSION,
        "cluster.id": properties.cluster_id,
        "first.poll.ms": str(properties.first_poll),
    }
    text = javaproperties.dumps(values, comments=_COMMENT, timestamp=False, ensure_ascii=True)
    replace_durably(directory / SYNC_FILE, text.encode("ascii"))


def refuse_other_writers(directory: Path) -> None:
    """Return if nobody records a cluster there.

    Raises:
        LogError: `aclog sync` does: another's change would stand there as one of the cluster.
        DecodeError: its file is damaged.

    """
    found = read_sync_properties(directory)
    if found is not None:
        raise LogError(
            f"{directory}: what cluster {found.cluster_id} told: only `aclog sync` appends to it; "
            f"a copy of it without {SYNC_FILE} is a log of its own"
        )


def refuse_before_first_poll(directory: Path, moment: Moment) -> None:
    """Return if what stood at the moment can be known: an empty log before the first poll is not an empty cluster.

    Raises:
        LogError: it is a time before the first poll.
        DecodeError: the directory's file is damaged.

    """
    found = read_sync_properties(directory) if isinstance(moment, datetime) else None
    if found is not None and isinstance(moment, datetime) and milliseconds(moment) < found.first_poll:
        raise LogError(
            f"{directory}: as of {moment_text(moment)}: not known what stood then: `aclog sync` asked for the first "
            f"time at {utc_text(found.first_poll)}"
        )
