"""The file `sync.properties`, which marks a log directory that `aclog sync` writes, and since when it does."""

from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.filesystem import read_small, replace_durably
from aclog.metalog.properties_text import format_properties, parse_properties

SYNC_FILE = "sync.properties"
_COMMENT = "Written by `aclog sync`: no other program may append to this log."
_VERSION = "1"


@frozen(kw_only=True)
class SyncProperties:
    """The recorded cluster, and when its first response arrived (ms since 1970)."""

    cluster_id: str
    first_poll: int


def read_sync_properties(directory: Path) -> SyncProperties | None:
    """Return the properties of a directory; None if it has no such file, so is not written by `aclog sync`.

    Raises:
        DecodeError: the file is malformed or of an unknown version.
        LogError: it cannot be read.

    """
    path = directory / SYNC_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        values = parse_properties(data)
    except ValueError:
        raise DecodeError("not a properties file", path=str(path)) from None
    if values.get("version") != _VERSION:
        raise DecodeError(f"version {values.get('version')} is unknown: expected {_VERSION}", path=str(path))
    cluster_id, first_poll = values.get("cluster.id"), values.get("first.poll.ms", "")
    if not cluster_id or not (first_poll.isascii() and first_poll.isdecimal() and len(first_poll) < 19):
        raise DecodeError("expected cluster.id, and first.poll.ms as a number", path=str(path))
    return SyncProperties(cluster_id=cluster_id, first_poll=int(first_poll))


def write_sync_properties(directory: Path, properties: SyncProperties) -> None:
    """Write the file durably. Raises LogError: it cannot be written."""
    values = {
        "version": _VERSION,
        "cluster.id": properties.cluster_id,
        "first.poll.ms": str(properties.first_poll),
    }
    text = format_properties(values, comments=_COMMENT)
    replace_durably(directory / SYNC_FILE, text)


def refuse_other_writers(directory: Path) -> None:
    """Refuse to write to a directory that `aclog sync` writes.

    Raises:
        LogError: `aclog sync` writes it: any other record would look like a change of the cluster.
        DecodeError: its sync.properties is damaged.

    """
    found = read_sync_properties(directory)
    if found is not None:
        raise LogError(
            f"{directory}: the record of cluster {found.cluster_id}: only `aclog sync` appends to it; "
            f"to change it, make a copy without {SYNC_FILE}"
        )
