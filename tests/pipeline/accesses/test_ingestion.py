"""Logs taken into a table again and again, as they grow and are rotated: each line is in it once."""

import bz2
import gzip
import json
import multiprocessing
import os
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from aclog.metalog.errors import ConfigError, LockedError
from aclog.pipeline.accesses import ingest, ingestion, read_accesses, write
from aclog.pipeline.accesses.ingestion import Layout, Ledger, LedgerEntry, RejectRateError, append
from aclog.pipeline.usage import rejected_lines
from aclog.usage.accesses import access_log
from aclog.usage.accesses.access_log import check_whole
from tests.support.spark.access_logs import audit_text

DAYS = ("2024-11-20", "2024-11-21", "2024-11-22")


def lines(first, count, day=DAYS[1]):
    return "".join(
        audit_text(name=f"t-{number}").replace("2026-11-21", day) + "\n" for number in range(first, first + count)
    )


def held(out):
    """The topics in the table, and how often each is."""
    table = ds.dataset(out / "accesses", format="parquet").to_table(["resourceName"])
    return Counter(table["resourceName"].to_pylist())


def once(*ranges):
    return Counter({f"t-{number}": 1 for each in ranges for number in each})


@pytest.fixture
def logs(tmp_path):
    place = tmp_path / "broker-1"
    place.mkdir()
    return place


