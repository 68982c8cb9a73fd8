"""The output of a job, which readers accept only once it is complete.

On this machine, a job writes to a directory beside its output, and a rename publishes it. Object stores have no rename
of directories, so there the output and each table have a marker from before the first file until they are complete: a
file with the ending of a data file, but not of its format, and first in the order of names. Every reader that infers
the schema of the table, or reads all of its files, fails on it. A reader that is given the schema and stops after some
rows, that reads a glob such as `part-*`, or that ignores corrupt files, does not. The deletion of the marker, which is
one atomic request, publishes the table; then `_SUCCESS` is created. A job that is killed leaves its markers.

An output that is overwritten or appended to keeps its files until the new ones are complete. On this machine, an append
links the former files into the directory beside, and two renames exchange it for the former output; between them DIR
is missing. In another store, the new files are beside the former ones while the marker is there; the former ones are
deleted before it is. A failed job deletes its own files, and then the marker: the former output is as before. A marker
lists the former files, so that they can be kept after a job that was killed.

A marker names its job by a random token. A job publishes a table only if the marker is its own and the table consists
of the files that it wrote, and on failure it deletes only these files. Between this check and the deletion of the
marker, no store excludes other writers.

A server of Spark Connect gives no access to its stores but by Spark's own writers. There the marker of a table is a
directory, `00-incomplete=1`, with one file of text: the name of a partition, so that every reader of Parquet looks into
it, fails on it, and cannot take it for rows. JSON lines have no such format, so that their marker has a second
partition below the first, with other columns, which Spark refuses. A write without rows that overwrites this directory
deletes its files, which publishes the table; another write without rows then creates `_SUCCESS`.

Spark writes files by Hadoop's FileOutputCommitter, algorithm 1, by which a failed or repeated task leaves no files in
the table; or by the committer that the session's settings name.
"""

import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext, suppress
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import field
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.pipeline import server_files, storage
from aclog.pipeline.output_directory import Mode, OutFormat, Place, check_new, hadoop_name
from aclog.pipeline.session import frame_of, is_connect
from aclog.pipeline.table_outputs import DAY, WHOLE, TableOutput, check_format, in_days, with_day
from aclog.usage.accesses.access_log import INCOMPLETE, INCOMPLETE_PARTITION

Form: TypeAlias = Literal["parquet", "json", "delta", "iceberg"]
Written = TypeVar("Written")

_MARKERS: Final[Mapping[Form, str]] = {"parquet": f"{INCOMPLETE}.parquet", "json": f"{INCOMPLETE}.json.gz"}
_TEXT: Final = b"aclog: this output is incomplete: its job is running, failed, or was killed\n"
"""Neither Parquet nor gzip."""
_WRITER: Final = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # before the marker is gone, nothing is
}
_SUCCESS: Final = "_SUCCESS"
_FILE: Final = re.compile(r"part-[0-9]+-(?P<job>[0-9a-f]{32}|[0-9a-f-]{36})[-.]")
"""The name of a file of a table, of Spark or of `NewOutput.add`."""

PARQUET: Final[Mapping[str, Form]] = {"": "parquet"}
"""An output that is one table."""


def in_format(tables: Mapping[str, Form], form: OutFormat) -> Mapping[str, Form]:
    """Return tables of Parquet in another format; other ones, as events, stay as they are."""
    return {name: form.value if kind == "parquet" else kind for name, kind in tables.items()}


def _table_format(tables: Mapping[str, Form]) -> OutFormat | None:
    """Return the format with transactions that all tables have; None without one."""
    formats = {OutFormat(form) for form in tables.values()}
    chosen = next((form for form in formats if form.is_table), None)
    if chosen is not None and len(formats) > 1:
        raise ConfigError(f"--out-format {chosen}: not with events, which are JSON lines: expected parquet")
    return chosen


def rows_of_output(spark: SparkSession, out: Place, form: Form, schema: StructType) -> DataFrame:
    """Return the rows of an output of one table; JSON lines without a row or a value lack columns of their own."""
    if OutFormat(form).is_table:
        return TableOutput(spark=spark, out=out, form=OutFormat(form)).read()
    return spark.read.schema(schema).format(form).load(hadoop_name(out))


