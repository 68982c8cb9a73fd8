"""Counting in processes says the same as counting in one, and what goes wrong in one is told."""

import json
from datetime import UTC
from functools import partial
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.usage import counting
from aclog.usage.accesses.access_log import TablePart, find_accesses
from aclog.usage.accesses.parquet import parquet_parts
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import AclIntervals
from aclog.usage.judging import HowToCount, count_log, each_in_processes
from aclog.usage.window import DAY, Window, of_micros
from tests.support.builders import acls
from tests.support.builders.images import with_ids
from tests.support.spark.access_logs import audit_text
from tests.usage.decisions.test_bulk_authorizer import Interval, table_of

WINDOW = Window.ending(of_micros(20 * DAY), 10)


def files(directory, count=4, rows=300) -> list[str]:
    random = Random(1)
    paths = []
    for number in range(count):
        texts = [
            (random.choice(["User:a", "User:b"]), "127.0.0.1", "READ", "TOPIC", f"t{random.randrange(9)}")
            for _ in range(rows)
        ]
        times = pa.array([random.randrange(25 * DAY) for _ in range(rows)], pa.timestamp("us", tz="UTC"))
        columns = [pa.array(column, pa.string()) for column in zip(*texts, strict=True)]
        paths.append(str(directory / f"{number}.parquet"))
        table = pa.table([*columns, times], names=[*REQUEST_COLUMNS, "timestamp"])
        pq.write_table(table, paths[-1], row_group_size=100)
    return paths


def parts_of(paths, most) -> list[TablePart]:
    return [TablePart(table=part, zone=UTC) for part in parquet_parts(paths, most)]


def intervals() -> AclIntervals:
    rules = with_ids([acls.acl("t1", "User:a"), acls.acl("t2", "User:a")])
    times = [(None, None), (15 * 86_400_000, 18 * 86_400_000)]
    return AclIntervals.of_table(table_of([Interval(rule, *span) for rule, span in zip(rules, times, strict=True)]))


def rows_of(counted) -> list:
    return sorted(map(str, counted.accesses.to_pylist()))


@pytest.mark.parametrize("own_time", [False, True])
@pytest.mark.process
def test_processes_say_the_same_as_one(monkeypatch, tmp_path, own_time):
    how = partial(HowToCount, intervals=intervals(), settings=Settings(), own_time=own_time, window=WINDOW)
    parts = parts_of(files(tmp_path), 5)
    done = []
    one = count_log(parts, how(), partial(each_in_processes, workers=1), counted=done.append)
    assert sum(done) == one.rows.total == 1200
    assert one.rows.outside > 0
    assert sum(one.accesses.column("count").to_pylist()) == one.rows.total - one.rows.outside
    two = count_log(parts, how(), partial(each_in_processes, workers=2), counted=lambda _: None)
    assert (two.rows, two.days, rows_of(two)) == (one.rows, one.days, rows_of(one))
    monkeypatch.setattr(counting, "_MOST_HELD", 0)  # every batch is told by itself
    small = count_log(
        parts_of(sorted(map(str, tmp_path.iterdir())), 1),
        how(),
        partial(each_in_processes, workers=1),
        counted=lambda _: None,
    )
    assert (small.rows, small.days, rows_of(small)) == (one.rows, one.days, rows_of(one))
    by_day = count_log(parts, how(by_day=True), partial(each_in_processes, workers=1), counted=lambda _: None)
    assert sum(by_day.accesses.column("count").to_pylist()) == one.rows.total - one.rows.outside
    assert set(by_day.accesses.column("day").to_pylist()) == set(range(10, 20))


def test_no_parts(tmp_path):
    how = HowToCount(intervals=intervals(), settings=Settings(), own_time=False)
    counted = count_log([], how, partial(each_in_processes, workers=4), counted=lambda _: None)
    assert (len(counted.accesses), counted.rows.total, counted.days) == (0, 0, frozenset())


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.process)])
def test_a_damaged_file_is_told(tmp_path, workers):
    paths = files(tmp_path, count=2)
    parts = parts_of(paths, 6)
    files(tmp_path, count=1, rows=7)  # the first of them is another file now
    how = HowToCount(intervals=intervals(), settings=Settings(), own_time=False)
    with pytest.raises(ConfigError, match=r"0\.parquet: replaced by another file"):
        count_log(parts, how, partial(each_in_processes, workers=workers), counted=lambda _: None)


def denials_only(directory, texts) -> bool:
    (directory / "log").write_text("".join(f"{text}\n" for text in texts))
    how = HowToCount(intervals=intervals(), settings=Settings(), own_time=False, window=WINDOW)
    parts = find_accesses([str(directory / "log")], UTC).parts
    return count_log(parts, how, partial(each_in_processes, workers=1), counted=lambda _: None).rows.is_denials_only


def test_denials_alone_are_noticed_without_coverage_and_outside_of_the_window(tmp_path):
    denial = audit_text(name="orders")
    assert denials_only(tmp_path, [denial, denial])
    assert not denials_only(tmp_path, [denial, denial.replace("is Denied", "is Allowed")])
    assert not denials_only(tmp_path, [])


def test_denials_without_a_time_are_denials(tmp_path):
    access = {**dict.fromkeys(REQUEST_COLUMNS, "READ"), "timestamp": "2026-11-21T10:00:00Z", "loggedDecision": "DENIED"}
    timeless = {**access, "timestamp": None}
    assert denials_only(tmp_path, map(json.dumps, [access, timeless]))
    assert not denials_only(tmp_path, map(json.dumps, [access, {**timeless, "loggedDecision": None}]))
