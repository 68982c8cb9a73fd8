"""The output of a stream, in which each batch occurs once.

Spark records in the checkpoint which input a batch has, before the batch, and that it is done, after it. A batch that
is killed in between is repeated with the same input and the same number. So its rows occur once if its output has the
number of the batch, and is published in one step: a table of files gets one file per batch, which is written below
`_staging` and then renamed to its final name. Where the store has no rename, this process copies the file: an object
appears whole, and only if no object has the name (If-None-Match). A batch whose file exists is not written again, if
it had begun before this process: otherwise another process has written it.

On this machine, a lock excludes another process. In another store, the newest process continues a stream: each creates
`writer-000007.json`, with the next number, before it begins, and ends before its next batch if there is a greater one.

Output and checkpoint belong to one another: with another checkpoint, the numbers of batches would begin anew. Both
have the token of the stream.
"""

import json
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from attrs import field
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.files import fsync_directory, write_all, written_whole
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.values import define, frozen
from aclog.pipeline import storage
from aclog.pipeline.accesses.ingestion import fsync_file
from aclog.pipeline.output_directory import OutFormat, Place, hadoop_name, place_of
from aclog.pipeline.storage import publish
from aclog.pipeline.table_outputs import TableOutput, check_format

CHECKPOINT: Final = "_checkpoint"
"""The checkpoint in the directory of the output: Spark skips names that begin with `_`."""
_STAGING: Final = "_staging"
_STATE: Final = "_stream"
"""The directory of the stream's token and lock, in the output and in the checkpoint."""
_NAME: Final = "stream.json"


@frozen(kw_only=True)
class StreamOutput:
    """The output of one stream."""

    spark: SparkSession = field(repr=False)
    at: str
    """The URI of its directory."""
    checkpoint: str
    token: str
    """The random name of the stream."""
    tables: TableOutput | None = None
    """The tables of Delta or Iceberg; None: Parquet files."""
    begun: int = -1
    """The last batch that had begun before this process: its file may exist."""
    writer: int | None = None
    """The number of this process among those of the stream; None on this machine."""

    @contextmanager
    def published(self, frame: DataFrame, number: int, table: str = "") -> Iterator[DataFrame]:
        """Write the rows of a batch to a table, unless they have been, and yield them.

        Raises:
            ConfigError: the store cannot be reached.

        """
        self._check_newest()
        if self.tables is None:
            yield self.spark.read.parquet(self._publish_file(frame, number, table))
            return
        self._check_begun(self.tables, number, table)
        rows = frame.persist(StorageLevel.DISK_ONLY)  # a table has other batches too
        try:
            self.tables.write_batch(rows, self.token, number, table)
            yield rows
        finally:
            rows.unpersist()

    def _check_begun(self, tables: TableOutput, number: int, table: str) -> None:
        """Refuse a batch that this process has begun, and the table has: its rows may be others, and would be lost."""
        last = tables.last_batch(self.token, table)
        if last is not None and last >= number > self.begun:
            raise ConfigError(
                f"{tables.place(table)}: has batch {last} of this stream, and its checkpoint {self.checkpoint} has no "
                f"batch after {self.begun}: another process writes to it, or the checkpoint is an older copy: expected "
                "one process, and the checkpoint of the last one; or a new table, with a new checkpoint"
            )

    def _publish_file(self, frame: DataFrame, number: int, table: str) -> str:
        directory = storage.joined(self.at, table) if table else self.at
        name = f"batch-{number:012d}.parquet"
        target = storage.joined(directory, name)
        if not self._exists(target):
            staged = storage.joined(self.at, _STAGING, f"{table or 'rows'}-{number}-{secrets.token_hex(4)}")
            # one file, also in a session that limits its rows
            frame.repartition(1).write.option("maxRecordsPerFile", 0).parquet(staged)
            self._rename(staged, target)
        elif number > self.begun:
            raise _written(target)
        return target

    def _exists(self, name: str) -> bool:
        local = _local(name)
        return storage.exists(self.spark, name) if local is None else local.exists()

    def _rename(self, staged: str, target: str) -> None:
        local, final = _local(staged), _local(target)
        if local is None or final is None:
            parts = [each for each in storage.children(self.spark, staged) if each.startswith("part-")]
            storage.make_directory(self.spark, target.rpartition("/")[0])
            try:
                is_published = bool(parts) and publish(self.spark, storage.joined(staged, parts[0]), target)
            except ConfigError:  # a newer process deletes what is staged
                self._check_newest()
                raise
            storage.delete_tree(self.spark, staged)
            if not is_published:
                raise _written(target)
            return
        (path,) = local.glob("part-*")
        fsync_file(path)
        final.parent.mkdir(exist_ok=True)
        path.rename(final)
        fsync_directory(final.parent)
        shutil.rmtree(local)

    def _check_newest(self) -> None:
        if self.writer is not None and _newest_writer(self.spark, self.at) != self.writer:
            raise ConfigError(f"{self.at}: another process continues this stream since: this one ends")


