"""The file `meta.properties`: the cluster and node that a log directory belongs to (MetaProperties, version 1)."""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog import files
from aclog.metalog.primitives import parse_uuid, uuid_text
from aclog.metalog.text_forms import parse_properties
from aclog.metalog.values import frozen

META_PROPERTIES = "meta.properties"
_VERSION = "1"


@frozen(kw_only=True)
class MetaProperties:
    """The file's contents; `directory_id` is None if a Kafka before 3.7 wrote it."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Read a directory's meta.properties; None without one: the directory is not formatted.

    Raises:
        ConfigError: not as Kafka in KRaft mode writes it.
        LogError: it cannot be read.

    """
    path = directory / META_PROPERTIES
    data = files.read_small(path)
    return None if data is None else _parsed(data, path)


@lru_cache(maxsize=4)  # a running node reads the same file every second
def _parsed(data: bytes, path: Path) -> MetaProperties:
    try:
        values = parse_properties(data)
    except ValueError as error:
        raise ConfigError(f"{path}: a malformed \\u escape") from error
    version = values.get("version", "0")
    if version != _VERSION:
        raise ConfigError(f"{path}: version {version!r}: expected {_VERSION}, as kafka-storage writes it")
    cluster_id, node_id = values.get("cluster.id"), values.get("node.id", "")
    if not cluster_id:
        raise ConfigError(f"{path}: cluster.id is missing")
    if not (node_id.isascii() and node_id.isdigit()):
        raise ConfigError(f"{path}: node.id {node_id!r}: expected a number from 0")
    return MetaProperties(
        cluster_id=cluster_id, node_id=int(node_id), directory_id=_directory_id(path, values.get("directory.id"))
    )


def _directory_id(path: Path, text: str | None) -> UUID | None:
    if text is None:
        return None
    try:
        return parse_uuid(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: directory.id: {error}") from error


def encode_meta_properties(properties: MetaProperties, *, now_ms: int) -> bytes:
    """Encode the file as Kafka writes it."""
    import javaproperties  # noqa: PLC0415 - few commands write the file, and the library is slow to import

    values = {"node.id": str(properties.node_id)}
    if properties.directory_id is not None:
        values["directory.id"] = uuid_text(properties.directory_id)
    # Kafka writes java.util.Properties: the keys' order is that of Java's hash table.
    values |= {"version": _VERSION, "cluster.id": properties.cluster_id}
    written = datetime.fromtimestamp(now_ms // 1000, UTC)
    return javaproperties.dumps(values, comments="", timestamp=written, ensure_ascii=True).encode("ascii")


def write_meta_properties(directory: Path, properties: MetaProperties, *, now_ms: int) -> None:
    """Write the file durably, replacing an existing one; `now_ms` is the timestamp in its header.

    Raises:
        LogError: the disk is full, or the directory cannot be written.

    """
    files.replace_durably(directory / META_PROPERTIES, encode_meta_properties(properties, now_ms=now_ms))
