"""A writer with concurrent appenders is killed at random points, again and again; a reader follows all the while."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.committed_mark import MarkFile
from aclog.metalog.filelog.verify import verify
from tests.support.builders.log_files import read_directory
from tests.support.processes import crash_zygote
from tests.support.processes.waiting import SECONDS

pytestmark = pytest.mark.slow(5)

KILLS_PER_LOG = 26
LOGS = 8


@pytest.fixture
def zygote():
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, crash_zygote.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        cwd=root,
        env={"PYTHONPATH": str(root)},
        start_new_session=True,
    )
    with process:
        yield process
        with suppress(ProcessLookupError):  # a failed test leaves a follower that nobody told to stop
            os.killpg(process.pid, signal.SIGKILL)


def killed_writer(zygote, directory, seed):
    """Run a writer until it is killed; what it acknowledged, as {offset: value}."""
    zygote.stdin.write(f"write {directory} {seed}\n")
    acknowledged = {}
    while (words := zygote.stdout.readline().split())[0] == "ack":
        offset, value = int(words[1]), words[2]
        assert offset not in acknowledged
        acknowledged[offset] = value
    assert words == ["done", "True"], words
    return acknowledged


def records(directory):
    """{offset: value} of all that a reader sees; no value may stand twice in the log."""
    found = {
        base + part: crash_zygote.name_of(value)
        for base, values in read_directory(directory)
        for part, value in enumerate(values)
    }
    assert len(set(found.values())) == len(found)
    return found


@pytest.mark.parametrize("number", range(LOGS))
def test_a_killed_writer_loses_nothing_that_it_acknowledged(zygote, tmp_path, number):
    directory, seen = tmp_path / "log", tmp_path / "seen"
    zygote.stdin.write(f"follow {directory} {seen}\n")
    assert zygote.stdout.readline() == "following\n"
    acknowledged, marks = {}, []
    for kill in range(KILLS_PER_LOG):
        fresh = killed_writer(zygote, directory, 1000 * number + kill)
        assert not fresh.keys() & acknowledged.keys()
        acknowledged.update(fresh)
        if directory.exists() and list(directory.glob("*.log")):
            assert records(directory).items() >= acknowledged.items(), "before recovery"
            marks.append(published_mark(directory))
        with open_log(
            directory, create=True, segment_bytes=crash_zygote.SEGMENT_BYTES, fsync=crash_zygote.brief_pause
        ) as log:
            marks.append(log.high_watermark())
        assert list(map(str, verify(directory))) == []
        assert records(directory).items() >= acknowledged.items(), "after recovery"
    assert marks == sorted(marks)
    assert acknowledged
    (tmp_path / "seen.stop").touch()
    zygote.stdin.close()
    assert zygote.wait(SECONDS) == 0
    check_follower(seen, records(directory))


def published_mark(directory):
    marks = MarkFile.open(directory)
    try:
        return marks.read().offset
    finally:
        marks.close()


def check_follower(seen, final):
    """The reader in the other process saw exactly the records of the log, in order, and marks that never go back."""
    lines = [line.split() for line in seen.read_text().splitlines()]
    marks = [int(words[1]) for words in lines if words[0] == "mark"]
    assert marks == sorted(marks)
    assert [(int(offset), value) for offset, value in lines if offset != "mark"] == sorted(final.items())
