"""Outputs and requests in tables on a server of Spark Connect, beside files of this machine: FORMAT, JARS, DIRECTORY.

A program of its own, as Delta and Iceberg need other versions of PySpark than the tests: `make check-delta` and
`make check-iceberg`. The server has the package and the catalog; the client has neither. A session of this machine
decides the same accesses into Parquet, and reads the tables.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from attrs import define, field

from aclog.pipeline.output_directory import OutFormat
from aclog.pipeline.session import open_session
from aclog.pipeline.table_outputs import TableOutput
from tests.support.cli.command import Result
from tests.support.spark.access_logs import audit_text
from tests.support.spark.command_process import CommandProcess
from tests.support.spark.connect_server import connect_server
from tests.support.spark.table_outputs_check import LOG, ROW, table_settings

NUMBER = 40
KNOWN = "--no-allow-everyone-if-no-acl-found"
COMMANDS = {
    "history": ("--log", str(LOG)),
    "authorize": ("--log", str(LOG), "--own-time", "--super-users="),
    "usage": ("--log", str(LOG), "--days", "1", KNOWN),
    "simulate": ("--log", str(LOG), "--as-of", "1", "--to-log", str(LOG), KNOWN),
}
TABLES = {"usage": ("rules", "denied", "holes"), "ingest": ("accesses", "rejects")}


@define
class Check:
    """The commands of both sides, and what differs."""

    form: OutFormat
    directory: Path
    local: CommandProcess
    connected: CommandProcess
    wrong: list[str] = field(factory=list)

    def out(self, name: str) -> str:
        """Where an output of the format goes."""
        return f"lake.db.{name}" if self.form is OutFormat.ICEBERG else str(self.directory / name)

    def pair(self, command: str, *, name: str = "", requests: tuple[str, ...] = (), files: str = "requests") -> None:
        """Run a command on both sides, of files and of `requests`, and compare what they print."""
        path = ("--requests", str(self.directory / files)) if command not in {"history", "ingest"} else ()
        path = (str(self.directory / "logs"),) if command == "ingest" else path
        flags, name = COMMANDS.get(command, ()), name or command
        here, there = str(self.directory / f"{name}-files"), self.out(name)
        expected = self.local.run("spark", command, *path, *flags, "--out", here)
        form = ("--out-format", str(self.form))
        actual = self.connected.run("spark", command, *(requests or path), *flags, "--out", there, *form)
        self.expect(f"{name}, printed", shown(actual, there), shown(expected, here))

    def sql(self, text: str) -> str:
        """Run a statement on the server; return its first value."""
        session = "from pyspark.sql import SparkSession; SparkSession.builder.remote(sys.argv[1]).getOrCreate()"
        script = f"import sys; {session}.sql(sys.argv[2]).show(1, False)"
        command = [sys.executable, "-c", script, self.connected.master, text]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return lines[3].strip("| ") if len(lines) > 4 else ""

    def expect(self, what: str, actual: object, expected: object) -> None:
        """Keep what differs."""
        print(f"{what}: {'as expected' if actual == expected else 'WRONG'}", flush=True)
        if actual != expected:
            self.wrong.append(f"{what}: {actual}, expected {expected}")

    def refused(self, what: str, result: Result, text: str) -> None:
        """Check a refusal."""
        self.expect(
            what, (result.code, text in result.err, result.err if text not in result.err else ""), (2, True, "")
        )


def shown(result: Result, out: str) -> list[str]:
    """What a command prints, wherever its output is; `ingest` names a directory of rejects."""
    lines = [result.out, result.err]
    return [str(result.code), *(line.replace(f"{out}/", "PLACE ").replace(out, "PLACE") for line in lines)]


def run(check: Check) -> None:
    """Write every kind of output, then read one as a table of the catalog, of a version, and by a query."""
    for command in (*COMMANDS, "ingest"):
        check.pair(command)
    asked = ("--requests", str(check.directory / "requests"), *COMMANDS["authorize"], "--out", check.out("authorize"))
    form = ("--out-format", str(check.form))
    again = check.connected.run("spark", "authorize", *asked, *form)
    check.refused("an output that exists", again, "exists already: expected a new name, or --mode overwrite")
    for mode in ("append", "overwrite", "append"):
        done = check.connected.run("spark", "authorize", *asked, *form, "--mode", mode)
        check.expect(f"--mode {mode}", done.code, 0)
    # now twice the rows: its first version is read below
    table = check.out("authorize") if check.form is OutFormat.ICEBERG else f"delta.`{check.out('authorize')}`"
    columns = ", ".join((*ROW, "host", "timestamp"))
    check.pair("usage", name="by_query", requests=("--query", f"SELECT DISTINCT {columns} FROM {table}"))
    catalog = "lake.db" if check.form is OutFormat.ICEBERG else "default"
    name, versions = f"{catalog}.asked", {OutFormat.DELTA: "SELECT 0"}
    versions[OutFormat.ICEBERG] = f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at"
    check.sql(f"CREATE TABLE {name} USING {check.form} AS SELECT * FROM json.`{check.directory / 'requests'}`")
    check.pair("authorize", name="by_name", requests=("--requests", name))
    version = check.sql(versions[check.form])
    check.sql(f"INSERT INTO {name} SELECT * FROM {name}")
    check.pair("simulate", name="by_version", requests=("--requests", name, "--version-as-of", version))
    if check.form is OutFormat.ICEBERG:
        check.pair("usage", name="of_ingest", requests=("--requests", "lake.db.ingest"), files="ingest-files")
        # no snapshot has the new name
        files = f"json.`{check.directory / 'requests'}`"
        check.sql(f"CREATE TABLE {name}2 USING iceberg AS SELECT *, host AS address FROM {files}")
        check.sql(f"ALTER TABLE {name}2 DROP COLUMN host")
        check.sql(f"ALTER TABLE {name}2 RENAME COLUMN address TO host")
        check.pair("usage", name="by_new_name", requests=("--requests", f"{name}2"))
    where = (*COMMANDS["usage"], "--out", check.out("x"), *form)
    none = check.connected.run("spark", "usage", "--requests", "lake.none.t", *where)
    check.refused("no table", none, "--requests lake.none.t: no table of a catalog of the server")


def main() -> None:
    """Check a format, and print what differs; exit with 1 if something does."""
    form, jars, directory = OutFormat(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    settings = table_settings(form, jars, directory)
    (directory / "requests").mkdir()
    (directory / "logs").mkdir()
    rows = (ROW | {"host": f"10.0.0.{n}", "timestamp": "2026-11-22T10:00:00Z"} for n in range(NUMBER))
    (directory / "requests" / "0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = "".join(f"{audit_text(principal='User:bob', name=name)}\n" for name in "ab")
    (directory / "logs" / "a.log").write_text(f"{text}no access\n")
    with connect_server(directory, settings) as address:
        check = Check(
            form,
            directory,
            CommandProcess(settings={}, environment={}, log=directory / "local.log"),
            CommandProcess(settings={}, environment={}, log=directory / "connected.log", master=address),
        )
        try:
            if form is OutFormat.ICEBERG:
                check.sql("CREATE NAMESPACE lake.db")
            run(check)
        finally:
            check.local.kill()
            check.connected.kill()
    printed = len(check.wrong)
    for text in check.wrong:
        print(text[:2000], flush=True)
    compare(check, settings)
    for text in check.wrong[printed:]:
        print(text[:2000])
    sys.exit(int(bool(check.wrong)))


def compare(check: Check, settings: dict[str, str]) -> None:
    """Compare the rows of each table with those of files."""
    spark = open_session("local[2]", settings)
    for command in (*COMMANDS, "ingest"):
        for table in TABLES.get(command, ("",)):
            place = check.out(command) if check.form is OutFormat.ICEBERG else Path(check.out(command))
            frame = TableOutput(spark=spark, out=place, form=check.form).read(table)
            actual = Counter(map(str, frame.toArrow().to_pylist()))
            files = spark.read.parquet(str(check.directory / f"{command}-files" / table))
            expected = Counter(map(str, files.select(frame.columns).toArrow().to_pylist()))
            times = 2 if command == "authorize" else 1  # overwritten, then appended to
            expected = Counter({row: count * times for row, count in expected.items()})
            check.expect(f"{command} {table}: {actual.total()} rows", actual, expected)
    spark.stop()


if __name__ == "__main__":
    main()