_OWN: Final = re.compile(r"part-.*|_SUCCESS|\..*\.crc", re.DOTALL)
"""The name of a file of an output that is complete."""


def check_absent(
    spark: SparkSession, out: Place, mode: Mode = Mode.ERROR, tables: Mapping[str, Form] = PARQUET
) -> "_Names | None":
    """Refuse an output that exists, in any store; with another mode, what is no output of these tables.

    Return the files of the former output; None without one.

    Raises:
        ConfigError: it exists, has other files, or is incomplete; or the store cannot be reached.

    """
    form = _table_format(tables)
    if form is not None:
        check_format(spark, out, form)
        output = TableOutput(spark=spark, out=out, form=form)
        if mode is Mode.ERROR and any(map(output.exists, tables)):
            raise ConfigError(f"{out}: exists already: expected a new name, or --mode overwrite")
        return None
    if is_connect(spark):
        if mode is not Mode.ERROR:
            raise ConfigError(
                f"--mode {mode}: Spark Connect has no step that publishes new files in the place of former ones, or "
                "beside them: expected another --out, or --out-format delta or iceberg, which have transactions"
            )
        if storage.exists(spark, str(out)):
            raise _exists_on_server(spark, str(out))
        return None
    if isinstance(out, Path):
        check_new(out, mode)
    if mode is not Mode.ERROR:
        return _former_of(spark, out, tables)
    if isinstance(out, str) and storage.exists(spark, out):
        raise _exists(spark, out)
    return None


def _exists_on_server(spark: SparkSession, out: str) -> ConfigError:
    markers = (storage.joined(out, *below, INCOMPLETE_PARTITION) for below in ((), ("*",)))
    if any(server_files.has_children(spark, marker) for marker in markers):
        return _incomplete(out)
    return ConfigError(f"{out}: exists already: expected the name of a directory to create")


def _exists(spark: SparkSession, out: str) -> ConfigError:
    names = _names_in(spark, out, "")
    below = (name for table in names for name in _names_in(spark, out, table))
    if any(name.startswith(INCOMPLETE) for name in (*names, *below)):
        return _incomplete(out)
    return ConfigError(f"{out}: exists already: expected the name of a directory to create")


def _incomplete(out: str) -> ConfigError:
    return ConfigError(
        f"{out}: the incomplete output of a job that runs, failed or was killed: expected a new name; if no job "
        "writes it any more, delete it, except for former files that its marker may list"
    )


_Names: TypeAlias = Mapping[str, frozenset[str]]
"""The names of the files in each table."""


def _former_of(spark: SparkSession, out: Place, tables: Mapping[str, Form]) -> _Names | None:
    """Return the files of an output that exists, None without an output. Raises as `check_absent`."""
    if not (out.exists() if isinstance(out, Path) else storage.exists(spark, out)):
        return None
    place = str(out)
    subdirectories = {table for table in tables if table}
    former = {}
    for table in ("", *sorted(subdirectories)):
        directory = storage.joined(place, table) if table else place
        names = _names_in(spark, out, table)
        if any(name.startswith(INCOMPLETE) for name in names):
            raise _incomplete(place)
        for name in sorted(names - (subdirectories if not table else set())):
            if not _OWN.fullmatch(_last(name)):
                raise ConfigError(
                    f"{storage.joined(directory, name)}: no file of such an output: expected an output that this "
                    "command wrote with the same tables, or a new name"
                )
        former[table] = names - subdirectories
    return former


def _names_in(spark: SparkSession, out: Place, table: str) -> frozenset[str]:
    """Return the names in a table, those of its days below `day=...`; not the directory of a deleted marker."""

    def names(*below: str) -> frozenset[str]:
        if isinstance(out, str):
            return frozenset(storage.children(spark, storage.joined(out, *below)))
        directory = out.joinpath(*below)
        return frozenset(path.name for path in directory.iterdir()) if directory.is_dir() else frozenset()

    place = (table,) if table else ()
    present = names(*place)
    days = frozenset(name for name in present if name.startswith(_DAYS))
    if INCOMPLETE_PARTITION in present and not names(*place, INCOMPLETE_PARTITION):
        present -= {INCOMPLETE_PARTITION}
    return (present - days) | {f"{day}/{name}" for day in days for name in names(*place, day)}


