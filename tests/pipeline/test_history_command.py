"""Output and refusals of `aclog spark history`."""

import pytest

from aclog.cli.spark.commands import history_command
from aclog.cli.spark.spark_session import check_log, failure
from aclog.metalog.errors import CheckpointError, ConfigError, LogError, MetadataError, ReplayError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import segment_name
from aclog.pipeline.history import bulk
from aclog.pipeline.history.intervals import history
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.state_logs import damage, write_log
from tests.support.builders.state_records import acl, removal


@pytest.mark.tier("test")
def test_what_is_written_and_said(spark, tmp_path, capsys):
    log, out = write_log(tmp_path / "log", [acl(1)], [acl(2)], [removal(1)]), tmp_path / "out"
    history_command(spark, log, out)
    assert capsys.readouterr() == (f"{out}: 2 rules, 1 of them in force\n", "")
    written = spark.read.parquet(str(out))
    assert written.columns == history(spark, log).columns
    assert sorted((row.added_offset, row.removed_offset) for row in written.collect()) == [(0, 2), (1, None)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out"]
    with pytest.raises(ConfigError, match="out: exists already"):
        history_command(spark, log, out)


def test_an_empty_log(spark, tmp_path, capsys):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / segment_name(0)).write_bytes(b"")
    history_command(spark, tmp_path / "log", tmp_path / "out")
    assert capsys.readouterr().out == f"{tmp_path / 'out'}: 0 rules, 0 of them in force\n"
    assert spark.read.parquet(str(tmp_path / "out")).collect() == []


def contradicting(log):
    write_log(log, [acl(1)], [acl(2)], [removal(2)], [removal(2), removal(1)])


def without_whole_checkpoint(log):
    whole = write_log(log.with_name("log.whole"), [acl(1)], [acl(2)])
    write_log(log, [acl(3)], base=2)
    damage(write_checkpoint(recover(whole).image, log))


def of_checkpoints_only(log):
    without_whole_checkpoint(log)
    (log / segment_name(2)).unlink()


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (contradicting, ReplayError, r"/log: offset 3: ACL \S* is removed, but does not exist$"),
        (without_whole_checkpoint, CheckpointError, r"\.checkpoint: offset 1, byte"),
        (of_checkpoints_only, LogError, "not a metadata log: no segment"),
    ],
)
def test_a_failure_leaves_nothing(spark, tmp_path, make, kind, text):
    make(tmp_path / "log")
    before = set(tmp_path.iterdir())
    with pytest.raises(kind, match=text):
        history_command(spark, tmp_path / "log", tmp_path / "out")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("most_bytes", [-1, 1 << 20])
def test_damage_is_reported_in_one_line(spark, tmp_path, monkeypatch, most_bytes):
    monkeypatch.setattr(bulk, "MOST_BYTES", most_bytes)  # read by workers, or by the driver
    with open_log(tmp_path / "log", create=True) as log:
        for _ in range(3):
            log.append([b"\x01\x14\x00\x00"], timestamp=1).result(10)
    segment = tmp_path / "log" / segment_name(0)
    damage(segment)
    with pytest.raises(Exception, match="CRC") as failed:  # any class of Spark's errors
        history_command(spark, tmp_path / "log", tmp_path / "out")
    told = str(failed.value if isinstance(failed.value, MetadataError) else failure(failed.value))
    assert told.startswith(f"{segment}: offset 1, byte ")
    assert "\n" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_log_is_checked_before_a_session_starts(tmp_path, capsys):
    log = write_log(tmp_path / "log", [acl(1)], [acl(2)])
    with (log / segment_name(0)).open("ab") as segment:
        segment.write(b"torn")
    check_log(log)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"aclog: note: {log}: the end of this Kafka log, offset 2, is treated as committed")
    assert "ignored 4 bytes that are not a whole batch" in said[1]
    with pytest.raises(LogError, match="nowhere: no such file or directory"):
        check_log(tmp_path / "nowhere")
    of_checkpoints_only(tmp_path / "checkpoints")
    with pytest.raises(LogError, match="not a metadata log: no segment"):
        check_log(tmp_path / "checkpoints")
