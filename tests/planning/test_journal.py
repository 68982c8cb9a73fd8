"""A journal that is being written: nobody else begins an apply with it, whoever reads it meanwhile."""

import subprocess
import sys
from pathlib import Path

import pytest

from aclog.metalog.errors import LockedError
from aclog.planning.journal import open_journal, read_journal

OTHER = """
import sys
from pathlib import Path
from aclog.metalog.errors import LockedError
from aclog.planning.journal import open_journal
try:
    with open_journal(Path(sys.argv[1]), "x", print, is_new=True):
        print("opened")
except LockedError:
    print("locked")
"""


def other_process(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", OTHER, path], capture_output=True, text=True, check=True, timeout=300
    ).stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a lock is the process's")
@pytest.mark.process
def test_reading_it_in_the_same_process_does_not_unlock_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with open_journal(path, "x", print, is_new=True):
        assert read_journal(path, lambda: "y", print).is_new, "nothing was begun"
        assert other_process(path) == "locked"
        with pytest.raises(LockedError), open_journal(path, "x", print, is_new=False):
            pass
        assert other_process(path) == "locked"
    assert other_process(path) == "opened"