_DAYS: Final = f"{DAY}="
_TASKS: Final = "_temporary"
"""The directory of a table in which tasks write, by Hadoop's FileOutputCommitter, and which no reader reads.

The committer deletes it with the job; a task that runs twice, or whose job has failed meanwhile, may create it again.
"""


def _last(name: str) -> str:
    return name.rpartition("/")[2]


@frozen(kw_only=True)
class NewOutput:
    """The tables of an output that is not complete yet."""

    spark: SparkSession
    at: Place
    """The directory to write to."""
    former: str | None = None
    """The output to which this one is appended."""
    job: "_Job | None" = None
    """What this job wrote to a store."""
    forms: Mapping[str, Form] = PARQUET
    """By the name of each table."""
    _schemas: dict[str, StructType] = field(factory=dict, init=False, repr=False)
    """Of the rows that were written to each table."""
    _by_day: set[str] = field(factory=set, init=False, repr=False)

    def write(self, frame: DataFrame, table: str = "", *, by_day: bool = False) -> None:
        """Write the rows of a table, as files that Spark names `part-...`; with `by_day`, below `day=...`.

        Raises:
            ConfigError: another process writes to the table, or it is appended to and has other columns.

        """
        rows = with_day(frame) if by_day else frame
        self._check_columns(rows, table, by_day=by_day)
        form, self._schemas[table] = self.forms[table], rows.schema
        with nullcontext() if self.job is None else self.job.one_write(table):
            self._save(rows, form, table, by_day=by_day)
            former = frozenset() if self.job is None else self.job.former.get(table, frozenset())
            if by_day and not any("/" in name for name in _names_in(self.spark, self.at, table) - former):
                self._schemas[table] = frame.schema  # without rows there is no day, and readers need a file
                self._save(frame.limit(0), form, table, by_day=False)
            elif by_day:
                self._by_day.add(table)

    def _save(self, rows: DataFrame, form: Form, table: str, *, by_day: bool) -> None:
        writer = rows.write if self.job is None else rows.write.options(**_WRITER)
        in_days(writer.mode("append"), by_day=by_day).format(form).save(self._place(table))

    def add(self, rows: pa.Table, table: str) -> None:
        """Write a table of one file."""
        if self.forms[table] != "parquet":
            self.write(frame_of(self.spark, rows).coalesce(1), table)
            return
        if self.job is None:
            directory = Path(self.at, table)
            directory.mkdir(parents=True)
            pq.write_table(rows, directory / "part-00000.parquet")
            Path(directory, _SUCCESS).touch()
            return
        name = f"part-00000-{self.job.token}.parquet"
        with TemporaryDirectory() as scratch, self.job.one_write(table):
            pq.write_table(rows, Path(scratch, name))
            storage.copy_from_local(self.spark, Path(scratch, name), storage.joined(self._place(table), name))

    def write_files(self, table: str, write: Callable[[Path], Written]) -> Written:
        """Write a table of a new output on this machine as files; `write` creates their directory."""
        directory = Path(self.at, table)
        result = write(directory)
        Path(directory, _SUCCESS).touch()
        return result

    def read(self, table: str = "") -> DataFrame:
        """Return the rows that this job wrote to a table, which need not be complete."""
        is_by_day = table in self._by_day
        names = [f"{_DAYS}*" if is_by_day else "part-*"] if self.job is None else self.job.written(table)
        if not names:  # days without new rows
            return self.spark.createDataFrame([], self._schemas[table])
        reader = self.spark.read.schema(self._schemas[table]) if table in self._schemas else self.spark.read
        paths = [storage.joined(self._place(table), name) for name in names]
        return reader.option("basePath", self._place(table)).format(self.forms[table]).load(paths)

    def _check_columns(self, frame: DataFrame, table: str, *, by_day: bool) -> None:
        if self.former is None:
            return
        if self.forms[table] == "json":
            raise ConfigError("--mode append: JSON lines do not state their columns: expected another format")
        former = storage.joined(self.former, table) if table else self.former
        reader = self.spark.read.option("basePath", former)
        try:
            rows = reader.parquet(storage.joined(former, f"{_DAYS}*" if by_day else "part-*"))
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            expected_flag = "without --by-day" if by_day else "--by-day"
            raise ConfigError(f"{former}: written {expected_flag}: expected the same for the new rows") from error
        columns, expected = (
            [f"{each.name} {each.dataType.simpleString()}" for each in one.schema] for one in (frame, rows)
        )
        if columns != expected:
            other = next(pair for pair in zip_longest(columns, expected, fillvalue="none") if pair[0] != pair[1])
            raise ConfigError(
                f"{former}: has the column {other[1]} where the new rows have {other[0]}: expected the same columns"
            )

    def _place(self, table: str) -> str:
        return storage.joined(hadoop_name(self.at), table) if table else hadoop_name(self.at)


