"""The history of ACLs by Spark, checked against the applier at every offset and every time."""

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from pyspark.errors import PySparkException

from aclog.authorizer.settings import Settings
from aclog.metalog.batches import build_batch, iter_batches
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import CheckpointError, LogError, ReplayError
from aclog.metalog.filelog.files import segment_name
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from aclog.pipeline.history.intervals import contradiction, contradictions, history, intervals, known_from
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.history import ChangeKind
from aclog.snapshots.history import history as replayed
from aclog.snapshots.publisher import recover
from aclog.usage.decisions.intervals import ALWAYS, FOREVER, RULE_COLUMNS
from aclog.usage.rules import deciding_rules_of_log
from tests.support.builders.random_log import RandomLog
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal
from tests.support.spark.history import decoded_log
from tests.support.spark.history_check import check_offsets, check_recovered, check_times, states
from tests.support.spark.versions import pushdown

DATA = Path(__file__).parents[2] / "data"
FIXTURES = sorted(path.parent.name for path in DATA.glob("*/__cluster_metadata-0"))
in_one_process = pytest.mark.usefixtures("in_one_process")
pytestmark = pytest.mark.usefixtures("quick_session", "small_ranges", "by_workers")
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def random_log(directory, seed, count):
    """Records of every type, then of ACLs only."""
    directory.mkdir(exist_ok=True)
    log = RandomLog(Random(seed))
    first = log.batches(count // 2)
    log.acls_only = True
    (directory / segment_name(0)).write_bytes(b"".join(first + log.batches(count - len(first))))
    return directory


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.tier("test")) if name == "kafka-4.3.1-small" else name for name in FIXTURES],
)
def test_fixtures(spark, name):
    directory = DATA / name / "__cluster_metadata-0"
    rows, found = intervals(spark, directory).collect(), states(directory)
    check_offsets(rows, found)
    check_times(rows, found)
    check_recovered(rows, directory, [found[len(found) // 2][1], found[-1][1]])
    check_without_spark(rows, directory)


def check_without_spark(rows, directory):
    """The same intervals, from the same time on."""
    rules, _ = deciding_rules_of_log(directory, Settings())
    assert rules.intervals.known_from == known_from(directory)
    spans = [(None if each == ALWAYS else each) for each in rules.intervals.visible_from.tolist()]
    ends = [(None if each == FOREVER else each) for each in rules.intervals.visible_to.tolist()]
    texts = [tuple(row.values()) for row in rules.table.to_pylist()]
    wanted = [(*(row[name] for name in RULE_COLUMNS), row.visible_from, row.visible_to) for row in rows]
    assert sorted(map(str, wanted)) == sorted(str((*row, *span)) for row, *span in zip(texts, spans, ends, strict=True))


@in_one_process
@pytest.mark.parametrize("seed", range(2))
def test_random_logs(spark, tmp_path, seed):
    directory = random_log(tmp_path / "log", seed, 300)
    rows, found = intervals(spark, directory).collect(), states(directory)
    check_offsets(rows, found)
    check_times(rows, found)
    check_recovered(rows, directory, [found[n][1] for n in (3, 50, 299)])
    check_changes(rows, directory)
    check_without_spark(rows, directory)


def check_changes(rows, directory):
    """The changes agree with those of a single pass over the log."""
    changes = [(c.offset, at(c.timestamp), c.kind is ChangeKind.ADDED) for c in replayed(directory)]
    added = [(row.added_offset, row.added_at, True) for row in rows]
    removed = [(row.removed_offset, row.removed_at, False) for row in rows if row.removed_offset is not None]
    assert sorted(added + removed) == sorted(changes)


def test_a_random_log_that_begins_at_a_checkpoint(spark, tmp_path):
    whole = random_log(tmp_path / "whole", 11, 120)
    found = states(whole)
    start = found[70][2]
    (tmp_path / "short").mkdir()
    write_checkpoint(start, tmp_path / "short")
    data = (whole / segment_name(0)).read_bytes()
    # the log begins before the checkpoint's end, as retention leaves it
    cut = next(base for base, _, _ in found if base > start.end_offset - 20)
    (tmp_path / "short" / segment_name(cut)).write_bytes(data[_position(data, cut) :])
    rows = intervals(spark, tmp_path / "short").collect()
    here = states(tmp_path / "short", start)
    since = known_from(tmp_path / "short")
    assert since == max(time for base, time, _ in found if cut <= base < start.end_offset)
    check_offsets(rows, here, start)
    check_times(rows, here, start, since)
    check_recovered(rows, tmp_path / "short", [since, found[-1][1] + 100])
    check_without_spark(rows, tmp_path / "short")
    for row in rows:
        assert (row.first_seen_offset is None) == (row.added_offset is not None)
        assert row.first_seen_offset in (None, start.end_offset)


def _position(data, offset):
    return next(position for position, header in iter_batches(data) if header.base_offset == offset)


@in_one_process
def test_transactions_and_acls_added_again(spark, tmp_path):
    log = write_log(
        tmp_path,
        [acl(1), BEGIN, acl(2)],
        [acl(3)],
        [removal(2), END, acl(4), BEGIN, acl(1), removal(7)],  # aborted records may contradict each other
        [ABORT, acl(5)],
        [removal(5)],
        [acl(5), removal(5), acl(5)],
        [BEGIN, acl(6), acl(7, name="1"), acl(1)],  # and so may those of an open transaction
    )
    found = intervals(spark, log)
    rows = found.orderBy("added_offset").collect()
    assert [(r.resourceName, r.added_offset, r.removed_offset, r.visible_from, r.visible_to) for r in rows] == [
        ("1", 0, None, 4000, None),
        ("2", 2, 4, 4000, 4000),
        ("3", 3, None, 4000, None),
        ("4", 6, None, 4000, None),
        ("5", 11, 12, 4000, 5000),
        ("5", 13, 14, 6000, 6000),
        ("5", 15, None, 6000, None),
    ]
    assert [(r.added_at, r.removed_at) for r in rows[:2]] == [(at(1000), None), (at(1000), at(3000))]
    check_without_spark(rows, log)
    assert found.columns[:13] == history(spark, log).columns


@in_one_process
def test_decreasing_times(spark, tmp_path):
    batches = [[acl(n)] for n in range(40)]
    log = write_log(tmp_path, *batches, times=[9000 - 100 * n if n % 7 else 8000 + n for n in range(40)])
    rows, found = intervals(spark, log).collect(), states(log)
    check_times(rows, found)
    check_recovered(rows, log, [8000, 8014, 8899, 8900])


CONTRADICTIONS = [
    lambda n: [[acl(n)], [acl(n, name=f"{n}x")]],
    lambda n: [[acl(n)], [removal(n)], [removal(n), acl(n)]],
    lambda n: [[removal(n)]],
    lambda n: [[acl(n)], [acl(n + 2), acl(n + 1, name=f"{n}")], [removal(n)]],
    lambda n: [[acl(n)], [BEGIN, acl(n)], [END]],
]


@in_one_process
def test_every_contradiction_has_the_appliers_text(spark, tmp_path, monkeypatch):
    batches, expected = [], []
    for number, case in enumerate(CONTRADICTIONS):
        at = sum(map(len, batches))
        here = case(10 * number)
        alone = write_log(tmp_path / f"{number}", *([[NoOpRecord()] * at] if at else []), *here)
        with pytest.raises(ReplayError) as appliers:
            recover(alone)
        expected.append((appliers.value.offset, appliers.value.what))
        batches += here
    log = write_log(tmp_path / "all", *batches)
    monkeypatch.setattr(
        "aclog.pipeline.history.intervals.first_contradiction", lambda events, _, some: contradictions(events, some)
    )
    assert sorted(tuple(row) for row in contradiction(spark, log).collect()) == expected
    assert [what.split(maxsplit=2)[2].split(" ACL")[0] for _, what in expected] == [
        "is added, but exists already",
        "is removed, but does not exist",
        "is removed, but does not exist",
        "is the same as",
        "is added, but exists already",
    ]


@in_one_process
def test_every_action_fails_at_a_contradiction_and_the_first_is_reported(spark, tmp_path):
    log = write_log(tmp_path, [acl(1), acl(3)], [acl(2, name="1"), acl(3)], [acl(1)], [removal(3)], [removal(3)])
    with pytest.raises(ReplayError, match="offset 2: ") as appliers:
        recover(log)
    found = intervals(spark, log)
    with pytest.raises(PySparkException, match=r"offset \d: ACL"):
        found.count()
    with pytest.raises(PySparkException, match=r"offset \d: ACL"):
        found.where("removed_at is null").select("added_at").collect()
    assert str(contradiction(spark, log)) == str(appliers.value)


@in_one_process
@pytest.mark.parametrize("batches", [[[acl(1)], [acl(1)], [END]], [[acl(1)], [BEGIN, acl(1)], [BEGIN]]])
def test_a_marker_out_of_place(spark, tmp_path, batches):
    log = write_log(tmp_path, *batches)
    with pytest.raises(ReplayError) as appliers:
        recover(log)
    with pytest.raises(ReplayError) as ours:
        intervals(spark, log)
    assert str(ours.value) == str(appliers.value)


@in_one_process
def test_codes_without_a_name_are_compared_as_codes(spark, tmp_path):
    log = write_log(tmp_path / "good", [acl(1, name="t", resource_type=98)], [acl(2, name="t", resource_type=99)])
    rows = history(spark, log).collect()
    assert [row.resourceType for row in rows] == ["UNKNOWN", "UNKNOWN"]
    log = write_log(tmp_path / "bad", [acl(1, name="t", resource_type=99)], [acl(2, name="t", resource_type=99)])
    with pytest.raises(ReplayError, match=r"offset 1: ACL .* is the same as ACL"):
        history(spark, log)


def test_rules_are_known_from_the_first_record_on(tmp_path):
    assert known_from(write_log(tmp_path / "log", [acl(1)], [acl(2)], times=[7000, 5000])) == 7000


def test_a_log_without_records_has_no_time(tmp_path):
    (tmp_path / segment_name(0)).write_bytes(b"")
    with pytest.raises(LogError, match="the log has no record"):
        known_from(tmp_path)


@in_one_process
def test_a_log_that_ends_at_its_checkpoint(spark, tmp_path):
    whole = write_log(tmp_path / "whole", [acl(1)], [acl(2)])
    (tmp_path / "short").mkdir()
    write_checkpoint(recover(whole).image, tmp_path / "short")
    (tmp_path / "short" / segment_name(2)).write_bytes(b"")
    rows = intervals(spark, tmp_path / "short").orderBy("resourceName").collect()
    assert [(r.resourceName, r.first_seen_offset, r.added_at, r.visible_from) for r in rows] == [
        ("1", 2, None, None),
        ("2", 2, None, None),
    ]
    assert known_from(tmp_path / "short") == 2000


def test_a_truncated_log_starts_from_its_oldest_complete_checkpoint(spark, tmp_path):
    batches = [*([acl(n)] for n in range(6)), [removal(0)]]
    whole = write_log(tmp_path / "whole", *batches)
    short = write_log(tmp_path / "short", *batches[4:], base=4, times=[5000, 6000, 7000])
    paths = [write_checkpoint(recover(whole, offset).image, short) for offset in (3, 4, 5)]
    for start, checkpoint in zip((4, 5), paths[1:], strict=True):
        rows = history(spark, short).orderBy("resourceName").collect()
        assert [row.first_seen_offset for row in rows] == [start] * start + [None] * (6 - start)
        assert [row.removed_offset for row in rows] == [6, *[None] * 5]
        assert rows[0].removed_at == at(7000)
        assert sum(change.first_seen for change in replayed(short)) == start
        damage(checkpoint)
    with pytest.raises(CheckpointError, match=str(paths[1])):
        history(spark, short)


@in_one_process
def test_a_log_that_does_not_continue_from_its_checkpoint(spark, tmp_path):
    whole = write_log(tmp_path / "whole", *([acl(n)] for n in range(5)))
    short = write_log(tmp_path / "short", [acl(4), acl(5)], base=4)
    write_checkpoint(recover(whole, 5).image, short)
    with pytest.raises(ReplayError) as ours:
        history(spark, short)
    with pytest.raises(ReplayError) as one_pass:
        list(replayed(short))
    assert str(ours.value).replace("offset 4: ", "") == str(one_pass.value).replace("byte 0: ", "").replace(
        "offset 4, ", ""
    ).replace("offset 4: ", "")


def test_a_log_that_grows_and_loses_segments_after_the_first_pass(spark, tmp_path):
    log = write_log(tmp_path, [acl(1)], [acl(2)])
    second = log / segment_name(2)
    second.write_bytes(_batch(removal(1), 2))
    # with this setting Spark plans a new read for a pushed filter
    with pushdown(spark, "true"):
        rows = intervals(spark, log)
        with second.open("ab") as segment:
            segment.write(_batch(removal(9), 3))
        assert sorted((row.added_offset, row.removed_offset) for row in rows.collect()) == [(0, 2), (1, None)]
        (log / segment_name(0)).unlink()
        with pytest.raises(PySparkException, match=r"LogError: .*: removed since the read was planned \(retention\?\)"):
            rows.select("added_offset").collect()


def _batch(record, offset):
    return build_batch([encode_record(record)], base_offset=offset, leader_epoch=1, timestamp=9000)


@in_one_process
def test_a_log_that_loses_its_first_segment_before_the_first_pass(spark, tmp_path, monkeypatch):
    log = write_log(tmp_path, [acl(1)], [acl(2)])

    def read_after_retention(spark, path):
        (path / segment_name(0)).unlink()
        write_log(path, [acl(2)], base=1)
        return decoded_log(spark, path)

    monkeypatch.setattr("aclog.pipeline.history.intervals.read_log", read_after_retention)
    with pytest.raises(LogError, match=r"the log now begins at offset 1: expected 0, .* \(retention"):
        history(spark, log)


def test_no_log(spark, tmp_path):
    with pytest.raises(LogError, match="no such file or directory"):
        history(spark, tmp_path / "nowhere")
