"""`aclog migrate` in processes of its own: run to the end, killed, or dying in the midst of a call that changes things.

`python -m tests.scenarios.migration.running ARGUMENT...` is the command, as anybody's. The class Dying forks commands
off a process that has everything imported; as they are to die, they write batches of 200 records: there are many then.
"""

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Self

import kazoo.client  # imported once, for all that are forked
import kazoo.handlers.threading  # noqa: F401

import aclog.cli.log_writer
import aclog.cli.migrate.dispatch
import aclog.zkstore.client.session
from aclog.__main__ import run
from aclog.metalog.filelog.file_names import list_segments
from aclog.snapshots.image import Image
from aclog.snapshots.recovery import recover
from tests.support.kafka.jvm import ROOT
from tests.support.processes.mirror_zygote import DIED, dying_at

SECONDS = 120
_FEW = 200
_ZYGOTE = "--zygote"


def start(*arguments: object, **pipes: object) -> subprocess.Popen[str]:
    """Begin a command; whoever starts it ends it."""
    command = [sys.executable, "-m", "tests.scenarios.migration.running", *map(str, arguments)]
    told = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    return subprocess.Popen(command, cwd=ROOT, encoding="utf-8", **told)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for its end: exit code, stdout, stderr."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


def image_in(directory: Path) -> Image:
    """What a reader sees in a log's directory; nothing where none is."""
    return recover(directory).image if directory.is_dir() and list_segments(directory) else Image.EMPTY


class Dying:
    """Runs commands that die at a call of a number; a `with` ends the process that forks them."""

    def __enter__(self) -> Self:
        self._process = start(_ZYGOTE, stdin=subprocess.PIPE, stderr=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def run(self, number: int, *arguments: object) -> int:
        """The exit code of a command that dies at the call of this number, with DIED, or comes to its end."""
        self._process.stdin.write(shlex.join([str(number), *map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def fork_commands() -> None:
    """A number and a command line on each line of stdin; the exit code on stdout."""
    for line in sys.stdin:
        number, *arguments = shlex.split(line)
        child = os.fork()
        if not child:
            os._exit(dying(int(number), arguments))
        os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())


def dying(number: int, arguments: list[str]) -> int:
    """Run a command in a forked process, which says nothing."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.stdin = io.StringIO()
        aclog.cli.log_writer.MOST_RECORDS = _FEW
        dying_at(number)
        return run(arguments)
    except BaseException:  # noqa: BLE001 - the exit code tells of it
        return 1


__all__ = ["DIED", "Dying", "finish", "image_in", "start"]

if __name__ == "__main__":
    if sys.argv[1:] == [_ZYGOTE]:
        fork_commands()
    else:
        sys.exit(run(sys.argv[1:]))
