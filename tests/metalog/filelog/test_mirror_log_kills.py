"""A mirror killed during any system call is consistent, and continues without loss or repetition."""

import random
import shutil
from pathlib import Path

import pytest

from aclog.metalog.batches import end_offset, read_header
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.filelog.verify import verify
from aclog.metalog.machine import disk
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.random_log import RandomLog
from tests.support.processes.mirror_zygote import LOG, MirrorZygote, bring

pytestmark = pytest.mark.slow(5)

OLD, LOST, NEW = 14, 4, 10
"""Batches: those that the mirror has, those that nobody gives any more, those after the snapshot."""


@pytest.fixture(scope="module")
def zygote():
    with MirrorZygote() as process:
        yield process


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(disk, "fsync", lambda fd: None)


class Given:
    """Inputs for a mirror: an old log, and a snapshot with a log after it, beyond a gap."""

    def __init__(self, home: Path):
        log = RandomLog(random.Random(7), transactions=False)
        batches = [self._batch(log, number) for number in range(OLD + LOST + NEW)]
        self.old, self.lost = b"".join(batches[:OLD]), b"".join(batches[OLD : OLD + LOST])
        self.new = b"".join(batches[OLD + LOST :])
        self.before, self.after = home / "before", home / "after"
        for directory, data in ((self.before, self.old), (self.after, self.new)):
            directory.mkdir()
            (directory / LOG).write_bytes(data)
        self.middle = end_offset(self.lost)
        assert self.middle == read_header(self.new).base_offset
        self.snapshot = write_checkpoint(Applier().apply(self.old + self.lost), self.after)

    @staticmethod
    def _batch(log, number):
        """A new epoch begins now and then."""
        if number % 6:
            return log.batch()
        log.epoch += 1
        return log.control()


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    found = Given(tmp_path_factory.mktemp("given"))
    assert len(set(epochs(found.old))) > 2
    assert len(set(epochs(found.new))) > 1
    return found


def epochs(batches):
    position = 0
    while position < len(batches):
        header = read_header(batches, position)
        yield header.leader_epoch
        position += header.size


def content(directory):
    """Return all bytes of the segments, concatenated."""
    return b"".join(file.path.read_bytes() for file in list_segments(directory))


def assert_whole(directory):
    assert list(map(str, verify(directory))) == []
    return recover(directory).image


def copy_of(directory, target):
    shutil.rmtree(target, ignore_errors=True)
    if directory.exists():
        shutil.copytree(directory, target)
    return target


def every_death(zygote, begun, given, tmp_path):
    """Yield (number, directory) of a mirror that died, once for each system call."""
    number = 0
    while True:
        directory = copy_of(begun, tmp_path / "mirror")
        if not zygote.died_at(directory, given, number):
            return
        yield directory
        number += 1


def test_at_every_step_of_a_new_mirror(zygote, given, tmp_path):
    deaths = 0
    for directory in every_death(zygote, tmp_path / "none", given.before, tmp_path):
        deaths += 1
        if directory.exists() and list_segments(directory):
            assert_whole(directory)
            found = content(directory)
            assert given.old.startswith(found)
        else:
            with pytest.raises(LogError):
                open_log(directory)
        bring(directory, given.before)
        assert content(directory) == given.old
        assert_whole(directory)
    assert deaths > 60


def test_at_every_step_of_a_new_mirror_that_begins_after_a_snapshot(zygote, given, tmp_path):
    deaths, reached = 0, set()
    for directory in every_death(zygote, tmp_path / "none", given.after, tmp_path):
        deaths += 1
        if directory.exists() and (list_segments(directory) or list_checkpoints(directory)):
            reached.add(assert_whole(directory).end_offset)
        bring(directory, given.after)
        assert content(directory) == given.new
        assert_whole(directory)
    assert deaths > 40
    assert min(reached) == given.middle
    assert len(reached) > 2


def test_at_every_step_past_a_gap(zygote, given, tmp_path):
    """The old log is in its place or in the archive, each batch once, and the log in place is always whole."""
    begun = tmp_path / "begun"
    bring(begun, given.before)
    archive = f"archive-{end_offset(given.old):020d}"
    deaths, states = 0, set()
    for directory in every_death(zygote, begun, given.after, tmp_path):
        deaths += 1
        image = assert_whole(directory)
        aside = next((d for d in (directory / archive, directory / (archive + ".part")) if d.exists()), None)
        old = b"" if aside is None else content(aside)
        here = content(directory)
        assert old + here == given.old or (old == given.old and given.new.startswith(here))
        assert image.end_offset >= (given.middle if old else end_offset(given.old))
        states.add((bool(old), bool(list_segments(directory)), (directory / archive).exists()))
        if (directory / archive).exists():
            assert assert_whole(directory / archive).end_offset == end_offset(given.old)
        bring(directory, given.after)
        assert content(directory) == given.new
        assert content(directory / archive) == given.old
        assert_whole(directory)
        assert_whole(directory / archive)
        assert not list(directory.glob("*.part"))
    assert deaths > 60
    assert states == {
        (False, True, False),
        (True, True, False),
        (True, False, False),
        (True, False, True),
        (True, True, True),
    }
