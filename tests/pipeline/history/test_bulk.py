"""The history that the driver computes in columns is that of Spark's windows, row by row, and so are its errors."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog.files import segment_name
from aclog.metalog.records import NoOpRecord
from aclog.pipeline.history import bulk
from aclog.pipeline.history.bulk import BulkLog
from aclog.pipeline.history.intervals import (
    COLUMNS,
    contradiction,
    first_pass,
    history,
    interval_table,
    intervals,
    intervals_or_table,
    placed_events,
    rules_of,
)
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.pipeline.history.test_intervals import ABORT, BEGIN, CONTRADICTIONS, END, FIXTURES, random_log
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal
from tests.support.spark.history_check import states

DATA = Path(__file__).parents[2] / "data"
pytestmark = pytest.mark.usefixtures("quick_session", "small_ranges")


def both_ways(spark, monkeypatch, directory):
    """The table by the driver, after comparing it with what Spark's workers and windows give."""
    log_pass = first_pass(spark, directory)
    assert isinstance(log_pass, BulkLog)
    timed, placed = interval_table(spark, directory), log_pass.placed()
    frame = intervals(spark, directory)
    shown = history(spark, directory)
    with monkeypatch.context() as patch:
        patch.setattr(bulk, "MOST_BYTES", -1)
        windows = intervals(spark, directory)
        assert kinds(frame) == kinds(windows)
        assert shown.columns == list(COLUMNS)
        expected = rules_of_windows(spark, directory)
        assert in_order(timed) == in_order(windows.toArrow())
        assert in_order(placed) == in_order(expected)
    return timed


def kinds(frame):
    """The columns without their nullability, which Spark derives from how it computes them."""
    return [(each.name, each.dataType) for each in frame.schema]


def rules_of_windows(spark, directory):
    log_pass = first_pass(spark, directory)
    return rules_of(placed_events(log_pass), log_pass.name, F.lit(True)).toArrow()


def in_order(table):
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert [column.type for column in table.columns] == [
        *[pa.string()] * 8,
        pa.int64(),
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.int64(),
        pa.int64(),
    ]
    return sorted(rows, key=str)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.tier("test")) if name == "kafka-4.3.1-small" else name for name in FIXTURES],
)
def test_fixtures(spark, monkeypatch, name):
    both_ways(spark, monkeypatch, DATA / name / "__cluster_metadata-0")


@pytest.mark.parametrize("seed", range(4))
def test_random_logs(spark, monkeypatch, tmp_path, seed):
    table = both_ways(spark, monkeypatch, random_log(tmp_path / "log", seed, 300))
    assert table.column("removed_offset").null_count < len(table)


def test_a_log_that_begins_at_a_checkpoint(spark, monkeypatch, tmp_path):
    whole = random_log(tmp_path / "whole", 11, 120)
    history_of = states(whole)
    start = history_of[70][2]
    (tmp_path / "short").mkdir()
    write_checkpoint(start, tmp_path / "short")
    data = (whole / segment_name(0)).read_bytes()
    cut = next(base for base, _, _ in history_of if base > start.end_offset - 20)
    position = next(at for at, header in iter_batches(data) if header.base_offset == cut)
    (tmp_path / "short" / segment_name(cut)).write_bytes(data[position:])
    table = both_ways(spark, monkeypatch, tmp_path / "short")
    seen = table.column("first_seen_offset")
    assert 0 < seen.null_count < len(table)
    assert table.column("added_at").null_count == len(table) - seen.null_count


def test_transactions_and_times_that_decrease(spark, monkeypatch, tmp_path):
    log = write_log(
        tmp_path,
        [acl(1), BEGIN, acl(2)],
        [acl(3)],
        [removal(2), END, acl(4), BEGIN, acl(1), removal(7)],
        [ABORT, acl(5)],
        [removal(5)],
        [acl(5), removal(5), acl(5)],
        [BEGIN, acl(6), acl(7, name="1"), acl(1)],
        times=[1000, 5000, 3000, 2000, 6000, 4000, 9000],
    )
    both_ways(spark, monkeypatch, log)


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_contradiction_is_an_error_at_once_and_the_appliers(spark, tmp_path, case):
    log = write_log(tmp_path, [acl(90)], *case(1), [acl(91), removal(90), removal(90)])
    with pytest.raises(ReplayError) as appliers:
        recover(log)
    with pytest.raises(ReplayError) as ours:
        intervals(spark, log)
    assert str(ours.value) == str(appliers.value) == str(contradiction(spark, log))


@pytest.mark.parametrize("batches", [[[acl(1)], [acl(1)], [END]], [[acl(1)], [BEGIN, acl(1)], [BEGIN]]])
def test_a_marker_out_of_place(spark, tmp_path, batches):
    log = write_log(tmp_path, *batches)
    with pytest.raises(ReplayError) as appliers:
        recover(log)
    with pytest.raises(ReplayError) as ours:
        intervals(spark, log)
    assert str(ours.value) == str(appliers.value)


def test_codes_without_a_name_are_compared_as_codes(spark, tmp_path):
    log = write_log(tmp_path / "good", [acl(1, name="t", resource_type=98)], [acl(2, name="t", resource_type=99)])
    assert interval_table(spark, log).column("resourceType").to_pylist() == ["UNKNOWN", "UNKNOWN"]
    log = write_log(tmp_path / "bad", [acl(1, name="t", resource_type=99)], [acl(2, name="t", resource_type=99)])
    with pytest.raises(ReplayError, match=r"offset 1: ACL .* is the same as ACL"):
        interval_table(spark, log)


def test_a_log_without_acls(spark, monkeypatch, tmp_path):
    assert not len(both_ways(spark, monkeypatch, write_log(tmp_path, [NoOpRecord()])))


def test_damage_and_a_missing_log(spark, tmp_path):
    log = write_log(tmp_path / "log", [acl(1)], [acl(2)], [acl(3)])
    damage(log / segment_name(0))
    with pytest.raises(DecodeError, match=f"{log}.*: CRC mismatch"):
        interval_table(spark, log)
    with pytest.raises(LogError, match="no such file or directory"):
        interval_table(spark, tmp_path / "nowhere")


def test_the_size_of_a_log_decides(spark, monkeypatch, tmp_path):
    log = write_log(tmp_path, *([acl(n)] for n in range(Random(1).randint(5, 9))))
    size = (log / segment_name(0)).stat().st_size
    monkeypatch.setattr(bulk, "MOST_BYTES", size)
    assert isinstance(intervals_or_table(spark, log), pa.Table)
    monkeypatch.setattr(bulk, "MOST_BYTES", size - 1)
    assert not isinstance(intervals_or_table(spark, log), pa.Table)