@contextmanager
def new_output(
    spark: SparkSession, out: Place, tables: Mapping[str, Form] = PARQUET, mode: Mode = Mode.ERROR
) -> Iterator["NewOutput | TableOutput | ServerOutput"]:
    """Yield an output to write to; on success readers accept it, and on failure what was written is deleted.

    `tables` has the form of each table by its name below `out`. An output in a store of which a table is published
    already is not deleted: the error states what is published. `mode`: what becomes of an output that exists.

    Raises:
        ConfigError: as `check_absent`, its parent directory on this machine does not exist, or another process deleted
            the output or wrote to it.

    """
    former = check_absent(spark, out, mode, tables)
    form = _table_format(tables)
    if form is not None:
        output = TableOutput(spark=spark, out=out, form=form, mode=mode)
        try:
            yield output
        finally:
            output.close()
        return
    if is_connect(spark):
        on_server = ServerOutput(spark=spark, out=str(out), forms=tables)
        on_server.begin()
        yield on_server
        on_server.publish()
        return
    appended = hadoop_name(out) if mode is Mode.APPEND and former and any(map(_rows_of, former.values())) else None
    if isinstance(out, Path):
        with _beside(spark, out, former, mode) as unfinished:
            yield NewOutput(spark=spark, at=unfinished, former=appended, forms=tables)
        return
    job = _Job(spark=spark, out=out, forms={"": "parquet", **tables}, former=former or {}, mode=mode)
    try:
        job.begin()
        yield NewOutput(spark=spark, at=out, job=job, former=appended, forms=tables)
        job.check()
    except BaseException:
        job.discard()
        raise
    job.publish()