def _written(target: str) -> ConfigError:
    return ConfigError(f"{target}: written by another process with the same output: expected one process of a stream")


_WRITER: Final = re.compile(r"writer-([0-9]{6,})\.json")


def _newest_writer(spark: SparkSession, at: str) -> int:
    names = map(_WRITER.fullmatch, storage.children(spark, storage.joined(at, _STATE)))
    return max((int(match[1]) for match in names if match), default=0)


def _become_writer(spark: SparkSession, at: str, *, of_files: bool) -> int:
    """Return the number of this process, the newest of a stream; with a table format, its transactions decide.

    Raises:
        ConfigError: another process begins in the same moment, or the store creates a file although there is one.

    """
    if of_files:
        storage.check_conditional(spark, at)
    number = _newest_writer(spark, at) + 1
    name, content = storage.joined(at, _STATE, f"writer-{number:06d}.json"), secrets.token_hex(16).encode()
    if not storage.create(spark, name, content):
        raise ConfigError(f"{name}: another process begins the same stream")
    if of_files and storage.create(spark, name, content):
        raise ConfigError(f"{at}: the store replaces an object that must not exist: expected one with If-None-Match")
    for other in storage.children(spark, storage.joined(at, _STATE)):
        match = _WRITER.fullmatch(other)
        if match and int(match[1]) < number:
            with suppress(ConfigError):  # a newer process has deleted it
                storage.delete(spark, storage.joined(at, _STATE, other))
    return number


def _local(name: str) -> Path | None:
    place = place_of(name)
    return place if isinstance(place, Path) else None


@contextmanager
def stream_output(
    spark: SparkSession,
    out: Place,
    checkpoint: Place | None,
    stated: Mapping[str, str],
    form: OutFormat = OutFormat.PARQUET,
    *,
    names: Iterable[str] = ("",),
    by_day: bool = False,
) -> Iterator[StreamOutput]:
    """Yield the output of a stream that begins or continues; `stated` must be the same each time.

    A table of Iceberg has no directory of its own: its stream is identified by its checkpoint. `names` are those of
    the tables.

    On this machine, another process is excluded meanwhile. In another store, it takes the stream over from this one.

    Raises:
        ConfigError: `out` is no output of this stream, or its parent does not exist.
        LockedError: another process writes to it.

    """
    check_format(spark, out, form)
    tables = TableOutput(spark=spark, out=out, form=form, by_day=by_day) if form.is_table else None
    if tables is None and by_day:
        raise ConfigError("--by-day: a batch is one file of Parquet: expected --out-format delta or iceberg")
    if form is OutFormat.JSON:
        raise ConfigError("--out-format json: a stream writes parquet, delta or iceberg")
    stated = {**stated, "format": form.value, "day": str(by_day)}
    if form is OutFormat.ICEBERG:
        if checkpoint is None:
            raise ConfigError("--out-format iceberg: expected --checkpoint DIR, as a table has no directory for it")
        stated, out = {**stated, "table": str(out)}, checkpoint
    lock = None
    if isinstance(out, Path):
        if not out.absolute().parent.is_dir():
            raise ConfigError(f"{out.parent}: no such directory: expected one to create {out.name} in")
        (out / _STATE).mkdir(parents=True, exist_ok=True)
        lock = WriterLock.acquire(out / _STATE, force=False)
    try:
        at = hadoop_name(out)
        progress = storage.joined(at, CHECKPOINT) if checkpoint is None else hadoop_name(checkpoint)
        token = _Tokens(spark, at, progress, dict(stated)).token()
        writer = None if isinstance(out, Path) else _become_writer(spark, at, of_files=tables is None)
        _clear(spark, storage.joined(at, _STAGING))
        offsets = storage.children(spark, storage.joined(progress, "offsets"))
        begun = max((int(name) for name in offsets if name.isdecimal()), default=-1)
        if form is OutFormat.ICEBERG and tables is not None and begun < 0:
            _check_empty(tables, names)
        yield StreamOutput(
            spark=spark, at=at, checkpoint=progress, token=token, tables=tables, begun=begun, writer=writer
        )
    finally:
        if lock is not None:
            lock.close()


