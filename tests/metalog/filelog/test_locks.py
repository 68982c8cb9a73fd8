"""A single writer: within this process, across processes, and next to a Kafka."""

import subprocess
import sys
from pathlib import Path

import pytest

from aclog.metalog.errors import LockedError, LogError
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.locks import KAFKA_LOCK_FILE, LOCK_FILE
from tests.support.builders.log_files import read_directory, small_log

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a+")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""

OPEN = """
import sys
from aclog.metalog.filelog import open_log
with open_log(sys.argv[1]) as log:
    print("held", flush=True)
    sys.stdin.read()
"""


class Holder:
    """Another process that holds a lock until the block ends."""

    def __init__(self, script, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[3],
        )

    def __enter__(self):
        assert self.process.stdout.readline() == b"held\n"

    def __exit__(self, *error):
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.mark.process
def test_a_second_writer_in_another_process_is_refused(tmp_path):
    directory = small_log(tmp_path / "log")
    with Holder(OPEN, directory):
        with pytest.raises(LockedError, match="another aclog writer"):
            open_log(directory)
        assert read_directory(directory)
    open_log(directory).close()


@pytest.mark.process
def test_a_second_writer_in_this_process_is_refused_and_does_not_release_the_lock(tmp_path):
    directory = small_log(tmp_path / "log")
    with open_log(directory) as log:
        for path in (directory, tmp_path / "." / "log"):
            with pytest.raises(LockedError, match="locked by this process"):
                open_log(path)
        attempt = subprocess.run(
            [sys.executable, "-c", HOLD, str(directory / LOCK_FILE)], input=b"", capture_output=True, check=False
        )
        assert attempt.returncode == 1
        log.append([b"x"], timestamp=0).result(60)
    open_log(directory).close()


def test_a_failed_open_releases_the_lock(tmp_path):
    directory = small_log(tmp_path / "log")
    epochs = (directory / "leader-epoch-checkpoint").read_bytes()
    (directory / "leader-epoch-checkpoint").unlink()
    with pytest.raises(LogError):
        open_log(directory)
    (directory / "leader-epoch-checkpoint").write_bytes(epochs)
    open_log(directory).close()


@pytest.fixture(params=["above", "inside"])
def kafkas(request, tmp_path):
    """(The log directory, the Kafka directory with meta.properties): its parent, or the same directory."""
    directory = small_log(tmp_path / "__cluster_metadata-0")
    kafka = tmp_path if request.param == "above" else directory
    (kafka / "meta.properties").write_text("node.id=1\n")
    return directory, kafka


def test_writing_next_to_a_kafka_must_be_forced(kafkas):
    directory, kafka = kafkas
    with pytest.raises(LogError, match=r"meta\.properties"):
        open_log(directory)
    assert not (kafka / KAFKA_LOCK_FILE).exists()
    open_reader(directory).close()
    open_log(directory, force=True).close()


@pytest.mark.process
def test_a_directory_of_a_running_kafka_is_not_written(kafkas):
    directory, kafka = kafkas
    with Holder(HOLD, kafka / KAFKA_LOCK_FILE), pytest.raises(LockedError, match="a Kafka"):
        open_log(directory, force=True)
    open_log(directory, force=True).close()


@pytest.mark.process
def test_a_kafka_cannot_start_while_we_write(kafkas):
    directory, kafka = kafkas
    with open_log(directory, force=True):
        attempt = subprocess.run(
            [sys.executable, "-c", HOLD, str(kafka / KAFKA_LOCK_FILE)], input=b"", capture_output=True, check=False
        )
        assert attempt.returncode == 1
        assert b"BlockingIOError" in attempt.stderr
