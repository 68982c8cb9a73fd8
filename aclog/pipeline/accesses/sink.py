"""The output of ingest: each task writes its own files of both tables, and reports files and counts to the driver."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, field, frozen
from pyspark import TaskContext

from aclog.authorizer.access_reject import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import ACCESS_SCHEMA, REJECT_SCHEMA, Splitter

Table = Literal["accesses", "rejects"]
SCHEMAS: Final[dict[Table, pa.Schema]] = {"accesses": ACCESS_SCHEMA, "rejects": REJECT_SCHEMA}

REPORTED: Final = "file string, reason string, count long"
"""A task's report: its files (count is null), and the number of rows by reason (null for accesses)."""
_FIELDS: list["pa.Field[Any]"] = [
    pa.field("file", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("count", pa.int64()),
]
_REPORT = pa.schema(_FIELDS)

_ROWS, _BYTES = 1 << 18, 1 << 26
"""The size of a row group."""


@frozen(kw_only=True)
class SplitAndWrite:
    """The function for `mapInArrow`: splits the batches of a partition and writes `directory`/accesses and /rejects.

    Spark's own writer would need a pass per table, and so two readings of the input. `directory` must be on a file
    system that the workers share with the driver. An empty table gets no file. A failed or duplicate attempt leaves its
    files behind, but does not report them: `commit_files` deletes them.
    """

    split: Splitter
    directory: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write one partition, and yield one batch with the columns REPORTED."""
        name = _file_name()
        accesses = _Writer(path=Path(self.directory, "accesses", name), schema=ACCESS_SCHEMA)
        rejects = _Writer(path=Path(self.directory, "rejects", name), schema=REJECT_SCHEMA)
        counts: Counter[str | None] = Counter()
        for batch in batches:
            found = self.split(batch)
            accesses.add(found.accesses)
            rejects.add(found.rejects)
            counts.update(found.rejects.column("reason").to_pylist())
            counts[None] += found.accesses.num_rows
            counts[Reason.BLANK] += found.blanks
        files = [f"{writer.path.parent.name}/{name}" for writer in (accesses, rejects) if writer.close()]
        rows: list[dict[str, str | int | None]] = [{"file": file} for file in files]
        rows += [{"reason": reason, "count": count} for reason, count in counts.items() if count]
        yield pa.RecordBatch.from_pylist(rows, schema=_REPORT)


@define(kw_only=True)
class _Writer:
    path: Path
    schema: pa.Schema
    _waiting: list[pa.RecordBatch] = field(factory=list, init=False)
    _rows: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)
    _writer: pq.ParquetWriter | None = field(default=None, init=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, and write a row group once there are enough."""
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _ROWS or self._bytes >= _BYTES:
            self._flush()

    def close(self) -> bool:
        """Write the remaining rows, and return whether there is a file."""
        if self._waiting:
            self._flush()
        if self._writer is None:
            return False
        self._writer.close()
        return True

    def _flush(self) -> None:
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self.path, self.schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self.schema))
        self._waiting, self._rows, self._bytes = [], 0, 0


def _file_name() -> str:
    """Return a file name that no other attempt of this task uses: speculative attempts run at the same time."""
    context = TaskContext.get()
    if context is None:
        return "part-00000.parquet"
    return f"part-{context.partitionId():05d}-{context.taskAttemptId()}.parquet"


def commit_files(directory: Path, reported: Iterable[str]) -> None:
    """Delete all files in `directory` but the reported ones; an empty table gets an empty file.

    Raises:
        ConfigError: a reported file is missing.

    """
    wanted = {directory / name for name in reported}
    if missing := [path for path in sorted(wanted) if not path.exists()]:
        raise ConfigError(
            f"{missing[0]}: written by a task, but not visible here: expected a directory that the workers share"
        )
    for table, schema in SCHEMAS.items():
        place = directory / table
        place.mkdir(parents=True, exist_ok=True)
        for path in place.iterdir():
            if path not in wanted:
                path.unlink()
        if not any(place.iterdir()):
            # a reader needs a file for the schema
            pq.write_table(schema.empty_table(), place / "part-00000.parquet")
