"""`--out` of a device or a pipe: it is written into, and stays what it is; nothing is removed or put in its place."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aclog.planning.plan import PLAN_BEGIN
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import Estate, log_with

A, B = acl("a", "User:shop"), acl("b", "User:shop")


@pytest.fixture
def estate(tmp_path):
    found = Estate(tmp_path / "source", log_with(tmp_path / "log", []))
    found.wants(A)
    found.bring()
    found.wants(B)
    return found


def writers(estate) -> dict[str, tuple[object, ...]]:
    """Return command lines that write a file, without `--out`."""
    owned, known = ("--journal", estate.journal), "--no-allow-everyone-if-no-acl-found"
    produce = ("--principal", "User:x", "--intent", "produce", "--topic", "t")
    consume = ("--principal", "User:shop", "--intent", "consume", "--topic", "a")
    return {
        "plan": ("plan", *estate.place, "--want", estate.want, *owned),
        "rollback": ("rollback", *estate.place, *owned),
        "grant": ("grant", *estate.place, *produce, known),
        "revoke": ("revoke", *estate.place, *consume, known),
        "export": ("export", *estate.place, "--format", "jsonl"),
        "terraform": ("export", *estate.place, "--format", "terraform"),
    }


class ReadPipe:
    """A named pipe, and all that is written into it, once."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path, self.content = path, b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self.content = self.path.read_bytes()

    def read(self) -> bytes:
        """Return what was written; fail if nobody has opened the pipe for writing."""
        self._reader.join(20)
        assert not self._reader.is_alive()
        return self.content


@pytest.mark.parametrize("name", ["plan", "rollback", "grant", "revoke", "export", "terraform"])
def test_a_pipe_gets_what_a_file_would_have(estate, tmp_path, name):
    command, file = writers(estate)[name], tmp_path / "file"
    code = aclog(*command, "--out", file).code
    pipe = ReadPipe(tmp_path / "pipe")
    assert aclog(*command, "--out", pipe.path).code == code
    assert stat.S_ISFIFO(pipe.path.lstat().st_mode)
    written, expected = pipe.read(), file.read_bytes()
    assert written[: len(PLAN_BEGIN)] == expected[: len(PLAN_BEGIN)]
    assert len(written.splitlines()) == len(expected.splitlines())
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("name", ["plan", "export"])
def test_a_link_to_a_device_stays_one(estate, tmp_path, name):
    link = tmp_path / "nowhere"
    link.symlink_to(os.devnull)
    assert aclog(*writers(estate)[name], "--out", link).code in {0, 1}
    assert link.readlink() == Path(os.devnull)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_device_that_takes_nothing_is_named_in_the_error(estate, tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    refused = aclog(*writers(estate)["plan"], "--out", full)
    assert (refused.code, refused.complaint) == (2, f"{full}: No space left on device")
    assert full.is_symlink()


def test_a_pipe_whose_reader_ends_is_named_in_the_error(estate, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    log_with(tmp_path / "many", [acl(f"{number}-{'x' * 200}", "User:shop") for number in range(1_000)])

    def read_a_little() -> None:
        with path.open("rb") as file:
            file.read(10)

    reader = threading.Thread(target=read_a_little, daemon=True)
    reader.start()
    refused = aclog("export", "--log", tmp_path / "many", "--format", "jsonl", "--out", path)
    reader.join(20)
    assert (refused.code, refused.complaint) == (2, f"{path}: its reader ended before all was written")
    assert stat.S_ISFIFO(path.lstat().st_mode)


def stdout_of(out: Path, *command: object, mode: str = "wb") -> bytes:
    """Run a command as a process whose stdout is a file; return what is in it then."""
    with out.open(mode) as file:
        done = subprocess.run(
            [sys.executable, "-m", "aclog", *map(str, command)], check=False, stdout=file, stderr=subprocess.PIPE
        )
    assert (done.returncode in {0, 1}, done.stderr) == (True, b"")
    return out.read_bytes()


@pytest.mark.slow(4)
def test_stdout_by_its_name_is_what_it_was_opened_for(estate, tmp_path):
    link = tmp_path / "link"  # of its own, so that a defect leaves the system's as it is
    link.symlink_to("/dev/stdout")
    plan = (*writers(estate)["plan"], "--out", link)
    written = stdout_of(tmp_path / "file", *plan).split(b"\n")
    assert written[0].startswith(b"Plan: ")
    head = next(number for number, line in enumerate(written) if line.startswith(PLAN_BEGIN))
    assert written[head - 1].startswith(b"plan id: ")
    assert link.is_symlink()
    kept = tmp_path / "kept"
    kept.write_bytes(b"before\n")
    rules = aclog(*writers(estate)["export"]).ok().out.encode()
    assert stdout_of(kept, *writers(estate)["export"], "--out", link, mode="ab") == b"before\n" + rules


def test_a_file_that_a_descriptor_has_open_is_added_to(estate, tmp_path):
    kept = tmp_path / "kept"
    kept.write_bytes(b"before\n")
    with kept.open("ab") as file:
        link = tmp_path / "link"
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        aclog(*writers(estate)["export"], "--out", link).ok()
    assert kept.read_bytes().startswith(b"before\n{")
    assert link.is_symlink()
