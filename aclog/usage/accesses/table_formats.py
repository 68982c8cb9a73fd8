"""Tables of Delta, Iceberg and Hudi: where one is, and a copy of its rows of a version.

The files of such a table also hold deleted and rewritten rows: only the table's own log lists those that count. So a
file below a table is never read by itself.
"""

import gzip
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final

from aclog.installation import needs_extra
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.scratch import before_copy

if TYPE_CHECKING:
    import pyarrow as pa


class TableFormat(StrEnum):
    """A table format: files of data, and a log of which count."""

    DELTA = "Delta"
    ICEBERG = "Iceberg"
    HUDI = "Hudi"


@frozen
class TableRoot:
    """A table by its directory."""

    format: TableFormat
    path: str
    """Its directory; of Iceberg perhaps the file of one state: `.../metadata/NAME.metadata.json`."""


@frozen(kw_only=True)
class TableMoment:
    """The version of a table to read; neither: the newest."""

    version: int | None = None
    """Of Delta the number of a version, of Iceberg the id of a snapshot."""
    timestamp: datetime | None = None
    """The newest version at that time."""

    def __attrs_post_init__(self) -> None:
        if self.version is not None and self.timestamp is not None:
            raise ConfigError("--version-as-of and --timestamp-as-of: expected one, not both")

    def __bool__(self) -> bool:
        return self.version is not None or self.timestamp is not None

    def check_used(self, paths: Sequence[str], tables: Collection[TableRoot]) -> None:
        """Raise ConfigError if a version is stated, but some path is not the path of one of these tables."""
        if self and len(tables) < len(paths):
            raise ConfigError(
                f"--version-as-of, --timestamp-as-of: {', '.join(paths)[:200]}: expected a Delta or Iceberg table: "
                "other files have no versions"
            )


NEWEST: Final = TableMoment()


# Where tables are. Directories are looked at by functions, since Spark's may be in an object store.


_LOGS: Final = {"_delta_log": TableFormat.DELTA, ".hoodie": TableFormat.HUDI}
_METADATA: Final = "metadata"
MARKERS: Final = (*_LOGS, _METADATA)
"""Directories, one of which is in the directory of each table."""
_METADATA_FILE: Final = re.compile(r"(?:\.gz)?\.metadata\.json(?:\.gz)?\Z")
_HADOOP_FILE: Final = re.compile(r"v([0-9]+)(?:\.gz)?\.metadata\.json(?:\.gz)?\Z")


def is_of_log(path: str) -> bool:
    """Return whether a path is, by its name, of the log or the metadata of a table."""
    *folders, name = path.split("/")
    is_metadata = folders[-1:] == [_METADATA] and _METADATA_FILE.search(name) is not None
    return is_metadata or not _LOGS.keys().isdisjoint(folders)


@frozen
class Places:
    """How directories are looked at."""

    markers: Callable[[str], Collection[str]]
    """Which of MARKERS are in a directory; none if it does not exist."""
    names: Callable[[str], Collection[str]]
    """The names in a directory; none if it does not exist."""

    def root(self, directory: str) -> TableRoot | None:
        """Return the table whose directory this is."""
        there = self.markers(directory)
        for marker, kind in _LOGS.items():
            if marker in there:
                return TableRoot(kind, directory)
        if _METADATA in there and any(map(_METADATA_FILE.search, self.names(_joined(directory, _METADATA)))):
            return TableRoot(TableFormat.ICEBERG, directory)
        return None

    def named(self, path: str) -> TableRoot | None:
        """Return the table that a path names: by its directory, or by a file of Iceberg's metadata."""
        if _METADATA_FILE.search(path):
            return TableRoot(TableFormat.ICEBERG, path)
        return self.root(path.rstrip("/") or path)

    def check_loose(self, files: Iterable[str]) -> None:
        """Check that no file of data is in the directory of a table, however deep.

        Raises:
            ConfigError: one is; the error names the table.

        """
        paths = set[str]()
        for file in files:
            for directory in above(file):
                if directory in paths:
                    break
                paths.add(directory)
                table = self.root(directory)
                if table is not None:
                    raise ConfigError(
                        f"{file}: a file of the {table.format} table {table.path}, whose files also hold deleted and "
                        f"rewritten rows: expected the table itself: {table.path}"
                    )


