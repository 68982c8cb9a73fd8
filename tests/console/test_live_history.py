"""The history that a console keeps: each of its states is the replayed one, however it was read and followed."""

import shutil
from itertools import pairwise
from random import Random

import pytest

from aclog.console.live import LiveHistory, LiveState
from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.files import list_checkpoints, segment_name
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.history import history
from aclog.snapshots.image import NewerKafka
from aclog.snapshots.publisher import recover
from aclog.sources.logs import LogSource
from tests.support.analysis.timelines import batches_of
from tests.support.builders.log_files import KAFKA_LOGS, segment_paths
from tests.support.builders.state_logs import write_log
from tests.support.processes.waiting import wait_until
from tests.support.web.histories import live_history, whole

SMALL, CHURN = KAFKA_LOGS


def source(directory):
    return LogSource(directory, lambda _: None)


def rules(acls):
    return {(rule.id, rule.acl) for rule in acls}


def records_of(directory):
    """The batches of all segments of a log."""
    return b"".join(path.read_bytes() for path in segment_paths(directory))


def replayed(directory):
    """Each state of a log, batch by batch."""
    applier = Applier(image=recover(directory, 0).image, newer=NewerKafka(strict=False))
    data = records_of(directory)
    for position, header in iter_batches(data):
        yield applier.apply(data[position : position + header.size])


def check(timeline, directory):
    """All changes are there, and all states that were ever visible."""
    expected = [each for each in history(directory) if not each.first_seen]
    assert [str(each) for each in timeline.changes] == [str(each) for each in expected]
    for image in replayed(directory):
        position = timeline.position(image.end_offset)
        assert rules(timeline.acls_at(position)) == rules(image.acls), image.end_offset


@pytest.mark.parametrize("first_part", [1, 7, 100_000])
def test_each_state_of_kafkas_log_is_the_replayed_one(first_part):
    with live_history(source(SMALL), first_part=first_part) as live:
        known = whole(live)
    assert (known.timeline.begin, known.older, known.trouble) == (0, "", None)
    check(known.timeline, SMALL)


@pytest.mark.parametrize("seed", range(6))
def test_random_logs_with_transactions(tmp_path, seed):
    directory = write_log(tmp_path / "log", *batches_of(Random(seed), 150, odd=30))
    with live_history(source(directory), first_part=1 + 11 * seed) as live:
        known = whole(live)
    check(known.timeline, directory)


@pytest.mark.slow(7)
def test_the_states_of_a_long_log(sample):
    with live_history(source(CHURN), first_part=3_000) as live:
        timeline = whole(live).timeline
    for image in sample(list(replayed(CHURN))[::20], 10):
        acls = timeline.acls_at(timeline.position(image.end_offset))
        assert (len(acls), acls.digest()) == (len(image.acls), image.acls.digest()), image.end_offset


def test_only_the_newest_changes_are_kept():
    with live_history(source(SMALL), most=20) as live:
        known = whole(live)
    timeline = known.timeline
    assert 0 < len(timeline) <= 22
    assert known.older == "at most the newest 20 changes are kept"
    assert timeline.begin > 0
    expected = [each for each in history(SMALL) if each.end_offset > timeline.begin]
    assert [str(each) for each in timeline.changes] == [str(each) for each in expected]
    assert rules(timeline.acls_at(0)) == rules(recover(SMALL, timeline.begin).image.acls)


