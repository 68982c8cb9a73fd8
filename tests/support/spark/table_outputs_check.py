"""Outputs in a table format, on the PySpark for which its package exists: FORMAT, JARS with commas, DIRECTORY.

A program of its own, as Delta and Iceberg need other versions of PySpark than the tests: `make check-delta` and
`make check-iceberg`. Rows of each command are those of Parquet; a batch of a stream that is repeated is written once.
"""

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from aclog.authorizer.settings import Settings
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark.commands import (
    Policy,
    authorize_command,
    history_command,
    ingest_command,
    rules_of,
    simulate_command,
    usage_command,
)
from aclog.cli.spark.flags import AppendFlags, IngestFlags, ReportFlags, UsageFlags
from aclog.cli.spark.streams import FollowFlags, StreamFlags, follow_command, ingest_stream_command
from aclog.metalog.errors import ConfigError
from aclog.pipeline.log_copies import GrowingLog
from aclog.pipeline.output_directory import Mode, OutFormat, Place
from aclog.pipeline.session import open_session
from aclog.pipeline.streams.batches import stream_output
from aclog.pipeline.table_outputs import TableOutput
from tests.support.spark.access_logs import audit_text

LOG = Path(__file__).parents[2] / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"
ROW = {"principal": "User:bob", "operation": "WRITE", "resourceType": "TOPIC", "resourceName": "payments.eu"}
NUMBER = 40