@pytest.fixture
def taking(spark, tmp_path):
    """Append the logs of these places to `out`."""

    def take(*places, kind="kafka-log", columns=None, **limits):
        layout = Layout.of(spark, kind, "UTC", columns)
        with Ledger.open(tmp_path / "out") as ledger:
            return append(spark, [str(place) for place in places or (tmp_path / "broker-1",)], layout, ledger, **limits)

    return take


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_name_with_characters_of_a_glob_is_no_glob(tmp_path, taking, logs, kind):
    row = {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC"}
    names = ["a1", "a[1]", "a{1,2}", "b\\"]
    for number, name in enumerate(names):
        table = pa.Table.from_pylist([row | {"resourceName": f"t-{number}"}])
        write = pq.write_table if kind == "parquet" else csv.write_csv
        write(table, logs / f"{name}.{kind}")
    assert taking(kind=kind).counts.accesses == 4
    assert held(tmp_path / "out") == once(range(4))


@pytest.mark.tier("test")
def test_each_line_once_through_growth_rotation_and_compression(logs, tmp_path, taking, spark):
    out, log = tmp_path / "out", logs / "app.log"
    log.write_text(lines(0, 20, DAYS[0]) + lines(20, 20) + "bad\n" + lines(40, 1)[:50])
    first = taking()
    assert (first.counts.accesses, first.counts.rejects, first.waiting) == (40, {"NO_HEAD": 1}, (str(log),))
    assert (first.whole, first.grown, first.unchanged, first.days) == (1, 0, 0, {DAYS[0]: 1, DAYS[1]: 1})
    assert taking().counts.total == 0
    # the line is finished, more follow, and log4j rotates
    with log.open("a") as file:
        file.write(lines(40, 1)[50:] + lines(41, 9))
    log.rename(logs / "app.log.1")
    log.write_text(lines(50, 10))
    second = taking()
    assert (second.counts.accesses, second.whole, second.grown, second.unchanged) == (20, 1, 1, 0)
    # compressed, beside a copy elsewhere; and logrotate's copytruncate of the other
    data = (logs / "app.log.1").read_bytes()
    (logs / "app.log.2.gz").write_bytes(gzip.compress(data))
    (logs / "copy.bz2").write_bytes(bz2.compress(data))
    (logs / "app.log.1").write_bytes(log.read_bytes() + lines(60, 5).encode())
    log.write_text(lines(65, 3, DAYS[2]))
    third = taking()
    assert (third.counts.accesses, third.whole, third.grown, third.unchanged) == (8, 1, 1, 2)
    assert held(out) == once(range(68))
    assert sorted(path.name for path in (out / "accesses").iterdir()) == [
        *(f"day={day}" for day in DAYS),
        "day=__HIVE_DEFAULT_PARTITION__",
    ]
    table = read_accesses(spark, out)
    assert table.where("day = date'2024-11-22'").count() == 3
    assert table.where("day <> to_date(timestamp)").count() == 0
    assert table.count() == 68
    assert third.watermark == third.sources[str(logs)]
    assert spark.read.parquet(str(out / "rejects")).count() == 1
    assert not (out / "_staging").exists()


def test_files_of_one_run_that_begin_alike_are_taken_once(logs, tmp_path, taking):
    for name, data in (("a.log", lines(0, 9)), ("b.log", lines(0, 9)), ("c.log", lines(0, 12)), ("d.log", "")):
        (logs / name).write_text(data)
    (logs / "e.log.gz").write_bytes(gzip.compress(lines(0, 5).encode()))
    (logs / "f.log.gz").write_bytes(gzip.compress(lines(0, 15).encode().rstrip(b"\n")))
    done = taking()
    assert (done.files, done.whole, done.grown, done.unchanged) == (6, 1, 3, 2)
    assert held(tmp_path / "out") == once(range(15))


def test_watermarks_and_late_files(logs, tmp_path, taking):
    other = tmp_path / "broker-2"
    other.mkdir()
    (logs / "app.log").write_text(lines(0, 3, DAYS[2]))
    (other / "app.log").write_text(lines(10, 3, DAYS[1]))
    first = taking(logs, other)
    assert (first.late, set(first.sources)) == (0, {str(logs), str(other)})
    assert first.watermark == first.sources[str(other)] < first.sources[str(logs)]
    (logs / "app.log.1").write_text(lines(20, 4, DAYS[0]))
    (other / "app.log.1").write_text(lines(30, 2, DAYS[2]))
    second = taking(logs, other)
    assert (second.late, second.days) == (4, {DAYS[0]: 1, DAYS[2]: 1})
    assert second.watermark == first.sources[str(logs)]


def test_a_time_in_the_future_and_a_source_without_times_are_no_watermark(logs, tmp_path, taking):
    other = tmp_path / "broker-2"
    other.mkdir()
    (logs / "app.log").write_text(lines(0, 2, DAYS[0]) + lines(2, 1, "9000-01-01"))
    first = taking(logs)
    assert first.watermark == first.sources[str(logs)] < 1_800_000_000_000_000
    (other / "app.log").write_text("another layout\n")
    second = taking(logs, other)
    assert (second.watermark, second.sources[str(other)], second.late) == (None, None, 0)
    with (other / "app.log").open("a") as file:
        file.write(lines(3, 1, DAYS[0]))
    assert taking(logs, other).watermark == first.watermark


def test_files_that_are_as_they_were_are_not_read_again(logs, tmp_path, taking, monkeypatch):
    log = logs / "app.log"
    log.write_text(lines(0, 9))
    (logs / "old.log.gz").write_bytes(gzip.compress(lines(10, 9).encode()))
    taking()
    log.rename(logs / "app.log.1")
    log.write_text(lines(9, 1))
    opened, names = access_log.opened, []
    monkeypatch.setattr(access_log, "opened", lambda path: names.append(Path(path).name) or opened(path))
    done = taking()
    assert (done.counts.accesses, done.files, done.unchanged) == (1, 3, 2)
    assert set(names) == {"app.log"}
    data = (logs / "app.log.1").read_bytes()
    with (logs / "app.log.1").open("r+b") as file:  # in place, and as long as before
        file.write(data.replace(b"t-0 ", b"t-x "))
    assert taking().counts.accesses == 9


def test_what_is_refused_leaves_the_table_as_it_was(logs, tmp_path, taking, spark):
    out = tmp_path / "out"
    (logs / "app.log").write_text(lines(0, 8))
    taking()
    (logs / "b.log").write_text(lines(8, 2) + "bad\n")
    with pytest.raises(
        RejectRateError, match=r"^1 of 3 lines are rejected, most as NO_HEAD: 33\.33%, above --max"
    ) as no:
        taking(max_reject_rate=0.3)
    assert no.value.counts.rejected == 1
    (logs / "c.log.gz").write_bytes(gzip.compress(lines(0, 500).encode())[:-20])
    with pytest.raises(ConfigError, match=r"c\.log\.gz: cannot be read"):
        taking()
    (logs / "c.log.gz").rename(logs / "c.log.zst")
    with pytest.raises(ConfigError, match=r"c\.log\.zst: cannot be read"):
        taking()
    (logs / "c.log.zst").unlink()
    with Ledger.open(out), pytest.raises(LockedError, match="locked"):
        Ledger.open(out)
    assert held(out) == once(range(8))
    assert taking(max_reject_rate=0.34).counts.accesses == 2
    assert held(out) == once(range(10))
    with pytest.raises(ConfigError, match=r"is a file of the table .*out itself: expected logs elsewhere"):
        taking(tmp_path)
    with Ledger.open(tmp_path / "unused"):
        pass
    assert not (tmp_path / "unused").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"mine: has no _ledger\.db: expected a directory that --append has made"):
        Ledger.open(tmp_path / "mine")
    (tmp_path / "mine" / "_ledger.db").write_bytes(b"no database" * 400)
    with pytest.raises(ConfigError, match=r"_ledger\.db: cannot be opened"):
        Ledger.open(tmp_path / "mine")