@frozen(kw_only=True)
class ServerOutput:
    """The tables of a new output that a server of Spark Connect writes, by Spark's writers alone."""

    spark: SparkSession
    out: str
    forms: Mapping[str, Form] = PARQUET
    """By the name of each table."""
    _schemas: dict[str, StructType] = field(factory=dict, init=False, repr=False)
    """Of the tables that were written, in this order."""
    _written: dict[str, frozenset[str]] = field(factory=dict, init=False, repr=False)
    """The names of their files."""
    _by_day: set[str] = field(factory=set, init=False, repr=False)
    _markers: dict[str, frozenset[str]] = field(factory=dict, init=False, repr=False)
    """The names of the files in the marker of each table, and of `out` first."""

    def begin(self) -> None:
        """Create the markers. Raises ConfigError: another process creates the same output."""
        for table in dict.fromkeys(("", *self.forms)):
            try:
                write_marker(self.spark, self._marker(table), self.forms.get(table, "parquet"))
            except AnalysisException as error:
                if error.getCondition() != "PATH_ALREADY_EXISTS":
                    raise
                raise _incomplete(self.out) from error
            self._markers[table] = self._names_of_marker(table)
            if len(self._markers[table]) != 1:  # both began in the same moment, and neither continues
                raise self._written_by_another(table)
            if self._names(table):  # another job completed it since `check_absent`: it is as before
                delete_marker(self.spark, self._marker(table))
                raise self._written_by_another(table)

    def write(self, frame: DataFrame, table: str = "", *, by_day: bool = False) -> None:
        """Write the rows of a table, with `by_day` below `day=...`. Raises ConfigError: files of another process."""
        if self._names(table):
            raise self._written_by_another(table)
        rows = with_day(frame) if by_day else frame
        self._schemas[table] = rows.schema
        self._save(rows, table, by_day=by_day)
        self._written[table] = self._names(table)
        if by_day and self._written[table]:
            self._by_day.add(table)
        elif by_day:  # without rows there is no day, and readers need a file
            self._schemas[table] = frame.schema
            self._save(frame.limit(0), table, by_day=False)
            self._written[table] = self._names(table)

    def _save(self, rows: DataFrame, table: str, *, by_day: bool) -> None:
        writer = in_days(rows.write.mode("append"), by_day=by_day).options(**_WRITER)
        writer.format(self.forms[table]).save(self._place(table))

    def add(self, rows: pa.Table, table: str) -> None:
        """Write a small table, to one file."""
        self.write(frame_of(self.spark, rows).coalesce(1), table)

    def read(self, table: str = "") -> DataFrame:
        """Return the rows that were written to a table, which need not be complete."""
        files = storage.joined(self._place(table), f"{_DAYS}*" if table in self._by_day else "part-*")
        reader = self.spark.read.schema(self._schemas[table]).option("basePath", self._place(table))
        return reader.format(self.forms[table]).load(files)

    def publish(self) -> None:
        """Publish one table after the other, `out` last.

        Raises:
            ConfigError: another process wrote to a table, or the server does not delete a marker.

        """
        for table in self._markers:
            self._check_alone(table)
        for table in reversed(self._markers):
            delete_marker(self.spark, self._marker(table))
            if table in self._schemas:
                nothing = self.spark.createDataFrame([], self._schemas[table])
                create_success(nothing, self._place(table), self.forms[table], by_day=table in self._by_day)

    def _check_alone(self, table: str) -> None:
        names = self._names(table)
        files = ((name, _FILE.match(_last(name))) for name in names)
        jobs = {match["job"] if match else name for name, match in files}
        is_own = self._names_of_marker(table) == self._markers[table]
        # files of one job are another one's, if that found the directory deleted
        if not is_own or len(jobs) > 1 or names != self._written.get(table, frozenset()):
            raise self._written_by_another(table)

    def _written_by_another(self, table: str) -> ConfigError:
        return ConfigError(
            f"{self._place(table)}: written by another process while this job ran: expected an output of this job alone"
        )

    def _names(self, table: str) -> frozenset[str]:
        others = (f"{INCOMPLETE_PARTITION}/", *(f"{name}/" for name in self.forms if name and not table))
        names = server_files.names_below(self.spark, self._place(table))
        return frozenset(name for name in names if not name.startswith(others))

    def _names_of_marker(self, table: str) -> frozenset[str]:
        return frozenset(server_files.names_in(self.spark, self._marker(table)))

    def _marker(self, table: str) -> str:
        return storage.joined(self._place(table), INCOMPLETE_PARTITION)

    def _place(self, table: str) -> str:
        return storage.joined(self.out, table) if table else self.out


# What the server writes apart from tables.


def write_marker(spark: SparkSession, directory: str, form: Form) -> None:
    """Create a directory of one file of text, for JSON also one below it. Raises AnalysisException: it exists."""
    text = spark.createDataFrame([(_TEXT.decode().rstrip(),)], "value string").coalesce(1)
    text.write.mode("error").options(**_WRITER).text(directory)
    if form == "json":
        text.write.options(**_WRITER).text(storage.joined(directory, _OTHER_COLUMN))


_OTHER_COLUMN: Final = "job=1"
"""A partition of a marker, so that Spark reports columns of partitions that are in conflict."""


def delete_marker(spark: SparkSession, directory: str) -> None:
    """Delete the files of a directory: by a table in partitions, of which a task without rows writes no file.

    Raises:
        ConfigError: a file is still there.

    """
    nothing = spark.createDataFrame([], "value string, part string")
    nothing.write.mode("overwrite").options(**_WRITER, **WHOLE).partitionBy("part").text(directory)
    if left := server_files.names_below(spark, directory):
        raise ConfigError(
            f"{storage.joined(directory, left[0])}: still there after Spark has deleted the directory, so that no "
            "reader accepts the output: expected a server that overwrites directories"
        )


def create_success(nothing: DataFrame, directory: str, form: Form, *, by_day: bool) -> None:
    """Create `_SUCCESS` in a table, by a frame without rows; without days, also a further file."""
    marks = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "true"}
    writer = in_days(nothing.write.mode("append"), by_day=by_day).options(**{**_WRITER, **marks})
    writer.format(form).save(directory)


JobOutput: TypeAlias = NewOutput | TableOutput | ServerOutput


