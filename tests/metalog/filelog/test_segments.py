"""Reads by offset: the bulk check of large reads accepts exactly what the exact check accepts."""

import os
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from aclog.metalog.batches import build_batch, decode_batch, end_offset, iter_batches
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import open_log, open_reader, segments
from aclog.metalog.filelog.files import segment_name
from aclog.metalog.filelog.segments import BULK_WINDOW, Segments, proved_run, walk_batches
from aclog.metalog.machine import disk
from tests.support.builders.log_files import KAFKA_LOGS, segment_paths, small_log, value


def read_with(monkeypatch, directory, bulk, max_bytes):
    """Return everything that can be read, and the error that ended it; `bulk` is the size of reads checked in bulk."""
    monkeypatch.setattr(segments, "_BULK", bulk)
    parts, offset = [], 0
    with open_reader(directory) as reader:
        try:
            while data := reader.read(offset, max_bytes):
                parts.append(data)
                *_, (_, last) = iter_batches(data)
                offset = last.end_offset
        except DecodeError as error:
            return parts, str(error)
    return parts, None


@pytest.mark.parametrize("path", KAFKA_LOGS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("max_bytes", [700, 9000, 1 << 20])
def test_a_valid_log(monkeypatch, path, max_bytes):
    exact = read_with(monkeypatch, path, 1 << 40, max_bytes)
    assert exact[1] is None
    assert read_with(monkeypatch, path, 0, max_bytes) == exact


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_log(monkeypatch, tmp_path, seed):
    """Half of the bit flips are in bytes that no CRC covers."""
    numbers = random.Random(seed)
    directory = shutil.copytree(KAFKA_LOGS[0], tmp_path / "log")
    path = segment_paths(directory)[0]
    data = bytearray(path.read_bytes())
    position, header = numbers.choice(list(iter_batches(data)))
    data[position + numbers.randrange(21 if seed % 2 else header.size)] ^= 1 << numbers.randrange(8)
    path.write_bytes(data)
    exact = read_with(monkeypatch, directory, 1 << 40, 1 << 20)
    assert exact[1] is not None
    assert read_with(monkeypatch, directory, 0, 1 << 20) == exact


def test_a_log_without_leader_epochs(monkeypatch, tmp_path):
    directory = shutil.copytree(KAFKA_LOGS[0], tmp_path / "log")
    (directory / "leader-epoch-checkpoint").unlink()
    assert read_with(monkeypatch, directory, 0, 5000) == read_with(monkeypatch, KAFKA_LOGS[0], 1 << 40, 5000)


@pytest.mark.parametrize("bulk", [0, 1 << 40])
def test_what_was_read_is_found_again_without_a_walk_from_the_beginning(monkeypatch, bulk):
    walked = []

    def walk(*args, **named):
        for found in walk_batches(*args, **named):
            walked.append(found)
            yield found

    monkeypatch.setattr(segments, "_BULK", bulk)
    monkeypatch.setattr(segments, "walk_batches", walk)
    with open_reader(KAFKA_LOGS[0]) as reader:
        whole, offset = b"", reader.start_offset()
        walked.clear()  # opening walks the last segment to its end
        while data := reader.read(offset, 1 << 20):
            whole += data
            offset = end_offset(data)
        batches = list(iter_batches(whole))
        assert reader.read(offset - 1, 1) == whole[batches[-1][0] :]
        assert len(walked) <= 1
        for place in (len(batches) // 2, len(batches) // 2 - 3):  # what one walk has passed, the next need not
            position, header = batches[place]
            walked.clear()
            for _ in range(2):
                assert reader.read(header.end_offset - 1, 1) == whole[position : position + header.size]
        assert sum(header.size for _, header in walked) < 3 * segments._INDEX_INTERVAL


@pytest.mark.parametrize("epochs", [None, (EpochStart(epoch=1, start_offset=0),)], ids=["order of epochs", "epochs"])
@pytest.mark.parametrize("mark", [1, 4, 7])
def test_no_check_in_bulk_passes_the_mark_of_a_log_that_is_damaged_after_it(tmp_path, monkeypatch, mark, epochs):
    """No CRC covers a base offset, so a damaged one is in the columns of a scan, where it breaks their order."""
    batches = [build_batch([b"\x01\x14\x00\x00"], base_offset=n, leader_epoch=1, timestamp=0) for n in range(16)]
    batches[8] = bytes(8) + batches[8][8:]  # the middle, where a bisection of all ends begins
    path = tmp_path / segment_name(0)
    path.write_bytes(b"".join(batches))
    monkeypatch.setattr(segments, "_BULK", 0)
    end = end_offset(Segments.open(tmp_path, epochs).read(0, mark, 1 << 20))
    fd = os.open(path, os.O_RDONLY)
    try:
        run = proved_run(fd, 0, 0, epochs, 0, end=mark, window=BULK_WINDOW)
    finally:
        os.close(fd)
    assert (end, run.offset) == (mark, mark)


class HeldDisk:
    """Reads of one thread wait until a test lets them return."""

    def __init__(self, monkeypatch):
        self.reading, self.released, self.pread = threading.Event(), threading.Event(), disk.pread
        self.thread = ThreadPoolExecutor(max_workers=1, initializer=self._hold)
        self.held: set[int] = set()
        monkeypatch.setattr(disk, "pread", self._pread)

    def _hold(self):
        self.held.add(threading.get_ident())

    def _pread(self, *args):
        if threading.get_ident() in self.held:
            self.reading.set()
            assert self.released.wait(60)
        return self.pread(*args)


@pytest.fixture
def held(monkeypatch):
    disk_of_one = HeldDisk(monkeypatch)
    yield disk_of_one
    disk_of_one.released.set()
    disk_of_one.thread.shutdown()


@pytest.mark.timeout(60)
def test_a_slow_search_in_a_segment_holds_up_no_other_call(tmp_path, held):
    directory = small_log(tmp_path / "log", batches=9)
    with open_log(directory, segment_bytes=segment_paths(directory)[0].stat().st_size) as log:
        expected, offset = log.read(0)[-100:], log.high_watermark() - 1
        reading = held.thread.submit(log.read, offset - 1)
        assert held.reading.wait(60)
        assert log.start_offset() == 0
        log.append([value("rolled")], timestamp=1).result(60)
        assert len(segment_paths(directory)) == 2
        assert read_value(log, log.high_watermark() - 1) == value("rolled")
        assert not reading.done()
        held.released.set()
        assert expected.endswith(reading.result(60))


def read_value(log, offset):
    data = log.read(offset)
    (record,) = decode_batch(data, 0).records
    return record.value


@pytest.mark.timeout(60)
def test_a_segment_that_is_removed_during_a_search_is_read_to_its_end_and_then_missing(tmp_path, held):
    directory = small_log(tmp_path / "log", batches=9, segment_bytes=200)
    first, *_ = segment_paths(directory)
    found = Segments.open(directory, None)
    whole = found.read(0, 1 << 40, 1 << 20)
    reading = held.thread.submit(found.read, end_offset(whole) - 1, 1 << 40, 1)
    assert held.reading.wait(60)
    found.rename_first(".deleted")
    assert not first.exists()
    held.released.set()
    assert whole.endswith(reading.result(60))
    with pytest.raises(LogError, match="offset 0 is below the log start offset"):
        found.read(0, 1 << 40, 1)


def test_readers_in_many_threads_fill_one_index(tmp_path):
    """Reads and searches of the same segments, whose index they all extend."""
    batches = [build_batch([value(str(n))], base_offset=n, leader_epoch=1, timestamp=0) for n in range(600)]
    (tmp_path / segment_name(0)).write_bytes(b"".join(batches[:400]))
    (tmp_path / segment_name(400)).write_bytes(b"".join(batches[400:]))
    found = Segments.open(tmp_path, None)
    offsets = random.Random(1).sample(range(600), 120)
    with ThreadPoolExecutor(max_workers=8) as pool:
        reads = list(pool.map(lambda offset: found.read(offset, 600, 1), offsets))
    assert reads == [batches[offset] for offset in offsets]
    for segment in found._segments:
        assert segment._offsets == sorted(set(segment._offsets))
        assert segment._positions == sorted(set(segment._positions))
        data, base = segment.file.path.read_bytes(), segment.file.base_offset
        starts = {header.base_offset: position for position, header in iter_batches(data)}
        ends = {header.end_offset: position + header.size for position, header in iter_batches(data)}
        expected = {base: 0, **starts, **ends}
        assert [expected[offset] for offset in segment._offsets] == segment._positions