def _check_empty(tables: TableOutput, names: Iterable[str]) -> None:
    """Refuse tables with rows for a stream that begins: another one may have written the same rows."""
    for name in names:
        if tables.exists(name) and not tables.read(name).isEmpty():
            raise ConfigError(
                f"{tables.place(name)}: has rows, and the checkpoint is new: expected the checkpoint of the stream "
                "that has written them, or a new table"
            )


def _clear(spark: SparkSession, directory: str) -> None:
    local = _local(directory)
    if local is None:
        storage.delete_tree(spark, directory)
    else:
        shutil.rmtree(local, ignore_errors=True)


@define
class _Tokens:
    """The names of a stream in its output and in its checkpoint."""

    spark: SparkSession
    out: str
    checkpoint: str
    stated: dict[str, str]

    def token(self) -> str:
        """Return the token in both, which a new stream gets. Raises ConfigError: they are of different streams."""
        here, there = self._read(self.out), self._read(self.checkpoint)
        if here is None:
            self._check_new(there)
            here = {"stream": secrets.token_hex(16), **self.stated}
            self._write(self.out, here)
        if self.out == self.checkpoint:
            there = here
        for key, value in self.stated.items():
            if here.get(key) != value:
                raise ConfigError(
                    f"{self.out}: is the output of a stream with {key} {here.get(key)}, not {value}: expected the same "
                    "as before, or a new name"
                )
        if there is None:
            if storage.children(self.spark, storage.joined(self.checkpoint, "offsets")) or self._has_batches():
                raise ConfigError(
                    f"{self.out}: is not the output of the stream with the checkpoint {self.checkpoint}: expected both "
                    "of one stream, or a new --out"
                )
            self._write(self.checkpoint, here)
        elif there != here:
            raise ConfigError(f"{self.checkpoint}: the checkpoint of another stream than {self.out}: expected its own")
        return here["stream"]

    def _check_new(self, there: Mapping[str, str] | None) -> None:
        if there is not None:
            raise ConfigError(f"{self.checkpoint}: the checkpoint of a stream whose output is not {self.out}")
        names = {name for name in storage.children(self.spark, self.out) if name != _STATE}
        if names:
            raise ConfigError(f"{self.out}: has {min(names)}: expected the output of a stream, or a new name")

    def _has_batches(self) -> bool:
        names = storage.children(self.spark, self.out)
        below = (name for table in names for name in storage.children(self.spark, storage.joined(self.out, table)))
        return any(name.startswith(("batch-", "_delta_log")) for name in (*names, *below))

    def _read(self, directory: str) -> dict[str, str] | None:
        name = storage.joined(directory, _STATE, _NAME)
        if not storage.exists(self.spark, name):
            return None
        try:
            return dict(json.loads(storage.read_bytes(self.spark, name)))
        except ValueError as error:
            raise ConfigError(f"{name}: damaged: expected a new --out") from error

    def _write(self, directory: str, content: Mapping[str, str]) -> None:
        name, data = storage.joined(directory, _STATE, _NAME), json.dumps(content).encode()
        local = _local(name)
        if local is not None:  # in one step, unlike a file that a killed process has not written to its end
            local.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(local) as fd:
                write_all(fd, data)
        elif not storage.create(self.spark, name, data):
            raise ConfigError(f"{name}: another process begins the same stream")
