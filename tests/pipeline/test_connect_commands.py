"""`aclog spark --master sc://...` beside a session of this machine; the server is one of this test.

The store is one that only the server reaches: its settings are not those of the client. `make check-connect` runs all
forms of inputs and all steps at which a job can be killed, which take the server five minutes; other runs, one of each.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from shutil import rmtree
from socket import socket

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_log import find_accesses
from tests.pipeline.storage_contract import (
    COMMANDS,
    COUNT,
    INCOMPLETE,
    INPUTS,
    KNOWN,
    LOG,
    ROWS,
    files,
    rows,
    shown,
)
from tests.support.cli.command import aclog
from tests.support.spark.command_process import CommandProcess
from tests.support.spark.connect_server import connect_server

pytestmark = pytest.mark.server
of_check_connect = pytest.mark.skipif("CHECK_CONNECT" not in os.environ, reason="make check-connect runs it")

STORE = "viewfs://store"
MORE = (
    "authorize --requests {at}/orc --log {log} --super-users= --out {out}",
    "authorize --requests {at}/nanos --log {log} --super-users= --own-time --out {out}",
    "authorize --requests {at}/days --log {log} --super-users= --out {out}",
    "authorize --requests {at}/requests.jsonl --acls {here}/acls.jsonl --super-users= --out-format json --out {out}",
    "usage --requests {at}/requests.jsonl --log {log} --days 1 {known} --out {out}",
    "simulate --requests {at}/requests.jsonl --acls {here}/fewer.jsonl --to-log {log} {known} --out {out}",
    "simulate --requests {at}/bad.jsonl --log {log} --as-of 1 --to-log {log} {known} --out {out}",
    "authorize --requests {at}/requests.jsonl --log {log} --super-users= --by-day --out {out}",
    "authorize --requests {at}/requests.jsonl --log {log} --super-users= --by-day --as cloudevents --out {out}",
    "ingest {at}/requests.jsonl --kind jsonl --out {out}",
    "ingest {at}/accesses --kind parquet --out {out}",
)
"""More commands, by the forms of their input."""
_EVENT_ID = re.compile(r'"id":"[0-9a-f-]{36}",')  # random


@frozen(kw_only=True)
class Sides:
    """Two processes for commands, one with the server, and the directory of the inputs."""

    here: Path
    local: CommandProcess
    connected: CommandProcess


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> Iterator[Sides]:
    scratch = tmp_path_factory.mktemp("connect")
    here = scratch / "here"
    for name, content in INPUTS.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(content)
    (here / "acls.jsonl").write_text(aclog("acls", "list", "--log", LOG, "--format", "jsonl").out)
    rules = (here / "acls.jsonl").read_text().splitlines(keepends=True)
    (here / "fewer.jsonl").write_text("".join(rules[: len(rules) // 2]))
    (here / "bad.jsonl").write_bytes(INPUTS["requests.jsonl"] + b'{"principal": "User:bob"}\nno access\n')
    table = pa.Table.from_pylist(ROWS)
    times = pa.array([1_795_600_000_000_000_000 + n for n in range(len(ROWS))], pa.int64())
    at = table.schema.get_field_index("timestamp")
    for name in ("orc", "nanos", "days/host=10.0.0.1/resourceName=007", "table/_delta_log"):
        (here / name).mkdir(parents=True)
    pyarrow.orc.write_table(table, here / "orc" / "part-0.orc")
    nanos = table.set_column(at, "timestamp", times.cast(pa.timestamp("ns", "UTC")))
    pq.write_table(nanos, here / "nanos" / "part-0.parquet")
    named = table.drop_columns(["host", "resourceName"])
    pq.write_table(named, here / "days" / "host=10.0.0.1" / "resourceName=007" / "part-0.parquet")
    (here / "table" / "_delta_log" / "00000000000000000000.json").write_text("{}\n")
    pq.write_table(table, here / "table" / "part-0.parquet")
    link = {"spark.hadoop.fs.viewfs.mounttable.store.link./here": here.as_uri()}
    with connect_server(scratch, link) as address:
        local, connected = (
            CommandProcess(settings={}, environment={}, log=scratch / f"{number}.log", master=master)
            for number, master in enumerate(("local[2]", address))
        )
        try:
            yield Sides(here=here, local=local, connected=connected)
        finally:
            local.kill()
            connected.kill()


FIRST = list({command.split(" ")[0]: command for command in COMMANDS}.values())
"""A form of each command."""


@pytest.mark.parametrize(
    "command",
    [*FIRST, *(pytest.param(each, marks=of_check_connect) for each in (*COMMANDS, *MORE) if each not in FIRST)],
)
def test_a_command_gives_what_it_gives_on_this_machine(sides, request, command):
    out, results = f"out-{abs(hash(request.node.name))}", []
    for at, process in ((str(sides.here), sides.local), (f"{STORE}/here", sides.connected)):
        index = sides.here.parent / f"{out}-{len(results)}"
        name = f"{out}-{len(results)}"
        names = {"at": at, "log": f"{at}/node/{LOG.name}", "here": sides.here, "index": index, "out": f"{at}/{name}"}
        names["known"] = KNOWN
        result = process.run("spark", *(word.format_map(names) for word in command.split(" ")))
        results.append((result.code, shown(result, f"{at}/{name}", at, str(index))))
    assert results[0] == results[1], results
    assert results[0][0] in {0, 1, 2}, results
    if "{out}" in command:
        written = [written_to(sides.here / f"{out}-{number}") for number in range(2)]
        expected, connected = (
            {table: sorted(_EVENT_ID.sub("", row) for row in each) for table, each in found.items()}
            for found in (rows(written[0], f"file:{sides.here}"), rows(written[1], f"{STORE}/here"))
        )
        assert connected == expected
        assert any(expected.values())
        tables = {re.sub("/?day=.*", "", table) for table in expected}
        assert all("_SUCCESS" in os.listdir(sides.here / f"{out}-1" / table) for table in tables)  # noqa: PTH208


def written_to(directory: Path) -> dict[str, bytes]:
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files(directory)}


def authorize(sides: Sides, out: str, *more: object, requests: str = "requests.jsonl") -> tuple[object, ...]:
    where = ("--requests", f"{STORE}/here/{requests}", "--out", f"{STORE}/here/{out}")
    return "spark", "authorize", *where, "--acls", sides.here / "acls.jsonl", "--super-users=", *more


def test_a_log_of_this_machine_is_read_here_and_sent(sides):
    log = sides.here / "node" / LOG.name
    flags = ("--super-users=", "--log", log, "--own-time", "--requests", f"{STORE}/here/accesses")
    done = sides.connected.run("spark", "authorize", *flags, "--out", f"{STORE}/here/sent")
    assert done.code == 0, done
    there = ("--super-users=", "--log", log, "--own-time", "--requests", sides.here / "accesses")
    assert sides.local.run("spark", "authorize", *there, "--out", sides.here / "read").out == done.out
    assert rows(written_to(sides.here / "sent"), "") == rows(written_to(sides.here / "read"), "")


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--mode", "overwrite"), "--mode overwrite: Spark Connect has no step that publishes new files"),
        (("--mode", "append"), "--mode append: Spark Connect has no step that publishes new files"),
        (("--packages", "a:b:1"), "spark.jars.packages: a setting of the server of Spark Connect"),
        (("--conf", "spark.executor.memory=4g"), "spark.executor.memory: a setting of the server of Spark Connect"),
        (("--conf", "spark.sql.warehouse.dir=/x"), "--conf spark.sql.warehouse.dir: "),
        (("--out-format", "delta"), "--out-format delta: Spark writes it by a package"),
    ],
)
def test_what_the_server_does_not_do_is_refused(sides, more, complaint):
    refused = sides.connected.run(*authorize(sides, "refused", *more))
    assert refused.code == 2
    assert refused.complaint.startswith(complaint)
    assert not (sides.here / "refused").exists()


def test_an_output_that_exists_is_refused(sides):
    (sides.here / "exists").mkdir()
    refused = sides.connected.run(*authorize(sides, "exists"))
    assert refused.code == 2
    assert "exists already: expected the name of a directory to create" in refused.complaint
    assert not os.listdir(sides.here / "exists")  # noqa: PTH208


def test_the_files_of_a_table_are_refused(sides):
    refused = sides.connected.run(*authorize(sides, "of-table", requests="table/part-0.parquet"))
    assert refused.code == 2
    assert f"a file of the Delta table {STORE}/here/table" in refused.complaint
    read = sides.connected.run(*authorize(sides, "of-table", requests="table"))
    assert "a Delta table, which Spark reads by a package" in read.complaint


@pytest.mark.parametrize(
    "change", ["grown", *(pytest.param(each, marks=of_check_connect) for each in ("added", "removed"))]
)
def test_files_that_change_while_they_are_read_leave_no_complete_output(sides, change):
    directory = sides.here / change
    directory.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (directory / name).write_bytes(INPUTS["requests.jsonl"])
    job = authorize(sides, f"{change}-out", requests=change)
    sides.connected.stop(*job, before="aclog.cli.spark.commands:authorize")
    if change == "grown":
        with (directory / "a.jsonl").open("ab") as file:
            file.write(INPUTS["requests.jsonl"])
    elif change == "added":
        (directory / "c.jsonl").write_bytes(INPUTS["requests.jsonl"])
    else:
        (directory / "a.jsonl").unlink()
    result = sides.connected.resume()
    assert result.code == 2
    assert "while the accesses were being read: expected files that stay as they are" in result.complaint
    assert not (sides.here / f"{change}-out" / "_SUCCESS").exists()


@of_check_connect
def test_another_job_that_creates_the_output_first_keeps_it(sides):
    job = authorize(sides, "first")
    sides.connected.stop(*job, before="aclog.pipeline.outputs:write_marker")  # it has seen no output
    there = ("--requests", sides.here / "requests.jsonl", "--out", sides.here / "first", "--super-users=")
    assert sides.local.run("spark", "authorize", *there, "--acls", sides.here / "acls.jsonl").code == 0
    whole = written_to(sides.here / "first")
    assert "written by another process while this job ran" in sides.connected.resume().complaint
    assert written_to(sides.here / "first") == whole


@pytest.mark.parametrize(
    ("step", "published"),
    [
        pytest.param("aclog.pipeline.outputs:write_marker", 0, marks=of_check_connect),
        pytest.param("aclog.cli.spark.commands:authorize", 0, marks=of_check_connect),
        ("aclog.pipeline.outputs:delete_marker", 0),
        pytest.param("aclog.pipeline.outputs:create_success", COUNT, marks=of_check_connect),
    ],
)
def test_a_killed_job_leaves_nothing_that_readers_accept(sides, tmp_path, step, published):
    out = f"killed-{abs(hash(step))}"
    sides.connected.stop(*authorize(sides, out), before=step)
    sides.connected.kill()
    there = sides.here / out
    has_begun = there.exists()
    again = sides.connected.run(*authorize(sides, out))
    if not has_begun:
        assert (again.code, step) == (0, "aclog.pipeline.outputs:write_marker")
        return
    window = ("--log", LOG, "--days", "1", KNOWN)
    by_server = ("spark", "usage", "--requests", f"{STORE}/here/{out}", *window, "--out", f"{STORE}/here/{out}-read")
    readers = [sides.local.run("spark", "usage", "--requests", there, *window, "--out", tmp_path / "read")]
    readers += [sides.connected.run(*by_server)]
    if published:
        assert "exists already" in again.complaint
        assert all(re.search(rf"^{published} +read in total$", read.out, re.MULTILINE) for read in readers), readers
        assert pq.read_table(there).num_rows == published
        return
    assert INCOMPLETE in again.complaint
    assert all(INCOMPLETE in read.complaint for read in readers)
    assert not (sides.here / f"{out}-read").exists()
    with pytest.raises(ConfigError, match="incomplete output"):
        find_accesses([str(there)], UTC)
    with pytest.raises(pa.ArrowInvalid):  # and a reader that is not aclog
        pq.read_table(there)


@of_check_connect
def test_json_lines_of_a_killed_job_are_refused_by_spark_too(sides):
    sides.connected.stop(
        *authorize(sides, "lines", "--out-format", "json"), before="aclog.pipeline.outputs:delete_marker"
    )
    sides.connected.kill()
    assert list((sides.here / "lines").glob("part-*.json*"))
    assert "incomplete output" in sides.connected.run(*authorize(sides, "lines", "--out-format", "json")).complaint
    with pytest.raises(ConfigError, match="incomplete output"):
        find_accesses([str(sides.here / "lines")], UTC)
    session = "from pyspark.sql import SparkSession; spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()"
    for schema in ("", ".schema('principal string')"):
        script = f"import sys; {session}; print(spark.read{schema}.json(sys.argv[2]).limit(1).collect())"
        words = [sys.executable, "-c", script, sides.connected.master, f"{STORE}/here/lines"]
        read = subprocess.run(words, capture_output=True, text=True, check=False)
        assert read.returncode, read.stdout
        assert "CONFLICTING_PARTITION_COLUMN_NAMES" in read.stderr


def test_of_two_jobs_that_begin_in_the_same_moment_none_continues(sides):
    sides.connected.stop(*authorize(sides, "same"), before="aclog.pipeline.server_files:names_in")
    marker = sides.here / "same" / "00-incomplete=1"
    (marker / "part-00000-of-another-job.txt").write_text("aclog\n")
    assert "written by another process while this job ran" in sides.connected.resume().complaint
    assert INCOMPLETE in sides.connected.run(*authorize(sides, "same")).complaint


@of_check_connect
def test_a_table_and_a_query_of_the_server_are_those_of_files(sides):
    session = "from pyspark.sql import SparkSession; SparkSession.builder.remote(sys.argv[1]).getOrCreate()"
    script = f"import sys; {session}.sql(sys.argv[2])"
    create = f"CREATE TABLE bob_accesses USING parquet LOCATION '{STORE}/here/accesses'"
    subprocess.run([sys.executable, "-c", script, sides.connected.master, create], check=True)
    query = f"SELECT * FROM parquet.`{STORE}/here/accesses`"
    more = {"authorize": ("--super-users=",), "usage": ("--days", "1", KNOWN)}
    more["simulate"] = ("--to-acls", sides.here / "fewer.jsonl", KNOWN)
    for command, flags in more.items():
        printed = []
        for number, (process, requests, at) in enumerate(
            (
                (sides.local, ("--requests", sides.here / "accesses"), str(sides.here)),
                (sides.connected, ("--requests", "default.bob"), f"{STORE}/here"),
                (sides.connected, ("--query", query), f"{STORE}/here"),
            )
        ):
            out = f"{at}/{command}-catalog-{number}"
            result = process.run("spark", command, *requests, "--acls", sides.here / "acls.jsonl", *flags, "--out", out)
            printed.append((result.code, shown(result, out)))
        assert printed[0] == printed[1] == printed[2]
        expected, *others = (rows(written_to(sides.here / f"{command}-catalog-{n}"), "") for n in range(3))
        assert any(expected.values())
        assert others == [expected, expected]
    where = ("--requests", "default.none", "--out", f"{STORE}/here/no-table", "--acls", sides.here / "acls.jsonl")
    refused = sides.connected.run("spark", "authorize", *where)
    assert "--requests default.none: no table of a catalog of the server" in refused.complaint


@of_check_connect
def test_files_of_another_job_in_the_output_are_an_error(sides):
    sides.connected.stop(*authorize(sides, "shared"), before="aclog.pipeline.server_files:states", number=1)
    (written,) = (sides.here / "shared").glob("part-*.parquet")
    name = re.sub(r"(?<=-)[0-9a-f]{8}(?=-)", "0" * 8, written.name)
    assert name != written.name
    (sides.here / "shared" / name).write_bytes(written.read_bytes())
    assert "written by another process while this job ran" in sides.connected.resume().complaint
    assert not (sides.here / "shared" / "_SUCCESS").exists()


def test_an_output_that_was_deleted_and_written_by_another_job_is_not_published(sides):
    sides.connected.stop(*authorize(sides, "again"), before="aclog.pipeline.server_files:states", number=1)
    (written,) = (sides.here / "again").glob("part-*.parquet")
    name = re.sub(r"(?<=-)[0-9a-f]{8}(?=-)", "0" * 8, written.name)
    content = written.read_bytes()
    rmtree(sides.here / "again")
    (sides.here / "again").mkdir()
    (sides.here / "again" / name).write_bytes(content)
    assert "written by another process while this job ran" in sides.connected.resume().complaint
    assert [path.name for path in (sides.here / "again").iterdir()] == [name]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("follow", "--requests", "/a", "--log", LOG, "--out", "/b"), "follow with Spark Connect"),
        (("ingest", "/a", "--append", "--out", "/b"), "--append and --follow with Spark Connect"),
        (("ingest", "a", "--out", "/b"), "PATH a: a relative path"),
        (("ingest", "/a", "--out", "b"), "--out b: a relative path"),
        (("ingest", "/a", "--out", "/b[1]"), "--out /b[1]: has '[', which is a part of a pattern"),
        (("ingest", "/a", "--out", "FILE:/b"), "127.0.0.1:{port}: no server of Spark Connect: "),
        (("usage", "--requests", "a", "--log", LOG, "--out", "/b"), "--requests a: a relative path"),
        (("ingest", "/a", "--out", "/b"), "127.0.0.1:{port}: no server of Spark Connect: "),
    ],
)
def test_what_needs_no_server_to_be_refused(command, complaint):
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        refused = aclog("spark", *command, "--master", f"sc://127.0.0.1:{port}")
    assert (refused.code, refused.out) == (2, "")
    assert refused.complaint.startswith(complaint.format(port=port)), refused
