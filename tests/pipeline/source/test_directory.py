"""Planning and reading of directories and checkpoints, without Spark."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError, DecodeError, LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.committed_mark import CommittedMark
from aclog.metalog.filelog.files import METADATA_DIRECTORY, checkpoint_name, segment_name
from aclog.metalog.records import FeatureLevelRecord
from aclog.pipeline.source.data_source import packed
from aclog.pipeline.source.directory import plan, read_options
from aclog.pipeline.source.rows import RowSelection
from aclog.server.storage import template_bytes
from tests.support.builders.log_files import small_log, value
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl
from tests.support.runs.profiles import examples
from tests.support.spark import source


def ranges(path: Path, selection: RowSelection | None = None, **options: object) -> list:
    chosen = read_options({"path": str(path)} | {name: str(each) for name, each in options.items()})
    return plan(chosen, selection or RowSelection())


@pytest.mark.parametrize("directory", source.LOGS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("size", [1, 3000, 16 << 20])
@pytest.mark.sample(3)
def test_a_log_is_read_whole_whatever_the_partitions(directory, size):
    found = source.read_rows(directory, partitionBytes=size)
    assert found == source.expected_rows(source.segments(directory))


@pytest.mark.parametrize("path", source.CHECKPOINTS, ids=lambda path: f"{path.parents[1].name}-{path.name}")
@pytest.mark.parametrize("size", [1, 16 << 20])
@pytest.mark.sample(6)
def test_a_checkpoint_is_read_as_is(path, size):
    assert source.read_rows(path, partitionBytes=size) == source.expected_rows([path])


def test_a_directory_of_checkpoints_gives_the_newest_or_all(tmp_path):
    newest, *_ = reversed(names := [path for path in source.CHECKPOINTS if "small" in str(path)])
    for path in names:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert source.read_rows(tmp_path) == source.expected_rows([newest])
    assert source.read_rows(tmp_path, checkpoints="all") == source.expected_rows(names)
    with pytest.raises(LogError, match="no segment"):
        source.read_rows(tmp_path, checkpoints="none")


def test_checkpoints_are_read_instead_of_the_log_on_request():
    directory = source.LOGS[-1]
    newest = max(directory.glob("*.checkpoint"))
    assert source.read_rows(directory, checkpoints="newest") == source.expected_rows([newest])


def test_small_files_share_a_partition(tmp_path):
    for number in range(300):
        write_log(tmp_path, [acl(number)], base=number)
    size = (tmp_path / segment_name(0)).stat().st_size
    found = ranges(tmp_path)
    for most, count in ((16 << 20, 1), (10 * size, 31), (1, 300)):  # numbers of two and three digits take more bytes
        partitions = packed(found, most)
        assert [each for part in partitions for each in part] == found
        assert count - 2 <= len(partitions) <= count + 4
    assert packed([], 1) == []


def test_a_range_is_of_whole_batches_and_knows_where_it_ends():
    (path,) = source.segments(source.LOGS[0])
    found = ranges(source.LOGS[0], partitionBytes=1000)
    assert len(found) > 5
    assert [each.position for each in found[1:]] == [each.end for each in found[:-1]]
    assert [each.offset for each in found[1:]] == [each.end_offset for each in found[:-1]]
    assert found[-1].end == path.stat().st_size
    assert all(each.end - each.position >= 1000 for each in found[:-1])


@settings(max_examples=examples(20))
@given(st.integers(0, 30_000), st.integers(0, 30_000))
def test_ranges_without_selected_rows_are_not_planned(first, last):
    directory = next(each for each in source.LOGS if "churn" in str(each))
    every = ranges(directory, partitionBytes=50_000)
    assert len(every) > 20
    selection = RowSelection().with_offsets(first=first, last=last)
    kept = [each for each in every if each.offset <= last and each.end_offset > first and first <= last]
    assert ranges(directory, selection, partitionBytes=50_000) == kept
    among = RowSelection().with_offsets(among=[first, last])
    kept = [each for each in every if any(each.offset <= one < each.end_offset for one in (first, last))]
    assert ranges(directory, among, partitionBytes=50_000) == kept


def test_nothing_beyond_the_mark_is_read_while_another_writes(tmp_path):
    with open_log(tmp_path / "log", create=True, segment_bytes=2000) as log:
        for number in range(30):
            log.append([value(f"{number}")], timestamp=number).result(60)
        planned = ranges(tmp_path / "log", partitionBytes=500)
        for number in range(30, 60):
            log.append([value(f"{number}")], timestamp=number).result(60)
        assert planned[-1].end_offset == 31
        assert sum(len(source.rows_of(_read(each))) for each in planned) == 31
        assert [row["offset"] for row in source.read_rows(tmp_path / "log")] == list(range(61))


def test_bytes_above_the_mark_are_not_read(tmp_path):
    log = small_log(tmp_path / "log")
    with (log / segment_name(0)).open("ab") as segment:
        segment.write(b"torn" * 30)
    expected = [row["offset"] for row in source.read_rows(log)]
    assert expected == list(range(len(expected)))
    assert source.read_rows(log, damaged="setAside") == source.read_rows(log)


def test_a_nodes_log_that_is_gone_is_refused_and_an_older_copy_warned_of(tmp_path, caplog):
    log = small_log(tmp_path / METADATA_DIRECTORY)
    mark = CommittedMark.beside(log, cluster_id="c", end_offset=8, epoch=1)
    mark.write()
    assert len(ranges(log)) == 1
    assert caplog.text == ""
    mark.moved(9, 1).write()
    assert len(ranges(log)) == 1
    assert f"{log}: ends at offset 8, but {mark.path} records the log as committed up to 9" in caplog.text
    (log / segment_name(0)).unlink()
    (log / checkpoint_name(0, 0)).touch()
    with pytest.raises(LogError, match=f"no log, but {mark.path} records one committed up to offset 9"):
        ranges(log)


def test_an_empty_log_gives_no_range(tmp_path):
    (tmp_path / segment_name(0)).write_bytes(b"")
    assert ranges(tmp_path) == []


def test_the_records_of_a_formatted_directory_are_no_state_yet(tmp_path):
    """Kafka 4.4 formats a controller so; asked for its checkpoints, they are shown."""
    level = FeatureLevelRecord(name="metadata.version", feature_level=33)
    data = template_bytes([level], kraft_version=0, voters=None, now_ms=1)
    (tmp_path / checkpoint_name(0, 0)).write_bytes(data)
    assert ranges(tmp_path) == []
    assert len(ranges(tmp_path, checkpoints="newest")) == 1


def test_a_segment_removed_after_planning_is_an_error(tmp_path):
    log = small_log(tmp_path / "log")
    (planned,) = ranges(log)
    Path(planned.path).unlink()
    with pytest.raises(LogError, match="removed since"):
        list(_read(planned))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "x", "partitionbytes": "0"}, "partitionBytes"),
        ({"path": "x", "damaged": "skip"}, "expected one of fail, setAside"),
        ({"path": "x", "checkpoint": "newest"}, "option 'checkpoint'"),
        ({"path": "x", "checkpoints": "oldest"}, "expected one of none, newest, all"),
        ({"path": "x", "startingOffset": "-1"}, "earliest, latest or an offset"),
        ({"path": "x", "failOnDataLoss": "maybe"}, "true, false"),
        ({"path": "x", "topic": "t"}, "not both"),
        ({}, "expected a path"),
        ({"path": "hdfs://host/x"}, "every worker"),
        ({"path": "x", "kafka.client.id": "me"}, "with option topic"),
        ({"topic": "t"}, "kafka.bootstrap.servers"),
        ({"topic": "t", "kafka.bootstrap.servers": "h:1", "checkpoints": "all"}, "a topic has no checkpoints"),
    ],
)
def test_invalid_options(options, said):
    with pytest.raises(ConfigError, match=said):
        read_options(options)


def test_options_ignore_case():
    options = read_options({"PATH": "file:///x", "partitionbytes": "7", "DAMAGED": "setaside", "startingoffset": "9"})
    assert (options.path, options.partition_bytes, options.set_aside) == (Path("/x"), 7, True)
    assert options.starting_offset == 9
    secret = read_options({"topic": "t", "kafka.bootstrap.servers": "h:1", "kafka.sasl.password": "hidden"})
    assert secret.kafka["sasl.password"] == "hidden"
    assert "hidden" not in repr(secret)


@pytest.mark.parametrize("name", ["nothing", "file.txt", "empty"])
def test_other_paths_are_refused(tmp_path, name):
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises((LogError, ConfigError), match=name):
        ranges(tmp_path / name)


def test_a_log_that_lacks_a_segment_is_damaged(tmp_path):
    log = small_log(tmp_path / "log", batches=40, segment_bytes=1000)
    lost = source.segments(log)[1]
    lost.unlink()
    with pytest.raises(DecodeError, match="expected records up to offset") as caught:
        source.read_rows(log)
    assert str(source.segments(log)[0]) in str(caught.value)
    rows = source.read_rows(log, damaged="setAside")
    (damage,) = [row for row in rows if row["damage"]]
    assert damage["offset"] == int(lost.stem)


def _read(place):
    from aclog.pipeline.source.directory import Query, read_range

    return read_range(place, Query())
