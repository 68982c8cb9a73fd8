"""What `aclog spark` does in every store that Hadoop reads: the contract suite of `test_s3.py` and `test_hdfs.py`."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_log import find_accesses
from tests.pipeline.test_authorize_command import BOB, LOG
from tests.support.cli.command import Result
from tests.support.spark.access_logs import audit_text
from tests.support.spark.command_process import CommandProcess
from tests.support.spark.stores import Store, wait_for_name

COUNT = 50
HOSTS = ("10.0.0.1", "127.0.0.1")
"""Of which a rule denies the second one."""
ROWS = [BOB | {"n": n, "host": HOSTS[n % 2], "timestamp": "2026-11-21T10:00:00Z"} for n in range(COUNT)]


def parquet(table: list[dict[str, Any]]) -> bytes:
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(table), file)
    return file.getvalue()


NAMES = ("payments.eu", "a b", "c")
LOGGED = "".join(f"{audit_text(principal='User:bob', name=name)}\n" for name in NAMES)
INPUTS = {
    "requests.jsonl": "".join(f"{json.dumps(row)}\n" for row in ROWS).encode(),
    "logs/day 1/kafka-authorizer.log": f"{LOGGED}no access\n\n".encode(),
    "accesses/part-0.parquet": parquet(ROWS),
    **{f"node/{LOG.name}/{file.name}": file.read_bytes() for file in LOG.iterdir()},
}
KNOWN = "--no-allow-everyone-if-no-acl-found"
COMMANDS = (
    "history --log {log} --out {out}",
    "ingest {at}/logs --out {out}",
    "authorize --requests {at}/accesses --log {log} --own-time --super-users= --out {out}",
    "authorize --requests {at}/requests.jsonl --log {log} --super-users= --as ocsf --out {out}",
    "authorize --requests {at}/accesses --log {log} --own-time --super-users= --by-day --out {out}",
    "usage --requests {at}/accesses --log {log} --days 1 {known} --out {out}",
    "simulate --requests {at}/accesses --log {log} --as-of 1 --to-log {log} {known} --out {out}",
    "when --log {log} --principal User:bob --operation WRITE --topic payments.eu",
    "suggest --accesses {here}/accesses --log {log} --days 1 {known}",
    "usage-index --accesses {here}/accesses --log {log} --index {index}",
)
"""The commands, by words that are the same on this machine and in the store."""
STORAGE = tuple(f"aclog.pipeline.storage:{name}" for name in ("create", "copy_from_local", "delete"))
"""The steps of a job between which its output changes."""
INCOMPLETE = "the incomplete output of a job"


@frozen(kw_only=True)
class Sides:
    """Two processes for commands, and where their inputs are."""

    one: CommandProcess
    other: CommandProcess
    here: Path
    store: Store

    @property
    def log(self) -> str:
        return f"{self.store.uri}/node/{LOG.name}"

    def at(self, name: str) -> str:
        """The URI of something in the store."""
        return f"{self.store.uri}/{name}"


@contextmanager
def sides_of(store: Store, scratch: Path) -> Iterator[Sides]:
    """Yield the processes, with the inputs in the store and on this machine."""
    here = scratch / "here"
    for name, content in INPUTS.items():
        store.put(name, content)
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(content)
    one, other = (
        CommandProcess(settings=store.settings, environment=store.environment, log=scratch / f"{number}.log")
        for number in range(2)
    )
    try:
        yield Sides(one=one, other=other, here=here, store=store)
    finally:
        one.kill()
        other.kill()


class StorageContract:
    """The tests; a module has a fixture `sides` of its own."""

    @pytest.fixture
    def out(self, request) -> str:
        """The name of an output in the store, of this test alone."""
        return f"{request.function.__name__}-{abs(hash(request.node.name))}"

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_command_gives_what_it_gives_on_files(self, sides, out, command):
        results = []
        for at in (str(sides.here), sides.store.uri):
            index = sides.here / f"{out}-{len(results)}"
            names = {"at": at, "log": f"{at}/node/{LOG.name}", "here": sides.here, "index": index, "out": f"{at}/{out}"}
            names["known"] = KNOWN
            result = sides.one.run("spark", *(word.format_map(names) for word in command.split(" ")))
            results.append((result.code, shown(result, at, str(index))))
        assert results[0] == results[1], results
        assert results[0][0] in {0, 1}, results
        if "{out}" in command:
            local = {path.relative_to(sides.here / out).as_posix(): path for path in files(sides.here / out)}
            expected = rows({name: path.read_bytes() for name, path in local.items()}, f"file:{sides.here}")
            assert stored(sides.store, out) == expected
            assert any(expected.values())
            assert "_SUCCESS" in sides.store.names(out)

    def test_a_stream_takes_each_line_and_each_access_once(self, sides, out):
        at, late = f"{out}/logs", f"{audit_text(principal='User:bob', name='late')}\n".encode()
        sides.store.put(f"{at}/a.log", LOGGED.encode() + b"no access\n")
        ingest = ("spark", "ingest", sides.at(at), "--append", "--out", sides.at(f"{out}/table"))
        follow = ("spark", "follow", "--requests", sides.at(at), "--kind", "kafka-log", "--to-end", "--super-users=")
        follow += ("--log", sides.log, "--out", sides.at(f"{out}/decided"))
        for lines in (b"", late, b""):
            if lines:
                sides.store.put(f"{at}/b.log", lines)
            for command in (ingest, follow):
                assert sides.one.run(*command).code == 0
        tables = {}
        for table in ("table/accesses", "table/rejects", "decided"):
            names = [name for name in sides.store.names(f"{out}/{table}") if name.startswith("batch-")]
            assert len(names) == 2
            read = [pq.read_table(BytesIO(sides.store.read(f"{out}/{table}/{name}"))) for name in names]
            tables[table] = pa.concat_tables(read).to_pylist()
        names = sorted((*NAMES, "late"))
        assert sorted(row["resourceName"] for row in tables["table/accesses"]) == names
        assert [row["line"] for row in tables["table/rejects"]] == ["no access"]
        assert sorted(row["resourceName"] or "" for row in tables["decided"]) == ["", *names]

    @pytest.mark.parametrize("step", ["aclog.pipeline.streams.batches:publish", "aclog.pipeline.storage:exists"])
    def test_of_two_processes_of_a_stream_one_writes_a_batch(self, sides, out, step):
        """The second one repeats the batch that the first one has begun, and both have the rows of it."""
        sides.store.put(f"{out}/logs/a.log", LOGGED.encode())
        job = ("spark", "ingest", sides.at(f"{out}/logs"), "--append", "--out", sides.at(f"{out}/table"))
        # `exists`: of the marker of the stream, twice, then whether the file of the batch is there
        sides.one.stop(*job, before=step, number=2 if step.endswith("exists") else 0)
        assert sides.other.run(*job).code == 0
        complaint = sides.one.resume().complaint
        assert "written by another process" in complaint or "another process continues this stream" in complaint
        assert sides.one.run(*job).code == 0
        (name,) = (name for name in sides.store.names(f"{out}/table/accesses") if name.startswith("batch-"))
        rows = pq.read_table(BytesIO(sides.store.read(f"{out}/table/accesses/{name}"))).to_pylist()
        assert sorted(row["resourceName"] for row in rows) == sorted(NAMES)

    def test_of_two_jobs_one_is_refused(self, sides, out):
        job = ("spark", *authorize(sides, "requests.jsonl", out))
        create, delete = (f"aclog.pipeline.storage:{name}" for name in ("create", "delete"))
        sides.one.stop(*job, before=create)  # it has seen no output
        sides.other.stop(*job, before=delete)  # all files are written
        assert INCOMPLETE in sides.one.resume().complaint
        assert INCOMPLETE in sides.one.run(*job).complaint
        assert sides.other.resume().code == 0
        whole = stored(sides.store, out)
        assert [len(table) for table in whole.values()] == [COUNT]
        assert "exists already" in sides.one.run(*job).complaint
        sides.store.remove(out)
        sides.one.stop(*job, before=create)
        assert sides.other.run(*job).code == 0
        assert "written by another process" in sides.one.resume().complaint
        assert stored(sides.store, out) == whole
        assert "_SUCCESS" in sides.store.names(out)

    @pytest.mark.parametrize(
        ("command", "step"),
        [
            ("authorize", 2),
            *(("ingest", step) for step in (1, 3, 4, 5, 8)),
            *(("usage", step) for step in (5, 9)),
        ],
    )
    def test_a_killed_job_leaves_nothing_that_readers_accept(self, sides, out, tmp_path, command, step):
        job = {
            "authorize": authorize(sides, "requests.jsonl", out),
            "ingest": ("ingest", sides.at("logs"), "--out", sides.at(out)),
            "usage": (
                "usage",
                "--requests",
                sides.at("requests.jsonl"),
                "--log",
                sides.log,
                KNOWN,
                "--out",
                sides.at(out),
            ),
        }[command]
        tables = {"authorize": {"": COUNT}, "ingest": {"accesses": 3, "rejects": 1}, "usage": {"rules": None}}[command]
        sides.one.stop("spark", *job, before=STORAGE, number=step)
        sides.one.kill()
        check_readers(sides, out, tables, tmp_path)
        complaint = sides.other.run("spark", *job).complaint
        assert INCOMPLETE in complaint or "exists already" in complaint

    def test_a_job_that_is_killed_while_it_writes(self, sides, out, tmp_path):
        many = ("--conf", "spark.sql.files.maxPartitionBytes=200", "--conf", "spark.sql.files.openCostInBytes=0")
        process = sides.one.begin("spark", *authorize(sides, "requests.jsonl", out), *many)
        wait_for_name(sides.store, out, "_temporary/", process)
        sides.one.kill()
        check_readers(sides, out, {"": COUNT}, tmp_path)
        sides.store.remove(out)
        assert sides.other.run("spark", *authorize(sides, "requests.jsonl", out)).code == 0
        assert [len(table) for table in stored(sides.store, out).values()] == [COUNT]

    @pytest.mark.parametrize(("mode", "count"), [("overwrite", COUNT), ("append", 2 * COUNT)])
    def test_an_output_that_exists(self, sides, out, tmp_path, mode, count):
        job = ("spark", *authorize(sides, "requests.jsonl", out))
        more = (*job, "--mode", mode)
        assert sides.one.run(*more).code == 0
        assert "exists already" in sides.one.run(*job).complaint
        assert sides.one.run(*more).code == 0
        assert [len(table) for table in stored(sides.store, out).values()] == [count]
        assert "_SUCCESS" in sides.store.names(out)
        sides.one.stop(*more, before="aclog.pipeline.storage:delete")  # all files are written, and none is published
        sides.one.kill()
        check_readers(sides, out, {"": count}, tmp_path)
        assert INCOMPLETE in sides.other.run(*more).complaint

    @pytest.mark.parametrize("change", ["append", "replace"])
    def test_a_file_that_changes_while_it_is_read(self, sides, out, change):
        for command, name, read in (
            ("authorize", "requests.jsonl", "aclog.cli.spark.commands:authorize"),
            ("ingest", "logs/kafka-authorizer.log", "aclog.cli.spark.commands:write"),
        ):
            content = INPUTS["requests.jsonl"] if command == "authorize" else LOGGED.encode()
            source, there = f"{out}/{command}/{name}", f"{out}/{command}-out"
            sides.store.put(source, content)
            job = (
                authorize(sides, source, there)
                if command == "authorize"
                else ("ingest", sides.at(f"{out}/{command}/logs"), "--out", sides.at(there))
            )
            sides.one.stop("spark", *job, before=read)
            if change == "append":
                sides.store.append(source, content)
            else:
                sides.store.replace(source, content.replace(b"User:bob", b"User:eve"))
            result = sides.one.resume()
            assert result.code == 2
            assert "while it was being read, so lines may be missing" in result.complaint
            assert not sides.store.names(there)

    @pytest.mark.parametrize("change", ["append", "replace"])
    def test_a_log_that_changes_while_it_is_copied(self, sides, out, change):
        for name, content in INPUTS.items():
            if name.startswith("node/"):
                sides.store.put(f"{out}/{name}", content)
        file = f"{out}/node/{LOG.name}/partition.metadata"
        content = sides.store.read(file)
        flags = ("--log", sides.at(f"{out}/node/{LOG.name}"), "--out", sides.at(f"{out}/history"))
        sides.one.stop("spark", "history", *flags, before="aclog.pipeline.storage:copy_to_local")
        if change == "append":
            sides.store.append(file, b"\n")
        else:
            sides.store.replace(file, content.swapcase())
        result = sides.one.resume()
        assert result.code == 2
        assert "changed while it was being copied" in result.complaint
        assert not sides.store.names(f"{out}/history")


def authorize(sides: Sides, requests: str, out: str) -> tuple[object, ...]:
    return "authorize", "--requests", sides.at(requests), "--log", sides.log, "--super-users=", "--out", sides.at(out)


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def rows(content: dict[str, bytes], place: str) -> dict[str, list[str]]:
    """The rows of each table of an output, by its name, with the names of input files below `place`."""
    tables: dict[str, list[str]] = {}
    for name, data in content.items():
        directory, _, file = name.rpartition("/")
        if not file.startswith(("part-", "00-")):
            continue
        table = tables.setdefault(directory, [])
        table += (
            [str(row) for row in pq.read_table(BytesIO(data)).to_pylist()]
            if file.endswith(".parquet")
            else data.decode().splitlines()
        )
    return {name: sorted(row.replace(place, "PLACE") for row in table) for name, table in tables.items()}


def stored(store: Store, directory: str) -> dict[str, list[str]]:
    return rows({name: store.read(f"{directory}/{name}") for name in store.names(directory)}, store.uri)


def shown(result: Result, *places: str) -> list[str]:
    """What a command prints, wherever its files are."""
    texts = result.out, result.err
    return [reduce(lambda text, place: text.replace(place, "PLACE"), places, text) for text in texts]


def check_readers(sides: Sides, out: str, tables: dict[str, int | None], copies: Path) -> None:
    """Check that each table of an output is read as a whole or refused, there and in a copy."""
    for name, count in tables.items():
        table = f"{out}/{name}" if name else out
        names = sides.store.names(table)
        if not names:
            continue
        copy = copies / "copy" / name
        for each in names:
            (copy / each).parent.mkdir(parents=True, exist_ok=True)
            (copy / each).write_bytes(sides.store.read(f"{table}/{each}"))
        marked = any(each.startswith("00-incomplete.") for each in names)
        place = f"{out}-usage-{name}"
        if marked:
            with pytest.raises(ConfigError, match="incomplete output"):
                find_accesses([str(copy)], None)
        flags = ("--days", "1", KNOWN, "--out", sides.at(place))
        read = sides.other.run("spark", "usage", "--requests", sides.at(table), "--log", sides.log, *flags)
        rejects = sides.store.names(f"{out}/rejects") if name == "accesses" else []
        if marked or "00-incomplete.parquet" in rejects:  # `usage` reads both tables
            assert INCOMPLETE in read.complaint
            assert not sides.store.names(place)
        elif name in {"", "accesses"}:
            assert re.search(rf"^{count} +read in total$", read.out, re.MULTILINE), read
        else:
            written = sum(map(len, stored(sides.store, table).values()))
            assert written == count or (count is None and written)
