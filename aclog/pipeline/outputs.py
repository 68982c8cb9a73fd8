"""The output of a job, which readers accept only once it is complete.

On this machine, a job writes to a directory beside its output, and a rename publishes it. Object stores have no rename
of directories, so there each table has a marker from before its first file until it is complete: a file with the ending
of a data file, but not of its format, and first in the order of names. Every reader that lists the table fails on it.
The deletion of the marker, which is one atomic request, publishes the table; then `_SUCCESS` is created. A job that is
killed leaves its markers.

Spark writes files by Hadoop's FileOutputCommitter, algorithm 1, by which a failed or repeated task leaves no files in
the table; or by the committer that the session's settings name.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from aclog.metalog.errors import ConfigError
from aclog.pipeline import storage
from aclog.pipeline.output_directory import Place, check_new
from aclog.usage.accesses.access_log import INCOMPLETE

Form: TypeAlias = Literal["parquet", "json"]

_MARKERS: Final[Mapping[Form, str]] = {"parquet": f"{INCOMPLETE}.parquet", "json": f"{INCOMPLETE}.json.gz"}
_TEXT: Final = b"aclog: this output is incomplete: its job is running, failed, or was killed\n"
"""Neither Parquet nor gzip."""
_WRITER: Final = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # before the marker is gone, nothing is
}
_SUCCESS: Final = "_SUCCESS"

PARQUET: Final[Mapping[str, Form]] = {"": "parquet"}
"""An output that is one table."""


def check_absent(spark: SparkSession, out: Place) -> None:
    """Refuse an output that exists, in any store. Raises ConfigError: it exists, or the store cannot be reached."""
    if isinstance(out, Path):
        check_new(out)
    elif storage.exists(spark, out):
        raise _exists(spark, out)


def _exists(spark: SparkSession, out: str) -> ConfigError:
    names = storage.children(spark, out)
    below = (name for table in names for name in storage.children(spark, storage.joined(out, table)))
    if any(name.startswith(INCOMPLETE) for name in (*names, *below)):
        return ConfigError(f"{out}: the incomplete output of a job that runs, failed or was killed: delete it first")
    return ConfigError(f"{out}: exists already: expected the name of a directory to create")


@frozen(kw_only=True)
class NewOutput:
    """The tables of an output that is not complete yet."""

    spark: SparkSession
    at: Place
    """The directory to write to."""

    def write(self, frame: DataFrame, table: str = "", form: Form = "parquet") -> None:
        """Write the rows of a table, as files that Spark names `part-...`."""
        local = isinstance(self.at, Path)
        writer = frame.write if local else frame.write.mode("append").options(**_WRITER)
        writer.format(form).save(self._place(table))

    def add(self, rows: pa.Table, table: str) -> None:
        """Write a table of one file."""
        name = "part-00000.parquet"
        if isinstance(self.at, Path):
            (self.at / table).mkdir(parents=True)
            pq.write_table(rows, self.at / table / name)
            return
        with TemporaryDirectory() as scratch:
            pq.write_table(rows, Path(scratch, name))
            storage.copy_from_local(self.spark, Path(scratch, name), storage.joined(self._place(table), name))

    def read(self, table: str = "") -> DataFrame:
        """Return the rows that were written to a table, which need not be complete."""
        return self.spark.read.parquet(storage.joined(self._place(table), "part-*"))

    def _place(self, table: str) -> str:
        return storage.joined(str(self.at), table) if table else str(self.at)


@contextmanager
def new_output(spark: SparkSession, out: Place, tables: Mapping[str, Form] = PARQUET) -> Iterator[NewOutput]:
    """Yield an output to write to; on success readers accept it, and on failure it is deleted.

    `tables` has the form of each table by its name below `out`.

    Raises:
        ConfigError: `out` exists, its parent directory on this machine does not, or the store cannot be reached.

    """
    check_absent(spark, out)
    if isinstance(out, Path):
        with _beside(out) as unfinished:
            yield NewOutput(spark=spark, at=unfinished)
        return
    places = {name: storage.joined(out, name) if name else out for name in tables}
    markers = {storage.joined(place, _MARKERS[tables[name]]): place for name, place in places.items()}
    started: dict[str, str] = {}
    try:
        for marker, place in markers.items():
            _create_marker(spark, out, marker)
            started[marker] = place
        yield NewOutput(spark=spark, at=out)
    except BaseException:
        with suppress(ConfigError, Py4JError):  # the error of the job is the one to report
            _discard(spark, out, started)
        raise
    for marker, place in started.items():
        storage.delete(spark, marker)
        storage.create(spark, storage.joined(place, _SUCCESS), b"")
    if out not in started.values():
        storage.create(spark, storage.joined(out, _SUCCESS), b"")


def _create_marker(spark: SparkSession, out: str, marker: str) -> None:
    if not storage.create(spark, marker, _TEXT):  # of two jobs, one continues
        raise _exists(spark, out)


def _discard(spark: SparkSession, out: str, started: Mapping[str, str]) -> None:
    """Delete tables, each with its marker last: a deletion that is cut short leaves nothing that a reader accepts."""
    for marker, place in started.items():
        for name in storage.children(spark, place):
            if name != marker.rsplit("/", 1)[-1]:
                storage.delete(spark, storage.joined(place, name), recursive=True)
        storage.delete(spark, marker)
    if started and storage.exists(spark, out):  # empty directories, where a store has these
        storage.delete(spark, out, recursive=True)


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """Yield a directory next to `out` to write to; it is renamed to `out` on success and deleted on failure."""
    # next to `out`, so that the rename stays on one file system and is atomic; a random name, as two jobs may race
    partial = out.absolute().with_name(f"{out.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
