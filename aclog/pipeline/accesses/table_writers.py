"""Writers of the Parquet files of one task: one file, or a file for each day."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import define, field

from aclog.pipeline.accesses.access_table import TIMESTAMP

_ROWS, _BYTES = 1 << 18, 1 << 26
"""The size of a row group."""
_OPEN_DAYS = 366
"""The days whose files are open at a time."""

DAY: Final = "day"
NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the partition of rows without a time, as in Hive and Spark."""


@define(kw_only=True)
class FileWriter:
    """Writes rows to a file, which does not exist before there are any."""

    path: Path
    schema: pa.Schema
    waiting: int = field(default=0, init=False)
    """The bytes that wait in memory for the next row group."""
    _waiting: list[pa.RecordBatch] = field(factory=list, init=False)
    _rows: int = field(default=0, init=False)
    _writer: pq.ParquetWriter | None = field(default=None, init=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, and write a row group once there are enough."""
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self.waiting += batch.nbytes
        if self._rows >= _ROWS or self.waiting >= _BYTES:
            self.flush()

    def close(self) -> list[Path]:
        """Write the remaining rows, and return the file if there is one."""
        self.flush()
        if self._writer is None:
            return []
        self._writer.close()
        return [self.path]

    def flush(self) -> None:
        """Write the rows that wait."""
        if not self._waiting:
            return
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self.path, self.schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self.schema))
        self._waiting, self._rows, self.waiting = [], 0, 0


@define(kw_only=True)
class DayWriter:
    """Writes rows to `day=2026-11-21/NAME`, by the day (UTC) of their time."""

    path: Path
    """Where the file would be without days."""
    schema: pa.Schema
    _open: dict[str, FileWriter] = field(factory=dict, init=False)
    _closed: list[Path] = field(factory=list, init=False)
    _turn: int = field(default=0, init=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows to the files of their days."""
        for day, rows in _by_day(batch):
            self._writer(day).add(rows)
        if sum(writer.waiting for writer in self._open.values()) >= _BYTES:
            for writer in self._open.values():
                writer.flush()

    def close(self) -> list[Path]:
        """Write the remaining rows, and return the files."""
        for writer in self._open.values():
            self._closed += writer.close()
        self._open.clear()
        return self._closed

    def _writer(self, day: str) -> FileWriter:
        if day not in self._open:
            if len(self._open) == _OPEN_DAYS:
                self.close()
                self._turn += 1
            name = f"{self.path.stem}-{self._turn}{self.path.suffix}"
            self._open[day] = FileWriter(path=self.path.parent / f"{DAY}={day}" / name, schema=self.schema)
        return self._open[day]


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each day."""
    days: Any = batch.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.date32())
    found = pc.unique(days).to_pylist()
    for day in found:
        which = pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day))
        yield NO_DAY if day is None else day.isoformat(), batch if len(found) == 1 else batch.filter(which)
