"""Streams of accesses that are decided: each once, by the ACLs of its own time, through restarts."""

import json
from datetime import UTC, datetime
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.pipeline import storage
from aclog.pipeline.log_copies import growing_log
from aclog.pipeline.streams.batches import stream_output
from aclog.pipeline.streams.decisions import DecidedStream
from aclog.pipeline.streams.sources import AccessStream
from aclog.usage.rules import FollowedRules
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.spark.session import finished, settings

BATCHES, TIMES = [[acl(1, name="t", principal="User:a")], [acl(2)], [removal(1)]], [10_000, 20_000, 30_000]
REQUEST = {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}


def line(number, time):
    return json.dumps(REQUEST | {"timestamp": time, "request": str(number)}) + "\n"


def run(spark, tmp_path, followed, *, lost_within=None, source="in", read_log=lambda: None):
    """Decide all that is there; the batches that are reported."""
    reported = []
    accesses = AccessStream.of(spark, str(tmp_path / source))
    with stream_output(spark, tmp_path / "out", None, {"requests": source}) as output:
        stream = DecidedStream(
            spark=spark, accesses=accesses, followed=followed, output=output, report=reported.append,
            lost_within=lost_within, read_log=read_log,
        )  # fmt: skip
        try:
            finished(lambda: stream.start(to_end=True))
        except StreamingQueryException as error:
            raise stream.error or error from error
    return reported


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def written(tmp_path):
    """The decision of each access, which must occur once."""
    rows = [row for path in sorted((tmp_path / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    by_number = {row["request"]: row["decision"] for row in rows}
    assert len(by_number) == len(rows)
    return by_number


@pytest.mark.tier("test")
def test_each_access_is_decided_once_by_the_acls_of_its_time(spark, tmp_path):
    log = write_log(tmp_path / "log", *BATCHES[:2], times=TIMES)
    followed = FollowedRules.of(log, Settings())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(line(1, 10_000) + line(2, 9_999) + "no access\n" + line(3, 25_000))
    (first,) = run(spark, tmp_path, followed)
    assert dict(first.decisions) == {"ALLOWED": 2, "DENIED": 0, "ERROR": 2}
    assert set(first.reasons) == {"not a request", "the log does not reach back to the time of the access"}
    assert first.ahead == 1, "later than the log"
    write_log(tmp_path / "log", *BATCHES, times=TIMES)  # it grows, while the stream runs or between its runs
    # late: an access of the first day is decided by the ACLs of the first day
    (tmp_path / "in" / "2.jsonl").write_text(line(4, 15_000) + line(5, 30_000) + line(6, 50_000))
    (second,) = run(spark, tmp_path, followed, lost_within=None)
    assert (second.number, second.total, second.ahead) == (1, 3, 1)
    assert (second.earliest.timestamp(), second.latest.timestamp()) == (15, 50)
    decisions = {
        "1": "ALLOWED",
        "2": "ERROR",
        None: "ERROR",
        "3": "ALLOWED",
        "4": "ALLOWED",
        "5": "DENIED",
        "6": "DENIED",
    }
    assert written(tmp_path) == decisions
    # killed after a batch was published, and before that: the batch is repeated, its rows are not
    commits, (last,) = tmp_path / "out" / "_checkpoint" / "commits", (tmp_path / "out").glob("batch-*1.parquet")
    published = last.read_bytes()
    for is_lost in (False, True):
        (commits / "1").unlink()
        (commits / ".1.crc").unlink(missing_ok=True)
        if is_lost:
            last.unlink()
        staged = tmp_path / "out" / "_staging" / "rows-1-0"
        staged.mkdir(parents=True)
        assert [batch.number for batch in run(spark, tmp_path, FollowedRules.of(log, Settings()))] == [1]
        assert written(tmp_path) == decisions
        assert is_lost or last.read_bytes() == published
        assert not staged.exists()


def test_files_of_all_names_but_markers_are_read(spark, tmp_path):
    """Also of those that are the beginning of a marker's name, as of the hour 00."""
    followed = FollowedRules.of(write_log(tmp_path / "log", *BATCHES, times=TIMES), Settings())
    (tmp_path / "in").mkdir()
    names = ["0", "00", "00-15.log", "00-incomplete", "00-incompletely.log", "01", "a"]
    for name in names:
        (tmp_path / "in" / name).write_text(line(name, 15_000))
    accesses = AccessStream.of(spark, str(tmp_path / "in"))
    (tmp_path / "in" / "00-incomplete.json.gz").write_text("no gzip")
    with stream_output(spark, tmp_path / "out", None, {}) as output:
        stream = DecidedStream(spark=spark, accesses=accesses, followed=followed, output=output, report=lambda _: None)
        finished(lambda: stream.start(to_end=True))
    assert sorted(written(tmp_path)) == names


def test_a_batch_is_one_file(spark, tmp_path):
    followed = FollowedRules.of(write_log(tmp_path / "log", *BATCHES, times=TIMES), Settings())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text("".join(line(number, 15_000) for number in range(5)))
    with settings(spark, {"spark.sql.files.maxRecordsPerFile": "2"}):
        run(spark, tmp_path, followed)
    assert len(written(tmp_path)) == 5


def test_a_column_in_names_of_directories_is_text(spark, tmp_path):
    followed = FollowedRules.of(write_log(tmp_path / "log", *BATCHES, times=TIMES), Settings())
    names = {name: value for name, value in REQUEST.items() if name != "resourceName"}
    for name in ("007", "1e3"):
        place = tmp_path / "in" / f"resourceName={name}"
        place.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([names | {"timestamp": 15_000}]), place / "1.parquet")
    run(spark, tmp_path, followed)
    (path,) = (tmp_path / "out").glob("*.parquet")
    assert sorted(pq.read_table(path).column("resourceName").to_pylist()) == ["007", "1e3"]


def test_tables_in_directories_are_read(spark, tmp_path):
    """Of any depth, also if the first one is added later."""
    followed = FollowedRules.of(write_log(tmp_path / "log", *BATCHES, times=TIMES), Settings())
    for number, name in enumerate((".", "broker-1", "broker-2/old")):
        place = tmp_path / "in" / name
        place.mkdir(parents=True)
        rows = [REQUEST | {"timestamp": 15_000, "request": str(number)}]
        pq.write_table(pa.Table.from_pylist(rows), place / "1.parquet")
        run(spark, tmp_path, followed)
    assert sorted(written(tmp_path)) == ["0", "1", "2"]


def test_lost_permissions_of_parquet_files(spark, tmp_path, capsys):
    """All columns are kept; an access that was allowed within a period before is listed, with the change."""
    followed = FollowedRules.of(write_log(tmp_path / "log", *BATCHES, times=TIMES), Settings())
    times = [29_999, 30_000, 30_500, 89_999, 90_000]
    rows = [REQUEST | {"timestamp": time, "request": str(time), "a.b": time} for time in times]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / "1.parquet")
    (batch,) = run(spark, tmp_path, followed, lost_within=60_000)
    ((*who, at, accesses),) = batch.lost
    assert who == ["User:a", "READ", "TOPIC", "t"]
    assert (at.timestamp(), accesses) == (30, 3)
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path).sort_by("timestamp").to_pylist()
    assert [row["a.b"] for row in table] == times
    at = datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert [row["lost_at"] for row in table] == [None, at, at, at, None]