def test_a_log_that_is_rotated_or_grows_meanwhile(logs, tmp_path, taking, monkeypatch):
    log = logs / "app.log"
    log.write_text(lines(0, 30))
    opened = Ledger.latest

    def grow():
        with log.open("a") as file:
            file.write(lines(30, 5))

    def rotate():
        log.rename(logs / "app.log.1")
        log.write_text(lines(40, 1))

    actions = [grow, rotate]

    def after_the_listing(ledger):
        actions.pop(0)()
        return opened(ledger)

    monkeypatch.setattr(Ledger, "latest", after_the_listing)
    assert taking().counts.accesses == 30
    with log.open("a") as file:
        file.write(lines(35, 5))
    with pytest.raises(ConfigError, match=r"app\.log: (replaced by another file|truncated|renamed or removed) while"):
        taking()
    monkeypatch.undo()
    assert taking().counts.accesses == 11
    assert held(tmp_path / "out") == once(range(41))


def test_tables_are_known_as_a_whole(spark, logs, tmp_path, taking):
    row = {"principal": "User:a", "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t-0"}
    head = ",".join(row)
    (logs / "a.csv").write_text("\n".join([head, ",".join(row.values()), ""]))
    assert taking(kind="csv").counts.accesses == 1
    (logs / "copy.csv.gz").write_bytes(gzip.compress((logs / "a.csv").read_bytes()))
    (logs / "b.csv").write_text("\n".join([head, ",".join({**row, "resourceName": "t-1"}.values()), ""]))
    done = taking(kind="csv")
    assert (done.counts.accesses, done.whole, done.unchanged, done.watermark) == (1, 1, 2, None)
    assert held(tmp_path / "out") == once(range(2))


def staged(out):
    """An append that is about to be committed: two files of data, one of each table."""
    place = out / "_staging" / "abcd"
    for name in ("accesses/day=2024-11-21/a.parquet", "rejects/a.parquet"):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_bytes(name.encode())
    return LedgerEntry(
        parts=[],
        files={
            "_staging/abcd/accesses/day=2024-11-21/a.parquet": "accesses/day=2024-11-21/00000001-a.parquet",
            "_staging/abcd/rejects/a.parquet": "rejects/00000001-a.parquet",
        },
        latest={"/logs": 7},
        accesses=1,
        rejected=1,
        late=0,
        at=0,
    )


def commit_until(out, step):
    """Commit in this process, which ends at once before the step of this number."""
    left = [step]

    def counted(function):
        def run(*arguments, **options):
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            return function(*arguments, **options)

        return run

    with Ledger.open(out) as ledger:
        for owner, name in ((Path, "rename"), (Path, "mkdir"), (ingestion, "fsync_directory"), (shutil, "rmtree")):
            setattr(owner, name, counted(getattr(owner, name)))
        ledger._database.set_trace_callback(counted(lambda statement: None))
        ledger.commit(staged(out))
    os._exit(0)


