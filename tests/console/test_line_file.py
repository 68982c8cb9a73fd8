"""Files of lines: whole lines, or none; and a file that is moved away."""

import os

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
