"""Readers: a Kafka's directory, a live writer in another process, a growing Kafka log, damage."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aclog.metalog.batches import build_batch, iter_batches
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog import open_log, open_reader
from tests.support.builders.log_files import KAFKA_LOGS, batch_ends, read_batches, segment_paths, small_log

WRITE = """
import sys
from aclog.metalog.filelog import open_log
with open_log(sys.argv[1], create=True, segment_bytes=500) as log:
    for line in sys.stdin:
        print(log.append([line.strip().encode()], timestamp=0).result(60).last_offset, flush=True)
"""


@pytest.mark.parametrize(("path", "end", "count"), [(KAFKA_LOGS[0], 231, 122), (KAFKA_LOGS[1], 28032, 354)])
def test_a_kafkas_directory_is_read_to_its_end(path, end, count):
    before = sorted(file.name for file in path.iterdir())
    with open_reader(path) as reader:
        assert (reader.start_offset(), reader.high_watermark()) == (0, end)
        assert "treated as committed" in reader.notes[0]
        data, offset = b"", 0
        while part := reader.read(offset, 20_000):
            data += part
            *_, (_, last) = iter_batches(part)
            offset = last.end_offset
        assert data == b"".join(segment.read_bytes() for segment in segment_paths(path))
        assert sum(1 for _ in iter_batches(data)) == count
    assert sorted(file.name for file in path.iterdir()) == before


def test_a_kafkas_log_is_continued_in_its_epoch(tmp_path):
    directory = shutil.copytree(KAFKA_LOGS[0].parent, tmp_path / "kafka") / "__cluster_metadata-0"
    before = segment_paths(directory)[-1].read_bytes()
    with open_reader(directory) as early:
        assert early.high_watermark() == 231
        with open_log(directory, force=True) as log:
            assert (log.leader_epoch, log.end_offset()) == (2, 231)
            log.append([b"x"], timestamp=0).result(60)
            assert early.high_watermark() == 232
    added = build_batch([b"x"], base_offset=231, leader_epoch=2, timestamp=0)
    assert segment_paths(directory)[-1].read_bytes() == before + added
    with open_reader(directory) as reader:
        assert (reader.high_watermark(), reader.notes) == (232, ())


def test_a_new_epoch_in_a_kafkas_directory(tmp_path):
    directory = shutil.copytree(KAFKA_LOGS[0].parent, tmp_path / "kafka") / "__cluster_metadata-0"
    with open_log(directory, force=True, new_epoch=True) as log:
        assert (log.leader_epoch, log.end_offset()) == (3, 232)
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n3\n1 0\n2 116\n3 231\n"
    assert '"leaderEpoch":3' in (directory / "quorum-state").read_text()


def test_a_kafkas_log_that_grows_is_followed(tmp_path):
    directory = small_log(tmp_path / "log", mark=False)
    path, (position, offset) = segment_paths(directory)[0], batch_ends(directory)[-2]
    whole = path.read_bytes()
    path.write_bytes(whole[:position])
    with open_reader(directory) as reader:
        assert reader.high_watermark() == offset
        path.write_bytes(whole[: position + 30])
        assert reader.high_watermark() == offset
        path.write_bytes(whole)
        assert reader.high_watermark() == batch_ends(directory)[-1][1]


@pytest.mark.process
def test_a_writer_in_another_process_is_followed_live(tmp_path):
    """Across segment rolls; the reader is woken by `wait`."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        cwd=Path(__file__).parents[3],
    )
    with writer:
        writer.stdin.write("first\n")
        assert writer.stdout.readline() == "1\n"
        with open_reader(tmp_path / "log") as reader:
            for number in range(2, 40):
                assert not reader.wait(number, 0)
                writer.stdin.write(f"{number}\n")
                assert reader.wait(number, 60)
                assert str(number).encode() in reader.read(number)
            assert len(read_batches(reader)) == 39
            assert len(segment_paths(tmp_path / "log")) > 5
        writer.communicate()
    assert writer.returncode == 0


def test_an_open_reader_learns_of_a_new_epoch(tmp_path):
    directory = small_log(tmp_path / "log")
    with open_reader(directory) as reader:
        before = read_batches(reader)
        with open_log(directory, new_epoch=True) as log:
            base = log.append([b"new"], timestamp=0).result(60).base_offset
            assert read_batches(reader) == [*before, (base, [b"new"])]


def test_batches_before_the_damage_are_still_read(tmp_path):
    directory = small_log(tmp_path / "log", 6)
    path, ends = segment_paths(directory)[0], batch_ends(directory)
    data = bytearray(path.read_bytes())
    data[ends[3][0] + 70] ^= 1
    path.write_bytes(data)
    with open_reader(directory) as reader:
        assert len(reader.read(0)) == ends[3][0]
        with pytest.raises(DecodeError) as raised:
            reader.read(ends[3][1])
        assert (raised.value.path, raised.value.position, raised.value.offset) == (str(path), *ends[3])


@pytest.mark.parametrize(("at", "what"), [(7, "a batch of offset"), (15, "a batch of epoch")])
def test_fields_outside_of_the_crc_are_checked_otherwise(tmp_path, at, what):
    directory = small_log(tmp_path / "log")
    path, ends = segment_paths(directory)[0], batch_ends(directory)
    data = bytearray(path.read_bytes())
    data[ends[1][0] + at] ^= 4
    path.write_bytes(data)
    with open_reader(directory) as reader, pytest.raises(ReplayError, match=what):
        reader.read(ends[1][1])


def test_a_bogus_batch_length_of_2_gib_allocates_nothing(tmp_path):
    directory = small_log(tmp_path / "log")
    path, ends = segment_paths(directory)[0], batch_ends(directory)
    data = bytearray(path.read_bytes())
    data[ends[1][0] + 8 : ends[1][0] + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    with open_reader(directory) as reader, pytest.raises(DecodeError, match="the file ends inside a batch"):
        reader.read(ends[1][1])


def test_waiting_ends_when_the_log_is_closed(tmp_path):
    log = open_log(small_log(tmp_path / "log"))
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(log.wait(log.end_offset(), 60)))
    waiter.start()
    log.close()
    waiter.join()
    assert answers == [False]


def test_a_closed_reader_says_so(tmp_path):
    reader = open_reader(small_log(tmp_path / "log"))
    reader.close()
    for call in (reader.high_watermark, reader.start_offset, lambda: reader.wait(0, 0)):
        with pytest.raises(LogError, match="closed"):
            call()
