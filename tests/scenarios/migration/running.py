"""`aclog migrate` in processes of its own: run to the end, killed, or dying in a given system call.

`python -m tests.scenarios.migration.running ARGUMENT...` is the `aclog` command. The class Dying forks commands from a
process that has imported everything; these write batches of 200 records, so that there are many calls to die in.
"""

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Self

import kazoo.client  # imported once, for all forks
import kazoo.handlers.threading  # noqa: F401

import aclog.cli.migration
import aclog.ops.migrate
import aclog.targets.log
import aclog.zookeeper.session
from aclog.__main__ import run
from aclog.metalog.filelog.files import list_segments
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.kafka.jvm import ROOT
from tests.support.processes.mirror_zygote import DIED, dying_at
from tests.support.processes.waiting import SECONDS

_FEW_BYTES = 20_000
_ZYGOTE = "--zygote"


def start(*arguments: object, **pipes: object) -> subprocess.Popen[str]:
    """Start a command, which the caller ends."""
    command = [sys.executable, "-m", "tests.scenarios.migration.running", *map(str, arguments)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    return subprocess.Popen(command, cwd=ROOT, encoding="utf-8", **streams)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a command; return its exit code, stdout and stderr."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a command that ends although its stdin stays open; return its exit code, stdout and stderr."""
    err = process.stderr.read()
    code, out, _ = finish(process)
    return code, out, err


def image_in(directory: Path) -> Image:
    """Return what a reader sees in a log directory; nothing if there is no log."""
    return recover(directory).image if directory.is_dir() and list_segments(directory) else Image.EMPTY


class Dying:
    """Runs commands that die at a given system call, forked from a process that lives as long as the `with`."""

    def __enter__(self) -> Self:
        self._process = start(_ZYGOTE, stdin=subprocess.PIPE, stderr=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()

    def run(self, number: int, *arguments: object) -> int:
        """Run a command that dies at the call of this number; return its exit code, DIED if it got that far."""
        self._process.stdin.write(shlex.join([str(number), *map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def fork_commands() -> None:
    """Fork a command for each line of stdin, a number and arguments; write its exit code to stdout."""
    for line in sys.stdin:
        number, *arguments = shlex.split(line)
        child = os.fork()
        if not child:
            os._exit(dying(int(number), arguments))
        os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())


def dying(number: int, arguments: list[str]) -> int:
    """Run a command in a forked process, without output."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.stdin = io.StringIO()
        aclog.targets.log.MAX_BYTES = _FEW_BYTES
        dying_at(number)
        return run(arguments)
    except BaseException:  # noqa: BLE001 - reported by the exit code
        return 1


__all__ = ["DIED", "Dying", "finish", "image_in", "start"]

if __name__ == "__main__":
    if sys.argv[1:] == [_ZYGOTE]:
        fork_commands()
    else:
        sys.exit(run(sys.argv[1:]))
