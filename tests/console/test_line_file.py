"""Files of lines: whole lines, or none; and a file that is moved away."""

import errno
import os
import resource
import signal

import pytest

from aclog.console.shared import LineFile


def test_a_line_that_is_torn_ends_before_the_next(tmp_path, monkeypatch):
    file, write = LineFile(tmp_path / "f"), os.write
    file.append("one")
    monkeypatch.setattr(os, "write", lambda number, data: write(number, data[:2]))
    with pytest.raises(OSError, match="not written whole"):
        file.append("two")
    monkeypatch.setattr(os, "write", write)
    file.append("\ud800 three")
    file.append("four")
    assert (tmp_path / "f").read_text() == "one\ntw\n\\ud800 three\nfour\n"
    file.close()


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path):
    file = LineFile(tmp_path / "f")
    file.append("one")
    (tmp_path / "f").rename(tmp_path / "f.1")
    file.append("two")
    file.reopen()
    file.append("three")
    file.close()
    assert (tmp_path / "f.1").read_text() == "one\ntwo\n"
    assert (tmp_path / "f").read_text() == "three\n"


def test_a_full_disk_is_named_with_the_file_and_no_restart_is_needed(tmp_path, monkeypatch):
    file, write = LineFile(tmp_path / "f"), os.write
    file.append("one")
    file.check()

    def full(number, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for attempt in (lambda: file.append("two"), file.check):
        with pytest.raises(OSError, match=f"{tmp_path}/f: No space left on device: free space on its disk"):
            attempt()
    monkeypatch.setattr(os, "write", write)
    file.check()
    file.append("three")
    file.close()
    assert (tmp_path / "f").read_text().split() == ["one", "three"]


def test_a_line_that_a_limit_of_the_system_cuts_is_refused(tmp_path):
    file = LineFile(tmp_path / "f")
    file.append("one")
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6, before[1]))
        with pytest.raises(OSError, match="not written whole"):
            file.append("two and more")
        with pytest.raises(OSError, match="File too large"):
            file.append("three")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    file.append("four")
    file.close()
    assert (tmp_path / "f").read_text() == "one\ntw\nfour\n"
