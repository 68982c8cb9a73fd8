"""Input files, pinned, and the input of jobs."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from attrs import evolve, field
from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType, TimestampType

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline import server_files
from aclog.pipeline.accesses.catalogs import CatalogRows, CatalogTable, SqlQuery, catalog_rows
from aclog.pipeline.accesses.kafka_log import (
    TIMESTAMP,
    any_time,
    check_found,
    lines_of_files,
    number,
    of_millis,
    of_nanos,
    parse_lines,
    quoted,
    read_lines,
    readable_errors,
    text,
    within,
)
from aclog.pipeline.accesses.table_formats import (
    check_loose,
    form_of_files,
    named_table,
    names_as_text,
    read_parquet,
    reader_settings,
    table_frame,
)
from aclog.pipeline.session import is_connect
from aclog.pipeline.spark_versions import check_zones_of_orc
from aclog.pipeline.storage import is_directory, joined, local_path, path_here, states_of
from aclog.usage.accesses.access_batch import AccessForm
from aclog.usage.accesses.access_log import TABLE_ENDINGS, check_complete, check_whole
from aclog.usage.accesses.parquet import ParquetPart, plain_parts
from aclog.usage.accesses.table_formats import NEWEST, TableMoment
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

# Input files, pinned: Spark lists names and opens them later, and a log may be rotated in between.
#
# The identity of a file is recorded when it is listed, and compared after everything is read. Spark itself compares
# nothing: it reads the file that has the name then, and a task that finds no line in it leaves no trace.


_SAMPLE = 1 << 10
"""Bytes at each end of a file that are compared: a file truncated in place (copytruncate) may grow back to its size."""
_ATTEMPTS = 10
"""Listings of a directory in which files are being renamed."""


class ChangedFilesError(ConfigError):
    """Files were renamed, removed, replaced or truncated while they were being read: to be tried again."""


@frozen(kw_only=True)
class Pin:
    """The file behind a name: its identity (device and inode; 0 if the file system has none), its size and time."""

    device: int
    inode: int
    size: int
    modified: int
    """In ns since 1970."""
    ends: bytes = field(default=b"", repr=False)
    """The first and the last bytes up to `size`; empty if this process may not read the file."""
    tag: str | None = None
    """In another store, the version of an object or the id of a file (`aclog.pipeline.storage.tag_of`)."""

    @property
    def state(self) -> tuple[int, int, int, int, bytes] | None:
        """The identity of an unchanged file; None if it cannot be identified."""
        if not self.inode or not self.ends:
            return None
        return self.device, self.inode, self.size, self.modified, hashlib.sha256(self.ends).digest()

    def is_before(self, now: "Pin") -> bool:
        """Return whether `now` is the same file, unchanged or longer.

        A file system may give the inode of a removed file to the next one, so an inode alone is no identity.
        """
        if self.is_other(now):
            return False
        if self.size == now.size:
            return (self.modified, self.ends) == (now.modified, now.ends)
        head = min(_SAMPLE, self.size)
        return self.size < now.size and self.ends[:head] == now.ends[:head]

    def is_other(self, now: "Pin") -> bool:
        """Return whether `now` is another file of the same name."""
        return (self.device, self.inode, self.tag) != (now.device, now.inode, now.tag)


@frozen(kw_only=True)
class PinnedFiles:
    """The files that Spark has listed, by name, as they were then."""

    spark: SparkSession = field(repr=False)
    pins: Mapping[str, Pin]
    places: tuple[str, ...] = ()
    """The paths of a server of Spark Connect that were listed, whose `states` are compared in place of pins."""
    states: Mapping[str, server_files.State] = field(factory=dict, repr=False)

    @classmethod
    def of(cls, spark: SparkSession, names: Sequence[str]) -> Self:
        """Pin the files of these names (URIs, as DataFrame.inputFiles returns). Raises OSError: one is gone."""
        return cls(spark=spark, pins=_pins(spark, names))

    def are_in(self, later: "PinnedFiles") -> bool:
        """Return whether a later listing has these files, unchanged or longer, under the same names, and no others."""
        pins = self.pins.items()
        return self.pins.keys() == later.pins.keys() and all(pin.is_before(later.pins[name]) for name, pin in pins)

    @contextmanager
    def verified(self) -> Iterator[None]:
        """Read the files in this block; at its end, `check`. If a file is gone, the error of `check` is raised."""
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def only(self, names: Collection[str]) -> Self:
        """Return some of the files."""
        return evolve(self, pins={name: self.pins[name] for name in names})

    @property
    def are_local(self) -> bool:
        """Whether all files are on a file system of this machine."""
        return not is_connect(self.spark) and all(local_path(name) is not None for name in self.pins)

    def paths(self) -> dict[str, tuple[str, int]]:
        """Return the path and the size of each file by its name.

        Raises:
            ConfigError: a file is not on a file system of this machine.

        """
        places = {name: (local_path(name), pin.size) for name, pin in self.pins.items()}
        for name, (path, _) in places.items():
            if path is None:
                raise ConfigError(f"{name}: --append reads files of a local or shared file system: copy it first")
        return {name: (str(path), size) for name, (path, size) in places.items()}

    def check(self) -> None:
        """Check, after everything is read, that all of it was read from the listed files.

        A file of lines may have grown: it is read to where it ended when it was listed, and to the end of that line.

        Raises:
            ConfigError: a file is gone, is another one, or has changed in what was read; with its name.

        """
        if self.places:
            self._check_states()
            return
        remote = _remote_pins(self.spark, [name for name in self.pins if local_path(name) is None])
        for name, pin in self.pins.items():
            changed = _change(remote, name, pin)
            if changed is not None:
                raise ChangedFilesError(
                    f"{local_path(name) or name}: {changed} while it was being read, so lines may be missing: run "
                    "again, or on a copy if logs are rotated often"
                )

    def _check_states(self) -> None:
        now = server_files.states(self.spark, self.places)
        for name in sorted(self.states.keys() | now.keys()):
            if self.states.get(name) != now.get(name):
                what = "added" if name not in self.states else "changed" if name in now else "renamed or removed"
                raise ChangedFilesError(
                    f"{name}: {what} while the accesses were being read: expected files that stay as they are: run "
                    "again, or on a copy"
                )


def pinned(spark: SparkSession, paths: Sequence[str], plan: Callable[[], DataFrame]) -> tuple[DataFrame, PinnedFiles]:
    """Return the frame that `plan` makes of these files, directories and globs, and its files.

    A directory is not listed in one instant: the frame is planned again until the names before and after are the same.

    Raises:
        ConfigError: files are renamed all the time. Also what `plan` raises.

    """
    if is_connect(spark):
        return _pinned_on_server(spark, paths, plan)
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            before = PinnedFiles.of(spark, listed_names(spark, paths))
            frame = plan()
            after = PinnedFiles.of(spark, listed_names(spark, paths))
            names = frame.inputFiles() or list(before.pins)  # lines of local files: Spark does not read them
            if before.are_in(after) and before.pins.keys() >= set(names):
                return frame, evolve(before, pins={name: before.pins[name] for name in names})
    raise ChangedFilesError(f"{', '.join(paths)}: files are renamed or removed faster than they are listed: use a copy")


def _pinned_on_server(
    spark: SparkSession, paths: Sequence[str], plan: Callable[[], DataFrame]
) -> tuple[DataFrame, PinnedFiles]:
    """Return the same with Spark Connect, whose server lists the files of a frame anew for each job.

    So that all jobs read the same, no file of the paths may change, grow, appear or disappear until `check`.
    """
    names = listed_names(spark, paths)
    states = server_files.states(spark, paths)
    frame = plan()
    pins = {name: Pin(device=0, inode=0, size=0, modified=0) for name in frame.inputFiles() or names}
    return frame, PinnedFiles(spark=spark, pins=pins, places=tuple(paths), states=states)


def listed(spark: SparkSession, paths: Sequence[str]) -> PinnedFiles:
    """Return the files of these paths, directories and globs. Raises as `pinned`."""
    return pinned(spark, paths, lambda: _listing(spark, paths))[1]


def lines_in(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return `value` and `file` of every line of files, directories and globs, as of a plan for `pinned`.

    Lines of any length take bounded memory in local files; in others, Spark holds each line as a whole.

    Raises:
        ConfigError: no file is found, or a directory cannot be listed.
        FileNotFoundError: a file was removed.

    """
    if is_connect(spark):
        return read_lines(spark, paths)
    files = PinnedFiles.of(spark, listed_names(spark, paths))
    if not files.are_local:
        return read_lines(spark, paths)
    # as Spark names them in `_metadata`
    names = {re.sub("^file:///", "file:/", name): place for name, place in files.paths().items()}
    own = lines_of_files(spark, names)
    return read_lines(spark, paths) if own is None else own