def _joined(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}"


def above(path: str) -> Iterator[str]:
    """Yield the directories above a path or URI, from its own one up to the root."""
    scheme, separator, rest = path.partition("://")
    prefix, rest = (f"{scheme}://", rest) if separator else ("", path)
    while "/" in rest:
        rest = rest.rpartition("/")[0]
        yield prefix + (rest or "/")


def _local_markers(directory: str) -> list[str]:
    return [name for name in MARKERS if os.path.isdir(os.path.join(directory, name))]  # noqa: PTH112, PTH118 - hot


def _local_names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - names
    except OSError:
        return []


LOCAL: Final = Places(_local_markers, _local_names)
"""The directories of this machine."""


def check_loose_files(paths: Iterable[str]) -> None:
    """Check that none of these local files belongs to a table, by its name or by the one that links in it lead to.

    Raises:
        ConfigError: one does.

    """
    names = dict.fromkeys(str(Path(path).absolute()) for path in paths)
    LOCAL.check_loose(names)
    folders = dict.fromkeys(str(Path(name).parent) for name in names)
    real = {folder: os.path.realpath(folder) for folder in folders}
    LOCAL.check_loose(_joined(other, "file") for folder, other in real.items() if other != folder)
    LOCAL.check_loose(os.path.realpath(name) for name in names if Path(name).is_symlink())


# A table without Spark: the rows of a version, copied to a Parquet file.


_FILE_SCHEME: Final = "file:"


@frozen(kw_only=True)
class TableCopy:
    """The rows of a version of a table in a temporary Parquet file, which ends with this object."""

    place: str
    _file: Any


def copied(table: TableRoot, moment: TableMoment, columns: Collection[str]) -> TableCopy:
    """Copy the columns of these names, in any case of letters, that a table has.

    Raises:
        ConfigError: no such version, an unsupported format or feature, or a package is missing.
        OSError: the disk of temporary files is full.

    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    names = {name.lower() for name in columns}
    reader = {TableFormat.DELTA: _delta, TableFormat.ICEBERG: _iceberg}.get(table.format)
    if reader is None:
        raise ConfigError(unreadable(table))
    before_copy()
    file = NamedTemporaryFile(prefix="aclog-", suffix=".parquet")  # noqa: SIM115 - closed with the copy
    try:
        batches = reader(table, moment, names)
        schema = _plain_schema(batches.schema)
        with pq.ParquetWriter(file.name, schema) as writer:
            for batch in batches:
                writer.write_batch(batch.cast(schema))
    except ConfigError:
        file.close()
        raise
    except Exception as error:
        file.close()
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = " ".join(str(error).split())[:300]
        raise ConfigError(f"{table.path}: the {table.format} table cannot be read: {what}") from error
    return TableCopy(place=file.name, file=file)


def unreadable(table: TableRoot) -> str:
    """Return the error of a format that aclog does not read."""
    return (
        f"{table.path}: a {table.format} table, which aclog does not read: write its rows to Parquet files with Spark "
        "and Hudi's bundle (org.apache.hudi:hudi-spark-bundle), and read those"
    )


def _plain_schema(schema: "pa.Schema") -> "pa.Schema":
    """Return the schema with text as strings: the readers of tables return views and large strings."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    def kind(field: "pa.Field[Any]") -> Any:
        text = pa.types.is_string_view(field.type) or pa.types.is_large_string(field.type)
        return pa.string() if text or pa.types.is_dictionary(field.type) else field.type

    return pa.schema([pa.field(field.name, kind(field)) for field in schema])