def test_accesses_without_a_time_are_refused(spark, tmp_path):
    followed = FollowedRules.of(write_log(tmp_path / "log", *BATCHES, times=TIMES), Settings())
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist([REQUEST]), tmp_path / "in" / "1.parquet")
    with pytest.raises(ConfigError, match="no column 'timestamp'"):
        run(spark, tmp_path, followed)
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_a_stream_needs_files_and_lines(spark, tmp_path):
    with pytest.raises(ConfigError, match="takes its columns from a file"):
        AccessStream.of(spark, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="expected kafka-log, events-jsonl, jsonl, or no --kind"):
        AccessStream.of(spark, str(tmp_path), kind="csv")
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist([REQUEST]), tmp_path / "in" / "1.parquet")
    for how in ({"timezone": "Europe/Berlin"}, {"columns": {"principal": "who"}}):
        with pytest.raises(ConfigError, match="--timezone and --column are of lines, and these are files of parquet"):
            AccessStream.of(spark, str(tmp_path / "in"), **how)
    with pytest.raises(ConfigError, match="expected --packages org"):
        AccessStream.of(spark, "kafka://localhost:9092/accesses")
    with pytest.raises(ConfigError, match="expected kafka://HOST:PORT"):
        AccessStream.of(spark, "kafka://localhost:9092")