def _listing(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # binaryFile lists as Spark's other readers do (globs, object stores), without opening any file
    with readable_errors(paths):
        frame = spark.read.format("binaryFile").option("recursiveFileLookup", value=True).load(list(paths))
        check_found(frame, paths)
        return frame


def listed_names(spark: SparkSession, paths: Sequence[str]) -> list[str]:
    """Return the URIs of the files of these paths. Raises ConfigError: no file, or the output of a job in progress."""
    names = _listing(spark, paths).inputFiles()
    check_complete(names)
    return names


def _pins(spark: SparkSession, names: Sequence[str]) -> dict[str, Pin]:
    remote = _remote_pins(spark, [name for name in names if local_path(name) is None])
    pins: dict[str, Pin] = {}
    for name in names:
        path = local_path(name)
        pin = remote.get(name) if path is None else _local_pin(path, None)
        if pin is None:
            raise FileNotFoundError(name)
        pins[name] = pin
    return pins


def _local_pin(path: str, end: int | None) -> Pin:
    """Pin a file; its last bytes are those before `end`, by default before its end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:  # the workers may run as another user
        status, ends = os.stat(path), b""  # noqa: PTH116  # like fstat below
    else:
        try:
            status = os.fstat(descriptor)
            until = status.st_size if end is None else end
            ends = os.pread(descriptor, min(_SAMPLE, until), 0)
            ends += os.pread(descriptor, min(_SAMPLE, until), max(until - _SAMPLE, 0))
        finally:
            os.close(descriptor)
    return Pin(device=status.st_dev, inode=status.st_ino, size=status.st_size, modified=status.st_mtime_ns, ends=ends)


def _remote_pins(spark: SparkSession, names: Sequence[str]) -> dict[str, Pin]:
    """Return the pins of files in another store, without those that do not exist."""
    states = states_of(spark, names)
    return {
        name: Pin(device=0, inode=0, size=state.size, modified=state.modified * 1_000_000, tag=state.tag)
        for name, state in states.items()
    }


def _change(remote: Mapping[str, Pin], name: str, pin: Pin) -> str | None:
    """Return how a file has changed since it was pinned; None if it has not. `remote`: those of other stores now."""
    path = local_path(name)
    try:
        now = remote.get(name) if path is None else _local_pin(path, pin.size)
    except FileNotFoundError:
        now = None
    if now is None:
        return "renamed or removed"
    if pin.is_other(now):
        return "replaced by another file"
    if now.size < pin.size:
        return "truncated"
    if now.ends != pin.ends:
        return "written anew"
    appended = now.size > pin.size and path is not None and not name.endswith(_WHOLE)
    return None if appended or (now.size, now.modified) == (pin.size, pin.modified) else "changed"


_WHOLE = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz", ".parquet", ".parq", ".pq", ".avro")
"""Endings of files that are only valid as a whole, and so must not even grow."""


# The input of jobs: accesses or requests as Parquet or ORC, from `ingest` or elsewhere, as JSON lines, or in a table.


MALFORMED: Final = "_malformed"
"""The column with the text of an unreadable line or row, whose other columns are null; null in readable rows."""

_SCALARS = {"string", "bigint", "double", "boolean", "timestamp", "date"}


def read_accesses(spark: SparkSession, path: str | Path, moment: TableMoment = NEWEST) -> DataFrame:
    """Return the accesses of Parquet, ORC, a table of Delta or Iceberg, or JSON lines (plain or packed).

    `path`, or a URI, is a file, a directory or a glob, perhaps the output directory of `ingest`; `moment` is the
    version of a table. The columns of a request, in any case of letters, are STRING; `timestamp`, if present, is a
    TIMESTAMP (in the input: a TIMESTAMP, ms as an integer, or ISO 8601 text, in UTC unless it has an offset). Other
    columns are kept. Only blank lines are dropped: an unreadable line has its text in the further column `_malformed`.

    Raises:
        ConfigError: no file is found, a column is missing, an append to the directory has not been finished, the files
            are those of a table, or the package of its format is missing.

    """
    place = place_in(spark, path)
    with readable_errors([place]):
        table = named_table(spark, place)
        moment.check_used([place], () if table is None else [table])
        if table is not None:
            return rows_of_table(table_frame(spark, table, moment), place, {})
        files = listed_names(spark, [place])
        check_loose(spark, [file for file in files if file.endswith(TABLE_ENDINGS)])
        form = form_of_files(spark, files, place)
        if form is AccessForm.JSONL:
            return _from_lines(spark, place)
        check_loose(spark, files)
        if form is AccessForm.ORC:
            return rows_of_table(orc_frame(spark, place), place, {})
        frame, nanos = read_parquet(spark, [place])
        return rows_of_table(frame, place, nanos)


def pinned_accesses(
    spark: SparkSession, path: str | Path | CatalogRows, moment: TableMoment = NEWEST
) -> tuple[DataFrame, PinnedFiles]:
    """Return the same with its files, so that a job can check at its end that all rows came from them.

    The frame over a table names its version, whose files do not change; and that over rows of a catalog stays the same.
    """
    if isinstance(path, CatalogTable | SqlQuery):
        return rows_of_table(catalog_rows(spark, path, moment), str(path), {}), PinnedFiles.of(spark, ())
    if named_table(spark, place_in(spark, path)) is not None:
        return read_accesses(spark, path, moment), PinnedFiles.of(spark, ())
    return pinned(spark, [str(path)], lambda: read_accesses(spark, path, moment))


def plain_accesses(
    spark: SparkSession, path: str | Path | CatalogRows, most: int
) -> tuple[list[ParquetPart], PinnedFiles] | None:
    """Return a table of accesses as parts of local Parquet files that workers can read on their own, and its files.

    None if the input is anything else, which `read_accesses` may still be able to read.
    """
    if (
        isinstance(path, CatalogTable | SqlQuery) or path_here(spark, str(path)) is None
    ):  # another store is listed once, by who reads it
        return None
    place = place_in(spark, path)
    if named_table(spark, place) is not None:
        return None
    files = listed(spark, [place])
    if not all(map(_is_parquet, files.pins)) or not files.are_local:
        return None
    check_loose(spark, list(files.pins))
    parts = plain_parts([place for place, _ in files.paths().values()], most)
    return None if parts is None else (parts, files)


def place_in(spark: SparkSession, path: str | Path) -> str:
    """Return where the table is. Raises ConfigError: an append to it has not been finished."""
    local = path_here(spark, str(path))
    if local is not None:
        place = Path(local)
        check_whole(place.parent if place.name == "accesses" else place)
    inner = joined(str(path), "accesses")
    return inner if is_directory(spark, inner) else str(path)


def _is_parquet(name: str) -> bool:
    return name.endswith((".parquet", ".parq", ".pq"))


def orc_frame(spark: SparkSession, place: str) -> DataFrame:
    """Return the rows of ORC files.

    Raises:
        ConfigError: times without a zone, in a JVM whose zone is not UTC; or times in a zone, before PySpark 4.2.

    """
    settings = reader_settings(spark, [place])

    def read() -> DataFrame:
        return spark.read.options(**settings).orc(place)

    try:
        frame = read()
        frame.schema  # noqa: B018 - with Spark Connect, it is analyzed only now
    except ParseException as error:
        check_zones_of_orc(place, str(error))
        raise
    frame = names_as_text(spark, frame, read)
    if any(isinstance(field.dataType, TimestampType) for field in frame.schema.fields):
        zone = _zone_of_jvm(spark)
        if zone is not None:
            raise ConfigError(
                f"{place}: ORC has times without a zone, which Spark reads in that of its JVM, {zone}: "
                "expected -Duser.timezone=UTC in spark.driver.extraJavaOptions and spark.executor.extraJavaOptions"
            )
    return frame


_UTC_ZONES: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT"})


def _zone_of_jvm(spark: SparkSession) -> str | None:
    """Return the zone of Spark's JVM, None if it is UTC."""
    if is_connect(spark):
        named = F.expr("java_method('java.time.ZoneId', 'systemDefault')").alias("zone")
        name = str(spark.range(1).select(named).collect()[0]["zone"])
        return None if name in _UTC_ZONES else name
    jvm: Any = spark.sparkContext._jvm
    zone = jvm.java.util.TimeZone.getDefault()
    return str(zone.getID()) if zone.getRawOffset() or zone.useDaylightTime() else None


def rows_of_table(frame: DataFrame, place: str, nanos: Mapping[str, bool]) -> DataFrame:
    """Return the rows of a table; `nanos`: its BIGINT columns of times in ns."""
    ours = {name.lower(): name for name in (*REQUEST_COLUMNS, TIMESTAMP, MALFORMED)}
    theirs: dict[str, str] = {}
    for name in frame.columns:
        column = ours.get(name.lower(), name)
        if column in theirs:
            raise ConfigError(f"{place}: columns {theirs[column]!r} and {name!r}: expected one of this name")
        theirs[column] = name
    if missing := [name for name in REQUEST_COLUMNS if name not in theirs]:
        raise ConfigError(f"{place}: no column {missing[0]!r}: expected {', '.join(REQUEST_COLUMNS)}")
    columns = {column: F.col(quoted(name)) for column, name in theirs.items() if column != MALFORMED}
    columns |= {name: columns[name].cast("string") for name in REQUEST_COLUMNS}
    malformed = F.col(quoted(theirs[MALFORMED])) if MALFORMED in theirs else F.lit(None).cast("string")
    kinds: dict[str, DataType] = {field.name: field.dataType for field in frame.schema.fields}
    if TIMESTAMP in columns:
        adjusted = nanos.get(theirs[TIMESTAMP])
        if adjusted is None:
            time = any_time(columns[TIMESTAMP], kinds[theirs[TIMESTAMP]], "UTC")
        else:
            time = of_nanos(columns[TIMESTAMP], "UTC", adjusted=adjusted)
        unread = columns[TIMESTAMP].isNotNull() & time.isNull()
        malformed = F.coalesce(
            malformed, F.when(unread, F.to_json(F.struct(*(each.alias(name) for name, each in columns.items()))))
        )
        columns[TIMESTAMP] = time
    return _blanked(frame.select(*(column.alias(name) for name, column in columns.items()), malformed.alias(MALFORMED)))


def _from_lines(spark: SparkSession, place: str) -> DataFrame:
    parsed = parse_lines(lines_in(spark, [place]))
    objects = parsed.filter(F.coalesce(F.col("reason") != Reason.BLANK.value, F.lit(True)))
    kinds = _columns(objects, place)
    values: dict[str, Column] = {name: text("object", name) for name in REQUEST_COLUMNS}
    bad = F.col("reason").isNotNull()
    for name in REQUEST_COLUMNS:
        bad |= values[name].isNull()
    if TIMESTAMP in kinds:
        timestamp_kind = F.nullif(F.schema_of_variant(within("object", TIMESTAMP)), F.lit("VOID"))
        values[TIMESTAMP] = F.coalesce(
            any_time(text("object", TIMESTAMP), StringType(), "UTC"), of_millis(number("object", TIMESTAMP))
        )
        bad |= timestamp_kind.isNotNull() & values[TIMESTAMP].isNull()
    for name, kind in kinds.items():
        values.setdefault(name, _other(name, kind))
    malformed = F.when(bad, F.make_valid_utf8("line")).alias(MALFORMED)
    return _blanked(objects.select(*(value.alias(name) for name, value in values.items()), malformed))


def _columns(objects: DataFrame, place: str) -> dict[str, DataType]:
    """Return the keys of all objects, and the narrowest type that holds all their values.

    A pass over the input of its own: types must be known when the query is planned.
    """
    row = objects.select(F.schema_of_variant_agg("object").alias("schema")).first()
    schema_text = str(row["schema"]) if row else "VOID"
    if not schema_text.startswith("OBJECT<"):
        return {}
    ddl = re.sub(r"\bOBJECT<", "STRUCT<", schema_text)
    schema = DataType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        return {}
    names = [field.name for field in schema.fields]
    if len({name.lower() for name in names}) != len(names):
        raise ConfigError(f"{place}: keys that differ in case only: {', '.join(sorted(names))[:300]}")
    return {field.name: field.dataType for field in schema.fields if field.name != MALFORMED}


def _other(name: str, kind: DataType) -> Column:
    """Return the value of a further key: with its type if that is a scalar, else as JSON."""
    value = within("object", name)
    simple = kind.simpleString()
    if simple in _SCALARS or simple.startswith("decimal"):
        return F.try_variant_get(value, "$", simple)
    return F.to_json(value)


def _blanked(frame: DataFrame) -> DataFrame:
    """Return the frame with nulls in malformed rows."""
    good = F.col(MALFORMED).isNull()
    names = [name for name in frame.columns if name != MALFORMED]
    return frame.select(*(F.when(good, F.col(quoted(name))).alias(name) for name in names), MALFORMED)
