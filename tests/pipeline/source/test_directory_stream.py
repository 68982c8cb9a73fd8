"""A log directory as a stream, without Spark: where micro-batches end, and the records between two offsets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import open_log
from aclog.pipeline.source.data_source import read_part
from aclog.pipeline.source.directory import DirectoryStream, LostRange, Query, read_options
from tests.support.builders.log_files import small_log, value
from tests.support.runs.profiles import examples
from tests.support.spark import source


def stream(path, **options) -> DirectoryStream:
    return DirectoryStream(read_options({"path": str(path)} | {name: str(each) for name, each in options.items()}))


def rows_between(followed: DirectoryStream, start: int, end: int) -> list[dict]:
    options, query = followed.options, Query(set_aside=followed.options.set_aside)
    parts = followed.ranges({"offset": start}, {"offset": end})
    return [row for part in parts for row in source.rows_of(read_part(part, options, query))]


def ends_of(log) -> list[int]:
    return [header.end_offset for path in source.segments(log) for _, header in iter_batches(path.read_bytes())]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return small_log(tmp_path_factory.mktemp("following") / "log", batches=30, segment_bytes=1500)


@settings(max_examples=examples(40))
@given(rows=st.integers(1, 40), size=st.sampled_from([100, 1 << 20]))
def test_micro_batches_are_whole_batches_and_hold_every_record_once(log, rows, size):
    followed, ends = stream(log, partitionBytes=size), ends_of(log)
    horizon, at, found = followed.horizon(), followed.initial(), []
    while (end := followed.latest(at, horizon, rows)) != at:
        assert end["offset"] in ends
        batch = min(one for one in ends if one > at["offset"]) - at["offset"]
        assert end["offset"] - at["offset"] <= max(rows, batch)
        best = [one for one in ends if one <= at["offset"] + rows]
        assert end["offset"] == max([*best, at["offset"] + batch])
        found += rows_between(followed, at["offset"], end["offset"])
        at = end
    assert found == source.read_rows(log)
    assert followed.latest(at, horizon, None) == at == {"offset": ends[-1]}


@settings(max_examples=examples(40))
@given(st.data())
def test_a_stream_resumes_from_any_offset(log, data):
    whole = source.read_rows(log)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.sampled_from([one for one in ends_of(log) if one >= start]))
    assert rows_between(stream(log), start, end) == whole[start:end]
    assert stream(log, startingOffset=start).initial() == {"offset": start}


def test_a_stream_follows_a_writer(tmp_path):
    followed, read = stream(tmp_path / "log"), []
    with open_log(tmp_path / "log", create=True, segment_bytes=600) as log:
        at = followed.initial()
        for number in range(40):
            log.append([value(f"{number}")] * (1 + number % 3), timestamp=number).result(60)
            end = followed.latest(at, followed.horizon(), 5)
            read += rows_between(followed, at["offset"], end["offset"])
            at = end
        horizon = followed.horizon()
        log.append([value("later")], timestamp=0).result(60)
        read += rows_between(followed, at["offset"], followed.latest(at, horizon, None)["offset"])
    assert read == source.read_rows(tmp_path / "log")[:-1]


def test_where_a_stream_may_begin(log):
    last = ends_of(log)[-1]
    assert stream(log, startingOffset="latest").initial() == {"offset": last}
    assert stream(log, startingOffset="earliest").initial() == {"offset": 0}
    with pytest.raises(ConfigError, match=f"expected 0 to {last}"):
        stream(log, startingOffset=last + 1).initial()
    for options in ({"checkpoints": "newest"}, {"path": str(source.CHECKPOINTS[0])}):
        with pytest.raises(ConfigError, match="expected no checkpoints"):
            stream(options.pop("path", log), **options).initial()


def test_removed_records_are_an_error_or_a_row(tmp_path):
    log = small_log(tmp_path / "log", batches=30, segment_bytes=1500)
    source.segments(log)[0].unlink()
    start = int(source.segments(log)[0].stem)
    end = ends_of(log)[-1]
    with pytest.raises(LogError, match=f"offsets 3 to {start}: removed by retention"):
        stream(log).ranges({"offset": 3}, {"offset": end})
    goes_on = stream(log, failOnDataLoss="false")
    lost, *rest = rows_between(goes_on, 3, end)
    assert (lost["record_type"], lost["offset"]) == ("DAMAGED", 3)
    assert f"offsets 3 to {start}" in lost["damage"]
    assert rest == source.read_rows(log)
    (only,) = goes_on.ranges({"offset": 1}, {"offset": 2})
    assert isinstance(only, LostRange)
    assert goes_on.latest({"offset": 1}, end, 4)["offset"] > start


def test_a_log_shorter_than_the_streams_checkpoint_is_an_error(log):
    end = ends_of(log)[-1]
    with pytest.raises(LogError, match=f"ends at offset {end}, below offset {end + 5}"):
        stream(log).ranges({"offset": 0}, {"offset": end + 5})
    followed = stream(log)
    assert followed.latest({"offset": end + 5}, followed.horizon(), None) == {"offset": end + 5}


def test_damage_is_one_row_whatever_the_micro_batches(tmp_path):
    log = small_log(tmp_path / "log", batches=30, segment_bytes=1500)
    whole = source.read_rows(log)
    path = source.segments(log)[1]
    data = bytearray(path.read_bytes())
    data[300:420] = bytes(120)
    path.write_bytes(data)
    followed = stream(log, damaged="setAside")
    at, found = followed.initial(), []
    while (end := followed.latest(at, followed.horizon(), 3)) != at:
        found += rows_between(followed, at["offset"], end["offset"])
        at = end
    (damage,) = [row for row in found if row["damage"]]
    sound = [row for row in found if not row["damage"]]
    assert sound == [row for row in whole if row["offset"] in {each["offset"] for each in sound}]
    missing = sorted({row["offset"] for row in whole} - {row["offset"] for row in sound})
    assert damage["offset"] == missing[0]
    assert f"offsets {missing[0]} to {missing[-1] + 1}" in damage["damage"]
