"""A failed write or fsync: nothing of it is acknowledged, visible, or present after the next open."""

import errno
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from aclog.metalog.batches import build_batch
from aclog.metalog.errors import DecodeError, LogError, UncertainError
from aclog.metalog.filelog import committed_mark as mark_module
from aclog.metalog.filelog import file_log as appender_module
from aclog.metalog.filelog import files, open_log, open_reader
from aclog.metalog.filelog.verify import verify
from aclog.metalog.group_commit import MAX_WAITING_BYTES
from aclog.metalog.machine import disk, threads
from tests.support.builders.log_files import read_batches, read_directory, segment_paths, small_log, value
from tests.support.processes.descriptors import descriptors


class FailingFsync:
    """An fsync that fails once armed, and counts the calls after that."""

    def __init__(self):
        self.error, self.calls_after = None, 0

    def __call__(self, fd):
        if self.error is not None:
            self.calls_after += 1
            raise self.error
        os.fsync(fd)


@pytest.fixture
def fsync():
    return FailingFsync()


@pytest.fixture
def log(tmp_path, fsync):
    with open_log(tmp_path / "log", create=True, fsync=fsync) as log:
        yield log


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (RuntimeError("anything else"), "anything else"),
    ],
)
def test_a_failed_fsync_fails_all_waiting_and_all_later_appends(log, fsync, error, said):
    log.append([b"good"], timestamp=0).result(60)
    mark = log.high_watermark()
    fsync.error = error
    futures = []
    for _ in range(20):
        try:
            futures.append(log.append([b"bad"], timestamp=0))
        except LogError:
            break
    for future in futures:
        with pytest.raises(LogError, match=said):
            future.result(60)
    with pytest.raises(LogError, match=said):
        log.append([b"later"], timestamp=0)
    with pytest.raises(LogError, match=said):
        log.append_batch(build_batch([b"later"], base_offset=mark, leader_epoch=log.leader_epoch, timestamp=0))
    assert fsync.calls_after == 1
    assert log.high_watermark() == log.end_offset() == mark
    assert [values for _, values in read_batches(log)] == [[b"good"]]
    assert [values for _, values in read_directory(log.directory)] == [[b"good"]]


def test_failed_appends_are_absent_after_the_next_open(log, fsync):
    log.append([value("good")], timestamp=0).result(60)
    fsync.error = OSError(errno.EIO, "Input/output error")
    with pytest.raises(LogError):
        log.append([value("bad")], timestamp=0).result(60)
    log.close()
    with open_log(log.directory) as again:
        assert again.notes == ()
        assert [values for _, values in read_batches(again)] == [[value("good")]]
        again.append([value("after")], timestamp=0).result(60)
    assert list(verify(log.directory)) == []


def test_a_full_disk_is_reported_as_such(log, monkeypatch):
    """The disk takes half of the write and then no more."""
    log.append([b"good"], timestamp=0).result(60)
    size = sum(path.stat().st_size for path in log.directory.glob("*.log"))

    def half(fd, data):
        os.write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_all", half)
    with pytest.raises(LogError, match="the disk is full"):
        log.append([b"bad"], timestamp=0).result(60)
    assert sum(path.stat().st_size for path in log.directory.glob("*.log")) == size


def test_a_disk_full_at_a_roll_fails_only_later_batches(tmp_path, monkeypatch):
    def refuse(file):
        raise LogError(f"{file.path}: cannot create: the disk is full")

    with open_log(tmp_path / "log", create=True, segment_bytes=400) as log:
        monkeypatch.setattr(appender_module, "create_segment", refuse)
        futures = [log.append([b"x" * 50], timestamp=0)]
        while futures[-1].exception(60) is None:
            futures.append(log.append([b"x" * 50], timestamp=0))
        assert "the disk is full" in str(futures[-1].exception())
        assert len(read_batches(log)) == len(futures) - 1 > 0


def test_a_short_write_is_continued(log, monkeypatch):
    real = os.write
    monkeypatch.setattr(disk, "write", lambda fd, data: real(fd, data[:7]))
    log.append([b"x" * 1000], timestamp=0).result(60)
    monkeypatch.undo()
    assert [values for _, values in read_directory(log.directory)] == [[b"x" * 1000]]


