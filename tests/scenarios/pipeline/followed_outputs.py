"""What `aclog spark follow` writes, as the campaign of follow_kills reads it: never by Spark.

Delta and Iceberg have packages for other versions of PySpark than the pinned one: their commands run in the
environments of `make check-delta` and `make check-iceberg`; deltalake and pyiceberg read their tables.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.dataset as ds
from attrs import frozen
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from aclog.pipeline.output_directory import OutFormat
from tests.support.kafka.jvm import BUILD

COLUMNS = ["host", "decision"]
_BUILD = BUILD.parent
_NUMBER = "aclog-batch"


class Output(Protocol):
    """Where a stream writes."""

    @property
    def python(self) -> str:
        """The interpreter of the command."""
        ...

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of the command that name the output."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the session."""
        ...

    @property
    def checkpoint(self) -> Path:
        """The directory of the checkpoint."""
        ...

    def commits(self) -> int:
        """Return how many times the output was published: cheap, and growing with each batch."""
        ...

    def batches(self) -> list[int]:
        """Return the number of each batch that was published."""
        ...

    def rows(self) -> pa.Table:
        """Return the rows, with COLUMNS."""
        ...


@frozen
class Files:
    """Parquet files, one per batch."""

    home: Path

    @property
    def python(self) -> str:
        return sys.executable

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--out", str(self.home / "out"))

    @property
    def settings(self) -> Mapping[str, str]:
        return {}

    @property
    def checkpoint(self) -> Path:
        return self.home / "out" / "_checkpoint"

    def commits(self) -> int:
        return len(self._paths())

    def batches(self) -> list[int]:
        return [int(path.stem.removeprefix("batch-")) for path in self._paths()]

    def rows(self) -> pa.Table:
        return ds.dataset(self._paths()).to_table(columns=COLUMNS)

    def _paths(self) -> list[Path]:
        return sorted((self.home / "out").glob("batch-*.parquet"))


@frozen
class Delta:
    """A table of Delta; each commit has the number of its batch as `txn`."""

    home: Path

    @property
    def python(self) -> str:
        return str(_BUILD / "delta" / "venv" / "bin" / "python")

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--out", str(self.home / "out"), "--out-format", "delta", "--checkpoint", str(self.checkpoint))

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "spark.jars": ",".join(map(str, (_BUILD / "delta").glob("*.jar"))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint"

    def commits(self) -> int:
        return len(self._paths())

    def batches(self) -> list[int]:
        lines = (json.loads(line) for path in self._paths() for line in path.read_text().splitlines())
        return [line["txn"]["version"] for line in lines if "txn" in line]

    def rows(self) -> pa.Table:
        return DeltaTable(self.home / "out").to_pyarrow_table(columns=COLUMNS)

    def _paths(self) -> list[Path]:
        return sorted((self.home / "out" / "_delta_log").glob("*.json"))


@frozen
class Iceberg:
    """A table of an Iceberg catalog in a directory; each snapshot has the number of its batch as a property."""

    home: Path

    @property
    def python(self) -> str:
        return str(_BUILD / "iceberg" / "venv" / "bin" / "python")

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--out", "lake.db.decided", "--out-format", "iceberg", "--checkpoint", str(self.checkpoint))

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "spark.jars": ",".join(map(str, (_BUILD / "iceberg").glob("*.jar"))),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": (self.home / "warehouse").as_uri(),
        }

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint"

    def commits(self) -> int:
        return max(len(self._paths()) - 1, 0)  # the first one makes the table

    def batches(self) -> list[int]:
        return [int(summary[_NUMBER]) for summary in self._summaries() if _NUMBER in summary]

    def rows(self) -> pa.Table:
        return StaticTable.from_metadata(str(self._newest())).scan(selected_fields=tuple(COLUMNS)).to_arrow()

    def _summaries(self) -> Iterator[Mapping[str, str]]:
        if self._paths():
            yield from (each["summary"] for each in json.loads(self._newest().read_text())["snapshots"])

    def _newest(self) -> Path:
        return max(self._paths(), key=lambda path: int(path.name.split(".")[0][1:]))

    def _paths(self) -> list[Path]:
        return list((self.home / "warehouse" / "db" / "decided" / "metadata").glob("v*.metadata.json"))


OUTPUTS: Mapping[OutFormat, type[Files | Delta | Iceberg]] = {
    OutFormat.PARQUET: Files,
    OutFormat.DELTA: Delta,
    OutFormat.ICEBERG: Iceberg,
}