def _rows_of(names: Iterable[str]) -> list[str]:
    """Return the names of the files with rows, and of their checksums."""
    return sorted(name for name in names if name != _SUCCESS)


@define(eq=False, kw_only=True)
class _Job:
    """The tables of one job in a store: its markers, and the files that it wrote."""

    spark: SparkSession
    out: str
    forms: Mapping[str, Form]
    """By the name of each table below `out`; the first is `out` itself, whose marker excludes any other job."""
    former: _Names
    """The files of the output that exists, if any."""
    mode: Mode
    token: str = field(init=False, factory=lambda: secrets.token_hex(16))
    _written: dict[str, frozenset[str]] = field(init=False, factory=dict)
    """The names of the files in each table that has a marker of this job, in the order of `forms`."""

    def begin(self) -> None:
        """Create the markers. Raises ConfigError: another process creates the same output."""
        for table in self.forms:
            if not storage.create(self.spark, self._marker(table), self._content(table)):  # of two jobs, one continues
                raise _exists(self.spark, self.out)
            try:
                self._check_files(table)
            except ConfigError:  # another job completed it since `check_absent`: it is as before
                if self._is_own(table):
                    storage.delete(self.spark, self._marker(table))
                raise
            self._written[table] = frozenset()
            if _SUCCESS in self.former.get(table, ()):
                storage.delete(self.spark, storage.joined(self._place(table), _SUCCESS))

    def written(self, table: str) -> list[str]:
        """Return the names of the files that were written to a table."""
        return sorted(self._written[table])

    @contextmanager
    def one_write(self, table: str) -> Iterator[None]:
        """Record the files that are written to a table during the `with`, once for each table.

        Raises:
            ConfigError: files of another process appear in the table.

        """
        self._check_files(table)
        try:
            yield
        except BaseException:
            with suppress(ConfigError, Py4JError):
                self._record_files(table)
            raise
        self._record_files(table)
        self._check_files(table)

    def _record_files(self, table: str) -> None:
        """Take the files for this job's if one job wrote every file: a job names its files by one random number."""
        jobs = {name: _FILE.match(_last(name)) for name in self._names(table) - self.former.get(table, frozenset())}
        if len({match["job"] for match in jobs.values() if match}) == 1:
            self._written[table] = frozenset(name for name, match in jobs.items() if match)

    def check(self) -> None:
        """Check that the tables are those of this job. Raises ConfigError: another process deleted or wrote some."""
        for table in self.forms:
            self._check_own(table)
            self._check_files(table)

    def publish(self) -> None:
        """Publish one table after the other, `out` last. Raises ConfigError: it failed; which tables are published."""
        order = [*(table for table in self.forms if table), ""]
        requested: set[str] = set()
        try:
            for table in order:
                self._check_own(table)
                if self.mode is Mode.OVERWRITE:
                    for name in _rows_of(self.former.get(table, ())):
                        storage.delete(self.spark, storage.joined(self._place(table), name))
                    self._delete_days(table, self.former.get(table, ()))
                self._delete_tasks(table)
                requested.add(table)
                storage.delete(self.spark, self._marker(table))
                storage.create(self.spark, storage.joined(self._place(table), _SUCCESS), b"")
        except (ConfigError, Py4JError) as error:
            raise ConfigError(f"{error}; {self._state(order, requested)}") from error

    def discard(self) -> None:
        """Delete what this job wrote, and each marker last: a deletion that is cut short leaves nothing to accept.

        A marker stays while its table has other files. The error of the job is the one to report, so none is raised.
        """
        for table in reversed(self._written):
            with suppress(ConfigError, Py4JError):
                self._discard_table(table)

    def _discard_table(self, table: str) -> None:
        for name in self._written[table]:
            with suppress(ConfigError):  # deleted by another process
                storage.delete(self.spark, storage.joined(self._place(table), name))
        self._delete_days(table, self._written[table])
        former = self.former.get(table)
        kept = {*(former or ()), *(self.forms if self.former and not table else ())}
        if self._is_own(table) and self._names(table) <= {self._marker_name(table), *kept}:
            self._delete_tasks(table)
            storage.delete(self.spark, self._marker(table))
            if former and _SUCCESS in former:
                storage.create(self.spark, storage.joined(self._place(table), _SUCCESS), b"")
            if not kept and storage.exists(
                self.spark, self._place(table)
            ):  # an empty directory, where a store has these
                storage.delete(self.spark, self._place(table))

    def _delete_days(self, table: str, names: Iterable[str]) -> None:
        """Delete the directories that these files were in, where a store has directories, unless they have others."""
        for day in {name.partition("/")[0] for name in names if "/" in name}:
            with suppress(ConfigError, Py4JError):
                storage.delete(self.spark, storage.joined(self._place(table), day))

    def _check_own(self, table: str) -> None:
        if not self._is_own(table):
            raise ConfigError(f"{self._marker(table)}: deleted or replaced by another process while this job ran")

    def _check_files(self, table: str) -> None:
        expected = {self._marker_name(table), *self._written.get(table, ()), *self.former.get(table, ())}
        expected |= set(self.forms if not table else ())
        for name in sorted(self._names(table) - expected):
            raise ConfigError(
                f"{storage.joined(self._place(table), name)}: written by another process while this job ran: expected "
                "an output of this job alone"
            )

    def _is_own(self, table: str) -> bool:
        marker = self._marker(table)
        return storage.exists(self.spark, marker) and storage.read_bytes(self.spark, marker) == self._content(table)

    def _state(self, tables: Iterable[str], requested: AbstractSet[str]) -> str:
        """Return which tables are published, after a failure to publish every table."""
        states: dict[str, list[str]] = {}
        for table in tables:
            state = "not published"
            if table in requested:
                try:
                    state = "not published" if storage.exists(self.spark, self._marker(table)) else "published"
                except (ConfigError, Py4JError):
                    state = "published or not, as the store cannot be reached"
            states.setdefault(state, []).append(self._place(table))
        return "; ".join(f"{state}: {', '.join(names)}" for state, names in states.items())

    def _names(self, table: str) -> frozenset[str]:
        return _names_in(self.spark, self.out, table) - {_TASKS}

    def _delete_tasks(self, table: str) -> None:
        with suppress(ConfigError, Py4JError):
            storage.delete_tree(self.spark, storage.joined(self._place(table), _TASKS))

    def _place(self, table: str) -> str:
        return storage.joined(self.out, table) if table else self.out

    def _marker(self, table: str) -> str:
        return storage.joined(self._place(table), self._marker_name(table))

    def _marker_name(self, table: str) -> str:
        return _MARKERS[self.forms[table]]

    def _content(self, table: str) -> bytes:
        former = [f"former file {name}\n" for name in _rows_of(self.former.get(table, ()))]
        return _TEXT + "".join((f"job {self.token}\n", *former)).encode()