def _need(table: TableRoot, module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise ConfigError(f"{table.path}: {needs_extra(f'a {table.format} table', module, extra)}")


def _delta(table: TableRoot, moment: TableMoment, names: Collection[str]) -> "pa.RecordBatchReader":
    _need(table, "deltalake", "delta")
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra
    from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415 - an extra

    try:
        delta = DeltaTable(table.path, version=moment.version)
        if moment.timestamp is not None:
            first = min(commit["timestamp"] for commit in delta.history())
            if moment.timestamp.timestamp() * 1000 < first:
                at = datetime.fromtimestamp(first / 1000, UTC).isoformat(timespec="milliseconds")
                raise ConfigError(f"{table.path}: --timestamp-as-of: the Delta table has no version before {at}")
            delta.load_as_version(moment.timestamp)
    except (DeltaError, TableNotFoundError) as error:
        if moment.version is None:
            raise
        newest = DeltaTable(table.path).version()
        raise ConfigError(
            f"{table.path}: --version-as-of {moment.version}: no such version of the Delta table, whose newest is "
            f"{newest}: {str(error)[:200]}"
        ) from error
    there = [field.name for field in delta.schema().fields if field.name.lower() in names]
    return pa.RecordBatchReader.from_stream(delta.scan(columns=there))


def _iceberg(table: TableRoot, moment: TableMoment, names: Collection[str]) -> "pa.RecordBatchReader":
    _need(table, "pyiceberg", "iceberg")
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyiceberg.table import StaticTable  # noqa: PLC0415 - an extra

    metadata = iceberg_metadata(table, LOCAL)
    static = StaticTable.from_metadata(metadata)
    snapshot = iceberg_snapshot(table, moment, read_metadata(Path(metadata).read_bytes(), metadata))
    schema = static.schema() if snapshot is None else static.scan(snapshot_id=snapshot).projection()
    there = tuple(field.name for field in schema.fields if field.name.lower() in names)
    if snapshot is None:  # a new table, without rows
        return pa.RecordBatchReader.from_batches(pa.schema([(name, pa.string()) for name in there]), [])
    return static.scan(snapshot_id=snapshot, selected_fields=there).to_arrow_batch_reader()


# Iceberg's metadata: a catalog knows which file of it is current; only tables of Hadoop's catalog show it by its name.


def iceberg_metadata(table: TableRoot, places: Places) -> str:
    """Return the file of metadata that is the current state of a table, or the one that the user names.

    Raises:
        ConfigError: only the table's catalog knows.

    """
    if _METADATA_FILE.search(table.path):
        return table.path
    folder = _joined(table.path, _METADATA)
    names = places.names(folder)
    versions = {int(match[1]): name for name in names if (match := _HADOOP_FILE.match(name))}
    others = sorted(name for name in names if _METADATA_FILE.search(name) and not _HADOOP_FILE.match(name))
    if versions and not others:
        return _joined(folder, versions[max(versions)])
    raise ConfigError(
        f"{table.path}: an Iceberg table of a catalog, which alone knows the current state: expected the file of that "
        f"state, its metadata_location in the catalog, such as {_joined(folder, max(others))}"
    )


def read_metadata(data: bytes, path: str) -> dict[str, Any]:
    """Return the object in a file of metadata. Raises ConfigError: it is damaged."""
    try:
        value = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, OSError, EOFError) as error:
        raise ConfigError(f"{path}: not Iceberg metadata: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: not Iceberg metadata: expected an object")
    return value


def iceberg_snapshot(table: TableRoot, moment: TableMoment, metadata: dict[str, Any]) -> int | None:
    """Return the id of the snapshot of a moment; None for a table without one.

    Raises:
        ConfigError: there is no such snapshot.

    """
    snapshots = {each["snapshot-id"] for each in metadata.get("snapshots") or ()}
    if moment.version is not None:
        if moment.version not in snapshots:
            ids = ", ".join(map(str, sorted(snapshots))) or "none"
            raise ConfigError(
                f"{table.path}: --version-as-of {moment.version}: no such snapshot of the Iceberg table, which has "
                f"{ids[:300]}"
            )
        return moment.version
    if moment.timestamp is not None:
        until = moment.timestamp.timestamp() * 1000
        log = [each for each in metadata.get("snapshot-log") or () if each["timestamp-ms"] <= until]
        if not log or log[-1]["snapshot-id"] not in snapshots:
            raise ConfigError(
                f"{table.path}: --timestamp-as-of: the Iceberg table has no snapshot of {moment.timestamp.isoformat()}"
            )
        return int(log[-1]["snapshot-id"])
    current: Any = metadata.get("current-snapshot-id")
    return int(current) if current in snapshots else None


# The paths of a command: which of them are tables.


def tables_among(paths: Sequence[str]) -> dict[str, TableRoot]:
    """Return the tables that local paths name, by path."""
    named = {path: LOCAL.named(path) for path in paths if Path(path).exists()}
    return {path: table for path, table in named.items() if table is not None}