def test_what_is_not_durable_is_not_visible(tmp_path):
    """While fsync runs, neither the log nor a reader shows what is being written."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(fd):
        begun.set()
        assert go_on.wait(60)
        os.fsync(fd)

    go_on.set()
    with open_log(tmp_path / "log", create=True, fsync=slow) as log, open_reader(log.directory) as reader:
        mark = log.high_watermark()
        go_on.clear()
        begun.clear()
        future = log.append([b"x"], timestamp=0)
        assert begun.wait(60)
        assert log.high_watermark() == reader.high_watermark() == mark
        assert read_batches(log) == read_batches(reader) == []
        assert not future.done()
        go_on.set()
        future.result(60)
        assert log.high_watermark() == reader.high_watermark() == mark + 1


def test_all_batches_that_arrive_during_an_fsync_share_the_next_one(tmp_path):
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def counted(fd):
        calls.append(fd)
        begun.set()
        assert go_on.wait(60)

    go_on.set()
    with open_log(tmp_path / "log", create=True, fsync=counted) as log:
        go_on.clear()
        begun.clear()
        futures = [log.append([b"first"], timestamp=0)]
        assert begun.wait(60)
        before = len(calls)
        futures += [log.append([b"x"], timestamp=0) for _ in range(200)]
        go_on.set()
        assert not wait(futures, timeout=300).not_done
        assert len(calls) == before + 1


def test_a_caller_that_never_waits_is_stopped(tmp_path):
    go_on = threading.Event()
    go_on.set()
    with open_log(tmp_path / "log", create=True, fsync=lambda fd: go_on.wait(60)) as log:
        go_on.clear()
        value = bytes([1]) * (4 << 20)
        first = log.append([value], timestamp=0)
        with pytest.raises(LogError, match="wait for earlier appends"):
            append_all(log, [value] * (2 * MAX_WAITING_BYTES // len(value)))
        go_on.set()
        first.result(60)


def append_all(log, values):
    for one in values:
        log.append([one], timestamp=0)


def test_a_forked_process_cannot_use_the_log(log, monkeypatch):
    monkeypatch.setattr(threads, "getpid", lambda: 1)
    with pytest.raises(LogError, match="not by this one"):
        log.append([b"x"], timestamp=0)
    monkeypatch.undo()


def test_a_failed_truncation_is_reported(log, fsync, monkeypatch):
    fsync.error = OSError(errno.EIO, "Input/output error")

    def refuse(fd, size):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(disk, "ftruncate", refuse)
    with pytest.raises(UncertainError, match=r"may reappear, because truncating them failed too: Read-only"):
        log.append([b"bad"], timestamp=0).result(60)
    monkeypatch.undo()


def test_a_callback_cannot_close_the_log(log):
    told = []

    def close(future):
        try:
            log.close()
        except LogError as error:
            told.append(str(error))

    log.append([b"x"], timestamp=0).add_done_callback(close)
    log.append([b"y"], timestamp=0).result(60)
    assert len(told) == 1


@pytest.mark.parametrize("written", [0, 100])
def test_a_mark_that_cannot_be_published_fails_the_append_without_truncating_it(log, monkeypatch, written):
    """The batch is durable by then and is not truncated, since the mark may have reached the file after all."""
    log.append([b"good"], timestamp=0).result(60)
    mark = log.high_watermark()
    monkeypatch.setattr(mark_module.disk, "pwrite", lambda fd, data, position: written)
    with pytest.raises(UncertainError, match=r"high-watermark: cannot write.*may reappear"):
        log.append([b"open"], timestamp=0).result(60)
    monkeypatch.undo()
    assert log.high_watermark() == mark
    assert [values for _, values in read_directory(log.directory)] == [[b"good"]]
    log.close()
    with open_log(log.directory) as again:
        assert [values for _, values in read_batches(again)] == [[b"good"], [b"open"]]


def test_a_second_writer_is_noticed_before_anything_is_written(log):
    """The lock file was removed, or this process released the lock by copying the directory."""
    log.append([b"ours"], timestamp=0).result(60)
    (path,) = segment_paths(log.directory)
    with path.open("ab") as other:
        other.write(b"theirs")
    before = path.read_bytes()
    with pytest.raises(LogError, match="another process writes to it"):
        log.append([b"ours"], timestamp=0).result(60)
    assert path.read_bytes() == before


def test_a_segment_that_cannot_be_made_durable_leaks_no_file(tmp_path, monkeypatch):
    def refuse(directory):
        raise OSError(errno.EIO, "Input/output error")

    file = files.SegmentFile(base_offset=0, path=tmp_path / "00000000000000000000.log")
    monkeypatch.setattr(files, "fsync_directory", refuse)
    before = descriptors()
    with pytest.raises(LogError, match="cannot create"):
        appender_module.create_segment(file)
    assert not descriptors() - before


def test_a_callback_that_exits_does_not_stop_others(log):
    log.append([b"x"], timestamp=0).add_done_callback(lambda future: sys.exit(1))
    assert log.append([b"y"], timestamp=0).result(60).last_offset == log.end_offset() - 1
    assert log.append([b"z"], timestamp=0).result(60)


def test_two_threads_close_at_once(tmp_path):
    """Both wait for the last commit; files are closed once, as their descriptors may be reused by then."""
    begun, go_on = threading.Event(), threading.Event()
    go_on.set()

    def slow(fd):
        begun.set()
        assert go_on.wait(60)

    log = open_log(tmp_path / "log", create=True, fsync=slow)
    go_on.clear()
    begun.clear()
    log.append([b"x"], timestamp=0)
    assert begun.wait(60)

    with ThreadPoolExecutor(2) as pool:
        closes = [pool.submit(log.close) for _ in range(2)]
        go_on.set()
        assert [close.result(60) for close in closes] == [None, None]


def test_files_and_threads_are_released(tmp_path):
    """Also after failures to open: a locked log, a damaged mark file, a damaged segment."""
    directory = small_log(tmp_path / "log")
    damaged = small_log(tmp_path / "damaged")
    (damaged / "high-watermark").write_bytes(bytes(1024))
    short = small_log(tmp_path / "short")
    os.truncate(segment_paths(short)[0], 100)
    files, threads = descriptors(), threading.active_count()
    for _ in range(3):
        with open_log(directory) as log, open_reader(directory) as reader:
            log.append([value("x")], timestamp=0).result(60)
            assert read_batches(reader)
            with pytest.raises(LogError):
                open_log(directory)
        for bad in (damaged, short):
            assert list(verify(bad))
            with pytest.raises(DecodeError):
                open_log(bad)
        with pytest.raises(DecodeError):
            open_reader(damaged)
        with open_reader(short) as reader, pytest.raises(DecodeError):
            read_batches(reader)
    assert not descriptors() - files
    assert threading.active_count() <= threads
