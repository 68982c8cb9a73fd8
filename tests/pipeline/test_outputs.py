"""Outputs in stores of Hadoop: a reader accepts a whole table or fails. The store is a directory behind `viewfs`."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

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
from aclog.cli.spark.flags import DecidedFlags, IngestFlags, UsageFlags
from aclog.cli.spark.spark_session import checked_log
from aclog.metalog.errors import ConfigError, ReplayError
from aclog.metalog.filelog.files import segment_name
from aclog.pipeline import log_copies, outputs, storage
from aclog.pipeline.accesses import read_accesses
from aclog.pipeline.event_form import EventForm
from aclog.pipeline.log_copies import local_log, split
from aclog.pipeline.outputs import ServerOutput, new_output
from aclog.usage.accesses.access_log import INCOMPLETE_PARTITION, find_accesses
from tests.pipeline.test_authorize_command import BOB, LOG
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.spark.access_logs import audit_text


@pytest.fixture
def requests(tmp_path):
    path = tmp_path / "asked.jsonl"
    rows = [BOB | {"n": n, "timestamp": f"2026-11-{n % 9 + 1:02}T00:00:00Z"} for n in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def policy(spark):
    rules, settings = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=False, configs=frozenset())
    return Policy(rules=rules, settings=settings)


def names(directory):
    return sorted(path.name for path in directory.iterdir() if not path.name.endswith(".crc"))


def rows(spark, place):
    return sorted(map(str, spark.read.parquet(str(place)).collect()))


def test_the_rows_are_those_of_a_local_output(spark, tmp_path, lake, requests, policy):
    flags = DecidedFlags(as_=EventForm.OCSF)
    for out in (tmp_path / "here", f"{lake}/out"):
        authorize_command(spark, requests, out, policy, flags)
    there = tmp_path / "lake" / "out"
    assert rows(spark, f"{lake}/out/decided") == rows(spark, tmp_path / "here" / "decided")
    assert spark.read.json(f"{lake}/out/events").count() == 40
    assert names(there) == ["_SUCCESS", "decided", "events"]
    assert not [name for name in names(there / "decided") if not name.startswith(("part-", "_SUCCESS"))]


def test_every_command_writes_to_a_store(spark, tmp_path, lake, requests, policy, capfd):
    history_command(spark, LOG.absolute(), f"{lake}/history")
    history_command(spark, LOG.absolute(), tmp_path / "history")
    assert rows(spark, f"{lake}/history") == rows(spark, tmp_path / "history") != []
    for out in (f"{lake}/usage", tmp_path / "usage"):
        usage_command(spark, requests, out, policy, flags=UsageFlags())
    for table in ("rules", "denied", "holes"):
        assert rows(spark, f"{lake}/usage/{table}") == rows(spark, tmp_path / "usage" / table)
    assert not simulate_command(spark, requests, f"{lake}/same", policy, policy)
    assert rows(spark, f"{lake}/same") == []
    log = tmp_path / "kafka-authorizer.log"
    log.write_text("".join(f"{audit_text(name=name)}\n" for name in "abc") + "no access\n\n")
    capfd.readouterr()
    printed = []
    for out in (f"{lake}/accesses", tmp_path / "accesses"):
        ingest_command(spark, [str(log)], out, IngestFlags())
        printed.append(capfd.readouterr().out)
    assert printed[0] == printed[1]
    for table in ("accesses", "rejects"):
        assert rows(spark, f"{lake}/accesses/{table}") == rows(spark, tmp_path / "accesses" / table) != []
    assert read_accesses(spark, f"{lake}/accesses").count() == 3


def test_what_exists_is_refused(spark, tmp_path, lake, requests, policy):
    (tmp_path / "lake" / "out").mkdir()
    with pytest.raises(ConfigError, match=r"out: exists already"):
        authorize_command(spark, requests, f"{lake}/out", policy)
    (tmp_path / "lake" / "out" / "00-incomplete.parquet").write_text("x")
    with pytest.raises(ConfigError, match=r"out: the incomplete output of a job"):
        authorize_command(spark, requests, f"{lake}/out", policy)
    with pytest.raises(ConfigError, match="No FileSystem for scheme"):
        authorize_command(spark, requests, "nowhere://x/out", policy)


def test_of_two_jobs_one_goes_on(spark, lake, monkeypatch):
    with new_output(spark, f"{lake}/out") as first:
        monkeypatch.setattr(outputs, "check_absent", lambda *_: None)  # both have looked before
        with pytest.raises(ConfigError, match="incomplete output"), new_output(spark, f"{lake}/out"):
            pass
        first.write(spark.range(3))
    assert spark.read.parquet(f"{lake}/out").count() == 3


def test_a_job_publishes_and_deletes_its_own_output_alone(spark, tmp_path, lake):
    out, directory = f"{lake}/out", tmp_path / "lake" / "out"
    for fails in (False, True):
        first = new_output(spark, out)
        writing = first.__enter__()
        shutil.rmtree(directory)  # a user takes it for the output of a job that was killed
        with new_output(spark, out) as second:
            writing.write(spark.range(3))
            if fails:
                assert not first.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
            else:
                with pytest.raises(ConfigError, match="deleted or replaced by another process"):
                    first.__exit__(None, None, None)
            assert names(directory) == ["00-incomplete.parquet"]
            second.write(spark.range(100, 105))
        assert sorted(row.id for row in spark.read.parquet(out).collect()) == list(range(100, 105))
        shutil.rmtree(directory)
    first = new_output(spark, out)
    first.__enter__()
    shutil.rmtree(directory)
    with new_output(spark, out) as second:
        second.write(spark.range(7))
    assert not first.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert spark.read.parquet(out).count() == 7


def test_a_table_with_files_of_another_job_is_not_published(spark, tmp_path, lake):
    out, directory = f"{lake}/out", tmp_path / "lake" / "out"

    def mixed():
        with new_output(spark, out) as output:
            output.write(spark.range(3))
            spark.range(5).write.mode("append").options(**outputs._WRITER).parquet(out)

    with pytest.raises(ConfigError, match=r"part-.*: written by another process"):
        mixed()
    left = names(directory)
    assert left[0] == "00-incomplete.parquet"  # the rest is not ours to delete, and not complete
    assert len(left) > 1
    with pytest.raises(ConfigError, match="if no job writes it any more, delete it"), new_output(spark, out):
        pass


@pytest.mark.parametrize("tables", [{"rules": "parquet"}, {"": "parquet"}])
def test_jobs_with_other_tables_exclude_each_other(spark, tmp_path, lake, monkeypatch, tables):
    out = f"{lake}/out"
    with new_output(spark, out, tables) as first:
        monkeypatch.setattr(outputs, "check_absent", lambda *_: None)  # both have looked before
        with pytest.raises(ConfigError, match="incomplete output"), new_output(spark, out, {"accesses": "parquet"}):
            pass
        first.write(spark.range(3), *(name for name in tables if name))
    before = names(tmp_path / "lake" / "out")
    with pytest.raises(ConfigError, match="written by another process"), new_output(spark, out, {"x": "parquet"}):
        pass
    assert names(tmp_path / "lake" / "out") == before  # still complete


def test_a_failure_to_publish_states_what_is_published(spark, tmp_path, lake, monkeypatch):
    create = storage.create

    def refused(spark, name, content):
        if name.endswith("/b/_SUCCESS"):
            raise ConfigError("the store is down")
        return create(spark, name, content)

    def fail():
        with new_output(spark, f"{lake}/out", dict.fromkeys("abc", "parquet")) as output:
            for table in "abc":
                output.write(spark.range(3), table)
            monkeypatch.setattr(storage, "create", refused)

    with pytest.raises(ConfigError) as error:
        fail()
    out = f"{lake}/out"
    text = f"the store is down; published: {out}/a, {out}/b; not published: {out}/c, {out}"
    assert str(error.value) == text
    for table in "ab":
        assert spark.read.parquet(f"{out}/{table}").count() == 3
    with pytest.raises((PySparkException, Py4JJavaError)):
        spark.read.parquet(f"{out}/c").count()


def test_a_local_output_is_local_whatever_the_default_store(spark, tmp_path, lake):
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    default = configuration.get("fs.defaultFS")
    configuration.set("fs.defaultFS", lake.rsplit("/", 1)[0])
    try:
        with new_output(spark, tmp_path / "a b%20c") as output:
            output.write(spark.range(3))
        assert len(pq.read_table(tmp_path / "a b%20c")) == 3
    finally:
        configuration.set("fs.defaultFS", default)


def test_a_job_that_fails_leaves_nothing(spark, tmp_path, lake):
    def fail():
        with new_output(spark, f"{lake}/out", {"a": "parquet", "b": "json"}) as output:
            output.write(spark.range(3), "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert names(tmp_path / "lake") == []


class KilledError(BaseException):
    """What a process cannot handle that is killed."""


TABLES = {"a": "parquet", "b": "json", "c": "parquet"}
STEPS = 13


def job(spark, out):
    with new_output(spark, out, TABLES) as output:
        output.write(spark.range(30, numPartitions=3), "a")
        output.write(spark.range(20, numPartitions=2), "b")
        output.add(pa.table({"id": list(range(10))}), "c")


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_a_job_that_is_killed_leaves_nothing_that_readers_accept(spark, tmp_path, lake, monkeypatch, step):
    done = 0

    def counted(operation):
        def run(*arguments, **named):
            nonlocal done
            if done >= step:
                raise KilledError
            done += 1
            return operation(*arguments, **named)

        return run

    for name in ("create", "copy_from_local", "delete"):
        monkeypatch.setattr(storage, name, counted(getattr(storage, name)))
    if step == STEPS:
        job(spark, f"{lake}/out")
    else:
        with pytest.raises(KilledError):
            job(spark, f"{lake}/out")
    monkeypatch.undo()
    directory = tmp_path / "lake" / "out"
    copy = tmp_path / "copy"  # as it is brought to a machine without Spark
    if directory.exists():
        shutil.copytree(directory, copy)
    for (table, form), count in zip(TABLES.items(), (30, 20, 10), strict=True):
        marked = any(
            name.startswith("00-incomplete") for name in (names(copy / table) if (copy / table).exists() else ())
        )
        frame = spark.read.schema("id long").format(form)
        if marked:
            with pytest.raises((PySparkException, Py4JJavaError)):
                frame.load(f"{lake}/out/{table}").collect()
            with pytest.raises(ConfigError, match="incomplete output"):
                read_accesses(spark, f"{lake}/out/{table}")
            with pytest.raises(ConfigError, match="incomplete output"):
                find_accesses([str(copy / table)], None)
        elif (directory / table).exists():
            assert frame.load(f"{lake}/out/{table}").count() == count
    assert (directory / "_SUCCESS").exists() == (step == STEPS)


def test_notes_and_errors_name_the_log_in_its_store(spark, tmp_path, lake, capsys):
    log = write_log(tmp_path / "lake" / "log", [acl(1)], [acl(2)])
    segment = log / segment_name(0)
    segment.write_bytes(segment.read_bytes() + b"torn")
    write_log(tmp_path / "lake" / "wrong", [removal(2)])
    with checked_log(spark, f"{lake}/log"):
        pass
    notes = capsys.readouterr().err.splitlines()
    assert notes
    assert all(line.startswith(f"aclog: note: {lake}/log") for line in notes)
    with (
        pytest.raises(ConfigError, match=r"^boom /tmp") as error,
        checked_log(spark, f"{lake}/log") as directory,
    ):
        raise ConfigError(f"boom /tmp, {directory}, {directory.parent}")
    assert str(error.value) == f"boom /tmp, {lake}/log, {lake}"
    with (
        pytest.raises(ReplayError, match=f"^{lake}/wrong: offset 0: ACL"),
        checked_log(spark, f"{lake}/wrong") as directory,
    ):
        history_command(spark, directory, tmp_path / "out")
    with (
        pytest.raises(FileNotFoundError, match=f"'{lake}/log/none'$"),
        checked_log(spark, f"{lake}/log") as directory,
    ):
        (directory / "none").read_bytes()
    with (
        pytest.raises(ConfigError, match=rf"^Spark failed: .*{lake}/log/none\b"),
        checked_log(spark, f"{lake}/log") as directory,
    ):
        spark.read.parquet(str(directory / "none"))
    assert [split(f"hdfs://{name}") for name in ("/a", "host/a", "/a/b")] == [
        ("hdfs:///", "a"),
        ("hdfs://host", "a"),
        ("hdfs:///a", "b"),
    ]
    for root in ("s3a://bucket", "hdfs:///"):
        with pytest.raises(ConfigError, match="the root of a store"):
            split(root)


def test_a_log_in_a_store(spark, tmp_path, lake, policy, monkeypatch):
    shutil.copytree(LOG.parent, tmp_path / "lake" / "node")
    log = f"{lake}/node/{LOG.name}"
    rules, _ = rules_of(spark, SourceFlags(log=log), Settings(), own_time=True, configs=frozenset())
    expected, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=True, configs=frozenset())
    assert rules.table.sort_by("id").equals(expected.table.sort_by("id"))
    rules, _ = rules_of(spark, SourceFlags(log=log), Settings(), own_time=False, configs=frozenset())
    assert rules.table.equals(policy.rules.table)
    with pytest.raises(ConfigError, match="no such directory"), local_log(spark, f"{lake}/none", by_workers=False):
        pass
    with monkeypatch.context() as cluster:
        cluster.setattr(log_copies, "is_here", lambda _: False)
        with local_log(spark, log, by_workers=True) as directory:  # small enough for the driver
            assert directory.name == LOG.name
        cluster.setattr(log_copies, "MOST_BYTES", 1)
        with pytest.raises(ConfigError, match="its path: expected"), local_log(spark, log, by_workers=True):
            pass
    copy = storage.copy_to_local

    def appended(spark, name, target):
        copy(spark, name, target)
        with (tmp_path / "lake" / "node" / LOG.name / "quorum-state").open("a") as file:
            file.write(" ")

    monkeypatch.setattr(storage, "copy_to_local", appended)
    with pytest.raises(ConfigError, match="changed while it was being copied"), local_log(spark, log, by_workers=False):
        pass


# What a server of Spark Connect writes, here by a session of this machine.


@pytest.fixture
def dynamic(spark):
    """The session overwrites only the partitions that have new rows, as many are set to."""
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def left_of_markers(directory):
    return [path for path in directory.rglob(f"{INCOMPLETE_PARTITION}/**/*") if path.is_file()]


@pytest.mark.usefixtures("dynamic")
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_server_that_overwrites_by_partition_publishes_an_output(spark, tmp_path, form):
    tables = {"": form}
    output = ServerOutput(spark=spark, out=str(tmp_path / "out"), forms=tables)
    output.begin()
    assert left_of_markers(tmp_path / "out")
    output.write(spark.range(3))
    output.publish()
    assert left_of_markers(tmp_path / "out") == []
    assert spark.read.format(form).load(str(tmp_path / "out")).count() == 3
    assert "_SUCCESS" in names(tmp_path / "out")


@pytest.mark.usefixtures("dynamic")
def test_no_marker_is_left_in_the_output_of_another_job(spark, tmp_path, monkeypatch):
    out, marking = tmp_path / "out", outputs.write_marker

    def completed(*arguments):
        spark.range(3).write.parquet(str(out))
        marking(*arguments)

    monkeypatch.setattr(outputs, "write_marker", completed)
    with pytest.raises(ConfigError, match="written by another process"):
        ServerOutput(spark=spark, out=str(out)).begin()
    assert left_of_markers(out) == []
    assert spark.read.parquet(str(out)).count() == 3


@pytest.mark.usefixtures("dynamic")
def test_an_output_whose_marker_stays_is_not_reported_as_complete(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "WHOLE", {})  # a server that does not do as the option requires
    output = ServerOutput(spark=spark, out=str(tmp_path / "out"))
    output.begin()
    output.write(spark.range(3))
    with pytest.raises(ConfigError, match=f"{INCOMPLETE_PARTITION}/part-.*: still there"):
        output.publish()
    assert "_SUCCESS" not in names(tmp_path / "out")