class Check:
    """One format, and the outputs of it."""

    def __init__(self, spark: SparkSession, form: OutFormat, directory: Path) -> None:
        self.spark, self.form, self.directory = spark, form, directory
        self.wrong: list[str] = []
        self.requests = directory / "requests"
        self.requests.mkdir()
        self.add_requests(0)
        (directory / "logs").mkdir()
        self.add_lines("a.log", ("a", "b"))
        own, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=True, configs=frozenset())
        self.policy = Policy(rules=own, settings=Settings(), own_time=True)
        now, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=False, configs=frozenset())
        self.before = Policy(rules=now, settings=Settings())
        self.after = Policy(rules=now, settings=Settings(allow_everyone=True))

    def add_requests(self, first: int) -> None:
        lines = (
            ROW | {"host": f"10.0.0.{n}", "timestamp": "2026-11-22T10:00:00Z"} for n in range(first, first + NUMBER)
        )
        (self.requests / f"{first}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def add_lines(self, name: str, names: tuple[str, ...]) -> None:
        text = "".join(f"{audit_text(name=each)}\n" for each in names)
        (self.directory / "logs" / name).write_text(f"{text}no access\n")

    def out(self, name: str) -> Place:
        """Where an output of the format goes."""
        return Path(f"lake.db.{name}") if self.form is OutFormat.ICEBERG else self.directory / name

    def rows(self, name: str, table: str = "") -> "Counter[str]":
        """The rows of a table of the format."""
        output = TableOutput(spark=self.spark, out=self.out(name), form=self.form)
        return Counter(map(str, output.read(table).toArrow().to_pylist()))

    def expect(self, what: str, actual: object, expected: object) -> None:
        """Keep what differs."""
        print(f"{what}: {'as expected' if actual == expected else 'WRONG'}", flush=True)
        if actual != expected:
            self.wrong.append(f"{what}: {actual}, expected {expected}")

    def commands(self) -> None:
        """Each command writes the rows that it writes as Parquet; modes are those of Parquet."""
        for form in (OutFormat.PARQUET, self.form):
            out = (lambda name: self.directory / f"{name}-parquet") if form is OutFormat.PARQUET else self.out
            asked = str(self.requests)
            history_command(self.spark, LOG, out("history"), out_format=form)
            authorize_command(self.spark, asked, out("decided"), self.policy, out_format=form)
            simulate_command(self.spark, asked, out("flips"), self.before, self.after, out_format=form)
            flags = UsageFlags(days=1)
            usage_command(self.spark, asked, out("usage"), self.policy, flags=flags, out_format=form)
            ingest_command(self.spark, [str(self.directory / "logs")], out("table"), IngestFlags(), out_format=form)
        tables = {"history": ("",), "decided": ("",), "flips": ("",), "usage": ("rules", "denied", "holes")}
        for name, parts in {**tables, "table": ("accesses", "rejects")}.items():
            for table in parts:
                plain = self.spark.read.parquet(str(self.directory / f"{name}-parquet" / table))
                expected = Counter(map(str, plain.toArrow().to_pylist()))
                self.expect(f"{name} {table}", self.rows(name, table), expected)
        once = self.rows("decided")
        for mode, times in ((Mode.ERROR, None), (Mode.APPEND, 2), (Mode.OVERWRITE, 1)):
            try:
                authorize_command(
                    self.spark, str(self.requests), self.out("decided"), self.policy, mode=mode, out_format=self.form
                )
            except ConfigError as error:
                self.expect(f"--mode {mode}", "exists already" in str(error) and times is None, True)
                continue
            expected = Counter({row: count * (times or 0) for row, count in once.items()})
            self.expect(f"--mode {mode}", self.rows("decided"), expected)

    def streams(self) -> None:
        """A batch whose commit in the checkpoint is lost, as by a kill, is written once."""
        follow = StreamFlags(requests=str(self.requests), to_end=True, checkpoint=str(self.directory / "follow-state"))
        append = AppendFlags(append=True, checkpoint=str(self.directory / "ingest-state"))

        def run() -> None:
            log = GrowingLog(spark=self.spark, directory=LOG)
            follow_command(
                self.spark, self.out("followed"), follow, FollowFlags(), log, Settings(), frozenset(),
                form=self.form, by_day=True,
            )  # fmt: skip
            ingest_stream_command(
                self.spark, [str(self.directory / "logs")], self.out("grown"), IngestFlags(), append, ReportFlags(),
                form=self.form, by_day=False,
            )  # fmt: skip

        def forget(number: int) -> None:
            for state in ("follow-state", "ingest-state"):
                for name in (f"{number}", f".{number}.crc"):
                    (self.directory / state / "commits" / name).unlink(missing_ok=True)

        run()
        forget(0)
        run()
        self.add_requests(NUMBER)
        self.add_lines("b.log", ("c",))
        run()
        forget(1)
        run()
        self.expect("rows of follow", self.rows("followed").total(), 2 * NUMBER)
        self.expect("distinct rows of follow", len(self.rows("followed")), 2 * NUMBER)
        names = {table: self.rows("grown", table).total() for table in ("accesses", "rejects")}
        self.expect("rows of ingest", names, {"accesses": 3, "rejects": 2})
        self.other_checkpoints()
        days = TableOutput(spark=self.spark, out=self.out("followed"), form=self.form).read().select("day").distinct()
        self.expect("days", [str(row["day"]) for row in days.collect()], ["2026-11-22"])

    def other_checkpoints(self) -> None:
        """A table with another checkpoint, or an older copy of its own, is refused, and stays as it is."""
        state, other = self.directory / "state", self.directory / "other-state"

        def complaint(checkpoint: Path, begun: int, number: int) -> str:
            """Write a batch, with a checkpoint in which this one is the last that had begun before."""
            offsets = checkpoint / "offsets"
            for path in offsets.glob("*"):
                if int(path.name) > begun:
                    path.unlink()
            try:
                with stream_output(self.spark, self.out("refused"), checkpoint, {}, self.form) as output:
                    offsets.mkdir(exist_ok=True)
                    (offsets / str(number)).touch()
                    with output.published(self.spark.range(3), number):
                        pass
            except ConfigError as error:
                return str(error)
            return ""

        self.expect("new batches", [complaint(state, -1, 0), complaint(state, 0, 1), complaint(state, 1, 1)], [""] * 3)
        self.expect("an older checkpoint", "has batch 1 of this stream" in complaint(state, 0, 1), True)
        text = "has rows, and the checkpoint is new" if self.form is OutFormat.ICEBERG else "of the stream with"
        self.expect("another checkpoint", text in complaint(other, -1, 0), True)
        self.expect("rows of two batches", self.rows("refused").total(), 6)


def table_settings(form: OutFormat, jars: str, directory: Path) -> dict[str, str]:
    """The settings of a session with the package of a format, and for Iceberg with a catalog `lake`."""
    settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2"}
    settings["spark.sql.sources.partitionOverwriteMode"] = "dynamic"  # as many sessions have it
    if form is OutFormat.ICEBERG:
        catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}
        catalog[".warehouse"] = (directory / "warehouse").as_uri()
        settings |= {f"spark.sql.catalog.lake{key}": value for key, value in catalog.items()}
        settings["spark.sql.extensions"] = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    else:
        settings["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        settings["spark.databricks.delta.snapshotPartitions"] = "2"
    return settings


def main() -> None:
    """Check a format, and print what differs; exit with 1 if something does."""
    form, jars, directory = OutFormat(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    settings = table_settings(form, jars, directory)
    spark = open_session("local[2]", settings)
    if form is OutFormat.ICEBERG:
        spark.sql("CREATE NAMESPACE lake.db")
    check = Check(spark, form, directory)
    check.streams()
    if sys.argv[4:] != ["streams"]:
        check.commands()
    spark.stop()
    shutil.rmtree(directory / "requests")
    for text in check.wrong:
        print(text[:2000])
    sys.exit(int(bool(check.wrong)))


if __name__ == "__main__":
    main()