def test_a_log_in_another_store_is_read_again_when_it_has_changed(spark, tmp_path, lake):
    """The accesses of each batch are decided by the log of then, with which its copy is equal."""
    log = write_log(tmp_path / "lake" / "log", *BATCHES[:2], times=TIMES)
    (log / "old.snapshot").touch()
    (tmp_path / "in").mkdir()
    with growing_log(spark, f"{lake}/log") as growing:
        assert contents(growing.directory) == contents(log)
        followed = FollowedRules.of(growing.directory, Settings())
        (log / "old.snapshot").unlink()
        write_log(log, *BATCHES, times=TIMES)
        assert not followed.update()
        growing.update()
        assert contents(growing.directory) == contents(log)
        assert followed.update()
        (tmp_path / "in" / "1.jsonl").write_text(line(1, 29_999) + line(2, 30_000))
        write_log(log, *BATCHES, [acl(1, name="t", principal="User:a")], times=[*TIMES, 30_000])
        run(spark, tmp_path, followed, read_log=growing.update)
        assert written(tmp_path) == {"1": "ALLOWED", "2": "ALLOWED"}
        # changed while it is copied: again, but not for ever
        copy, changes = storage.copy_to_local, [2, 100]
        for times in changes:
            left = [times]

            def changing(*arguments, left=left):
                copy(*arguments)
                if left[0]:
                    left[0] -= 1
                    (log / f"added-{left[0]}").touch()

            (log / "new").write_text(str(times))
            with mock.patch.object(storage, "copy_to_local", changing):
                if times > 2:
                    with pytest.raises(ConfigError, match="changed while it was being copied"):
                        growing.update()
                else:
                    growing.update()
                    assert contents(growing.directory) == contents(log)
    with pytest.raises(ConfigError, match="no such directory"), growing_log(spark, f"{lake}/none"):
        pass


class TestOutput:
    """An output and a checkpoint of one stream."""

    def opened(self, spark, tmp_path, out="out", checkpoint=None, requests="in"):
        with stream_output(spark, tmp_path / out, checkpoint, {"requests": requests}) as output:
            return output.token

    def test_it_is_continued_only_as_the_same_stream(self, spark, tmp_path):
        token = self.opened(spark, tmp_path)
        assert self.opened(spark, tmp_path) == token
        with pytest.raises(ConfigError, match="with requests in, not other"):
            self.opened(spark, tmp_path, requests="other")
        with pytest.raises(ConfigError, match="of a stream whose output is not"):
            self.opened(spark, tmp_path, out="new", checkpoint=tmp_path / "out" / "_checkpoint")
        self.opened(spark, tmp_path, out="second")
        with pytest.raises(ConfigError, match="the checkpoint of another stream"):
            self.opened(spark, tmp_path, checkpoint=tmp_path / "second" / "_checkpoint")

    def test_a_new_checkpoint_does_not_continue_an_output(self, spark, tmp_path):
        self.opened(spark, tmp_path)
        (tmp_path / "out" / "batch-000000000000.parquet").touch()
        with pytest.raises(ConfigError, match="is not the output of the stream with the checkpoint"):
            self.opened(spark, tmp_path, checkpoint=tmp_path / "elsewhere")

    def test_another_directory_is_refused(self, spark, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").touch()
        with pytest.raises(ConfigError, match="has mine: expected the output of a stream"):
            self.opened(spark, tmp_path)
        with pytest.raises(ConfigError, match="no such directory"):
            self.opened(spark, tmp_path, out="a/b")