@pytest.mark.process
def test_a_kill_at_any_step_of_a_commit_loses_and_doubles_nothing(tmp_path):
    fork, codes, outcomes = multiprocessing.get_context("fork"), [], set()
    for step in range(100):
        out = tmp_path / str(step)
        child = fork.Process(target=commit_until, args=(out, step))
        child.start()
        child.join()
        codes.append(child.exitcode)
        with Ledger.open(out) as ledger:
            committed = ledger.next_number() == 2
            assert ledger.latest() == ({"/logs": 7} if committed else {})
        outcomes.add(committed)
        names = sorted(str(path.relative_to(out)) for path in out.rglob("*.parquet"))
        assert names == (
            ["accesses/day=2024-11-21/00000001-a.parquet", "rejects/00000001-a.parquet"] if committed else []
        )
        assert check_whole(out) == committed
        if child.exitcode == 0:
            break
    assert codes[-1] == 0
    assert outcomes == {True, False}
    assert len(codes) > 10


@pytest.mark.parametrize("swap", ["emptied", "older"])
def test_a_ledger_that_does_not_know_its_table_takes_nothing(tmp_path, swap):
    out = tmp_path / "out"
    with Ledger.open(out) as ledger:
        older = (out / "_ledger.db").read_bytes()
        ledger.commit(staged(out))
    kept = out / "accesses/day=2024-11-21/00000001-a.parquet"
    before = kept.read_bytes()
    (out / "_ledger.db").write_bytes(older if swap == "older" else b"")

    def again():
        with Ledger.open(out) as ledger:
            taken = staged(out)
            for path in (out / "_staging").rglob("*.parquet"):
                path.write_bytes(b"another")
            ledger.commit(taken)

    with pytest.raises(ConfigError, match=r"_ledger\.db: (is empty|is older than the table)"):
        again()
    assert kept.read_bytes() == before
    if swap == "older":
        with Ledger.open(out) as ledger:
            assert ledger.next_number() == 1


def test_a_table_is_not_read_while_files_are_being_moved(spark, logs, tmp_path, taking):
    (logs / "app.log").write_text(lines(0, 3))
    taking()
    out = tmp_path / "out"
    with Ledger.open(out) as ledger, ledger._database as database:
        database.execute("UPDATE appends SET placed = 0")
    for place in (out, out / "accesses"):
        with pytest.raises(ConfigError, match="out: an append is unfinished"):
            read_accesses(spark, place)
    taking()
    assert read_accesses(spark, out).count() == 3


def test_packed_files_of_every_kind_are_read(logs, tmp_path, taking, spark):
    """Taken as they grow, and as a whole."""
    with zipfile.ZipFile(logs / "a.log.zip", "w") as archive:
        archive.writestr("kafka-authorizer.log", lines(0, 3))
    (logs / "b.log.zst").write_bytes(pa.compress(lines(3, 3).encode(), codec="zstd", asbytes=True))
    (logs / "c.log.1").write_bytes(gzip.compress(lines(6, 3).encode()))
    taking()
    write(ingest(spark, logs, "kafka-log"), tmp_path / "whole")
    for out in (tmp_path / "out", tmp_path / "whole"):
        assert held(out) == once(range(9)), out
    (logs / "b.log.zst").write_bytes((logs / "b.log.zst").read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"b\.log\.zst: not a complete packed file"):
        write(ingest(spark, logs, "kafka-log"), tmp_path / "damaged")


@pytest.mark.parametrize("kind", ["kafka-log", "jsonl"])
def test_a_line_that_is_too_long_is_a_reject(logs, tmp_path, taking, spark, kind):
    """Appended, and taken as a whole: of 17 MiB, though each of them could be parsed."""
    if kind == "jsonl":
        fields = {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC"}
        texts = [
            json.dumps(fields | {"resourceName": f"t-{number}", "x": "y" * size}) for number, size in enumerate(SIZES)
        ]
    else:
        texts = [audit_text(name=f"t-{number}" + "y" * size) for number, size in enumerate(SIZES)]
    (logs / "kafka-authorizer.log").write_text("\n".join(texts) + "\n")
    taking(kind=kind)
    write(ingest(spark, logs, kind), tmp_path / "whole")
    for out in (tmp_path / "out", tmp_path / "whole"):
        assert held(out) == once((0, 2))
        (reject,) = ds.dataset(out / "rejects", format="parquet").to_table().to_pylist()
        assert (reject["reason"], reject["detail"]) == ("TOO_LONG", "longer than 16 MiB: not read")
        assert reject["file"].endswith("broker-1/kafka-authorizer.log")
        assert rejected_lines(spark, str(out)).by_reason() == {"TOO_LONG": 1}


SIZES = (0, 17 << 20, 0)