@contextmanager
def _beside(spark: SparkSession, out: Path, former: _Names | None, mode: Mode) -> Iterator[Path]:
    """Yield a directory next to `out` to write to; it becomes `out` on success and is deleted on failure."""
    # next to `out`, so that the rename stays on one file system and is atomic; a random name, as two jobs may race
    place = out.absolute() if former is None else out.resolve()
    partial = place.with_name(f"{place.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        for tasks in (*partial.glob(_TASKS), *partial.glob(f"*/{_TASKS}")):
            shutil.rmtree(tasks, ignore_errors=True)
        if former is None:
            partial.rename(place)
        else:
            if mode is Mode.APPEND:
                _link_rows(place, partial, former)
            _exchange(spark, partial, place, former)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _link_rows(source: Path, target: Path, former: _Names) -> None:
    for table, names in former.items():
        for name in _rows_of(names):
            here, there = source / table / name, target / table / name
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                there.hardlink_to(here)
            except OSError:  # a file system without links
                shutil.copy2(here, there)


def _exchange(spark: SparkSession, partial: Path, out: Path, former: _Names) -> None:
    """Put a directory in the place of an output. Raises ConfigError: it has other files than at the beginning."""
    replaced = partial.with_suffix(".former")
    out.rename(replaced)
    try:
        _check_same(spark, replaced, out, former)
        partial.rename(out)
    except BaseException:
        replaced.rename(out)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _check_same(spark: SparkSession, there: Path, out: Path, former: _Names) -> None:
    if any(_names_in(spark, there, table) - set(former) != names for table, names in former.items()):
        raise ConfigError(f"{out}: written by another process while this job ran: expected an output of this job alone")
