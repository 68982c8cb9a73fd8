"""The output of ingest: each task writes its own files of both tables, and reports files and counts to the driver."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from pyspark import TaskContext

from aclog.authorizer.access_reject import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import ACCESS_SCHEMA, REJECT_SCHEMA, TIMESTAMP, Splitter
from aclog.pipeline.accesses.source_times import SourceTimes
from aclog.pipeline.accesses.table_writers import DayWriter, FileWriter

Table = Literal["accesses", "rejects"]
SCHEMAS: Final[dict[Table, pa.Schema]] = {"accesses": ACCESS_SCHEMA, "rejects": REJECT_SCHEMA}

REPORTED: Final = "file string, reason string, count long, source string, latest long, late long"
"""A task's report: its files (count is null), the number of rows by reason (null for accesses), and its sources."""
_FIELDS: list["pa.Field[Any]"] = [
    pa.field("file", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("count", pa.int64()),
    pa.field("source", pa.string()),
    pa.field("latest", pa.int64()),
    pa.field("late", pa.int64()),
]
_REPORT = pa.schema(_FIELDS)


@frozen(kw_only=True)
class SplitAndWrite:
    """The function for `mapInArrow`: splits the batches of a partition and writes `directory`/accesses and /rejects.

    Spark's own writer would need a pass per table, and so two readings of the input. `directory` must be on a file
    system that the workers share with the driver. An empty table gets no file. A failed or duplicate attempt leaves its
    files behind, but does not report them: `commit_files` deletes them.
    """

    split: Splitter
    directory: str
    latest: Mapping[str, int | None] | None = None
    """For a table that is appended to: the latest time that each source had, in us. Accesses are written by day, and
    the report says what each source has now."""
    until: int = 0
    """The time of the append, in us."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write one partition, and yield one batch with the columns REPORTED."""
        name, directory = _file_name(), Path(self.directory)
        kind = FileWriter if self.latest is None else DayWriter
        accesses = kind(path=directory / "accesses" / name, schema=ACCESS_SCHEMA)
        rejects = FileWriter(path=directory / "rejects" / name, schema=REJECT_SCHEMA)
        counts: Counter[str | None] = Counter()
        sources = SourceTimes(before=self.latest or {}, until=self.until)
        for batch in batches:
            found = self.split(batch)
            accesses.add(found.accesses)
            rejects.add(found.rejects)
            if self.latest is not None:
                sources.add(found.files, found.accesses.column(TIMESTAMP))
            counts.update(found.rejects.column("reason").to_pylist())
            counts[None] += found.accesses.num_rows
            counts[Reason.BLANK] += found.blanks
        files = [path.relative_to(directory) for writer in (accesses, rejects) for path in writer.close()]
        rows: list[dict[str, str | int | None]] = [{"file": str(file)} for file in files]
        rows += [{"reason": reason, "count": count} for reason, count in counts.items() if count]
        rows += sources.rows()
        yield pa.RecordBatch.from_pylist(rows, schema=_REPORT)


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