def test_a_log_that_goes_on_is_followed(tmp_path):
    data = records_of(SMALL)
    cuts = [0, *(at + header.size for at, header in iter_batches(data))]
    half = cuts[len(cuts) // 2]
    path = tmp_path / segment_name(0)
    path.write_bytes(data[:half])
    with live_history(source(tmp_path), first_part=10) as live:
        begun = whole(live).timeline
        for low, high in pairwise(cuts[len(cuts) // 2 :]):
            with path.open("ab") as file:
                file.write(data[low:high])
        end = recover(tmp_path).image.end_offset
        wait_until(lambda: live.current.timeline.end == end)
        known = live.current
    assert known.trouble is None
    assert len(known.timeline) > len(begun)
    check(known.timeline, SMALL)
    assert begun.end < known.timeline.end


def test_many_more_changes_than_are_kept_are_followed(tmp_path):
    batches = batches_of(Random(5), 400, odd=0)
    whole_log = write_log(tmp_path / "whole", *batches)
    data = (whole_log / segment_name(0)).read_bytes()
    cuts = [at + header.size for at, header in iter_batches(data)]
    directory = tmp_path / "log"
    directory.mkdir()
    path = directory / segment_name(0)
    path.write_bytes(data[: cuts[10]])
    with live_history(source(directory), most=30) as live:
        whole(live)
        path.write_bytes(data)
        end = recover(whole_log).image.end_offset
        wait_until(lambda: live.current.timeline.end == end)
        known = live.current
    assert len(known.timeline) <= 33
    assert known.older == "at most the newest 30 changes are kept"
    for image in replayed(whole_log):
        if image.end_offset >= known.timeline.begin:
            position = known.timeline.position(image.end_offset)
            assert rules(known.timeline.acls_at(position)) == rules(image.acls)


def test_a_log_whose_beginning_retention_deleted(tmp_path):
    data = records_of(SMALL)
    starts = [(header.base_offset, at) for at, header in iter_batches(data)]
    cut, position = starts[len(starts) // 2]
    write_checkpoint(recover(SMALL, cut).image, tmp_path)
    (tmp_path / segment_name(cut)).write_bytes(data[position:])
    assert [each.end_offset for each in list_checkpoints(tmp_path)] == [cut]
    with live_history(source(tmp_path)) as live:
        known = whole(live)
    assert (known.timeline.begin, known.older) == (cut, "the log begins with this state")
    assert rules(known.timeline.acls_at(0)) == rules(recover(SMALL, cut).image.acls)
    assert [str(each) for each in known.timeline.changes] == [
        str(each) for each in history(tmp_path) if not each.first_seen
    ]


def test_a_log_that_was_replaced_is_not_followed(tmp_path):
    directory = tmp_path / "log"
    shutil.copytree(SMALL, directory)
    with live_history(source(directory)) as live:
        before = whole(live).timeline
        wait_until(lambda: live._mark.is_set)
        shutil.rmtree(directory)
        shutil.copytree(CHURN, directory)
        wait_until(lambda: live.current.trouble is not None and "another log is here" in live.current.trouble)
        assert live.current.timeline.changes == before.changes


def test_a_lost_log_is_said_and_what_was_read_stays(tmp_path):
    directory, away = tmp_path / "log", tmp_path / "away"
    shutil.copytree(SMALL, directory)
    with live_history(source(directory)) as live:
        before = whole(live).timeline
        directory.rename(away)
        wait_until(lambda: live.current.trouble is not None)
        assert live.current.timeline.changes == before.changes
        away.rename(directory)
        wait_until(lambda: live.current.trouble is None)


def test_nothing_is_known_before_the_first_state():
    opened = source(SMALL)
    live = LiveState(source=opened, seconds=1, tell=lambda _: None)
    history = LiveHistory(live=live, log=opened.log)
    history.start()
    try:
        assert history.caught_up(0, 0.05) is None
    finally:
        history.stop()
        opened.close()


def test_what_is_read_after_trouble_is_published_without_it(tmp_path, monkeypatch):
    data = records_of(SMALL)
    starts = [(header.base_offset, at) for at, header in iter_batches(data)]
    (_, position), (later, on) = starts[len(starts) // 3], starts[2 * len(starts) // 3]
    path = tmp_path / segment_name(0)
    path.write_bytes(data[:position])
    published, newest, set_known = [], LiveHistory._newest_image, LiveHistory._set

    def late(history):
        if not any(each.trouble for each in published):
            raise LogError("not read yet")
        return newest(history)

    def kept(history, change):
        set_known(history, change)
        published.append(history.current)

    monkeypatch.setattr(LiveHistory, "_newest_image", late)
    monkeypatch.setattr(LiveHistory, "_set", kept)
    with live_history(source(tmp_path)) as live:
        cut = whole(live).timeline.end
        write_checkpoint(recover(SMALL, later).image, tmp_path)
        (tmp_path / segment_name(later)).write_bytes(data[on:])
        path.unlink()
        wait_until(lambda: live.current.timeline.end > cut)
    assert "not read yet" in {each.trouble for each in published}
    assert {each.trouble for each in published if each.timeline.end > cut} == {None}
    editions = [each.edition for each in published]
    assert editions == sorted(editions)


def test_records_that_a_snapshot_replaced_are_one_step(tmp_path):
    data = records_of(SMALL)
    starts = [(header.base_offset, at) for at, header in iter_batches(data)]
    (cut, position), (later, on) = starts[len(starts) // 3], starts[2 * len(starts) // 3]
    path = tmp_path / segment_name(0)
    path.write_bytes(data[:position])
    opened = source(tmp_path)
    with live_history(opened) as live:
        whole(live)
        assert live.current.timeline.end == cut
        # the log now begins above what was read, with a checkpoint of what came before
        write_checkpoint(recover(SMALL, later).image, tmp_path)
        (tmp_path / segment_name(later)).write_bytes(data[on:])
        path.unlink()
        end = recover(tmp_path).image.end_offset
        wait_until(lambda: live.current.timeline.end == end)
        known = live.current
    timeline = known.timeline
    assert known.trouble is None
    gaps = [each for each in timeline.changes if each.gap]
    assert gaps
    assert {each.end_offset for each in gaps} == {later} or {each.end_offset for each in gaps} == {end}
    for offset in (cut, *{each.end_offset for each in timeline.changes if each.end_offset > later}):
        expected = recover(SMALL, offset).image
        assert rules(timeline.acls_at(timeline.position(offset))) == rules(expected.acls)
