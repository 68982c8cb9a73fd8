"""Kafka's own metadata shell on a checkpoint. It loads in the background: it is asked again until it has.

A shell that gets a command while it loads may never answer, which is seen on a busy machine: it is killed, and another
one started.
"""

import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.kafka.jvm import java_command
from tests.support.processes.waiting import SECONDS

MARK = "/__end-of-answer__"
_STARTS, _SILENCE_SECONDS = 3, SECONDS / 2


class SilentShellError(Exception):
    """The shell ended, or was killed since it did not answer."""


def shell_answers(checkpoint: Path, commands: Sequence[str], *, until: str) -> list[list[str]]:
    """The lines that each command prints; asked when `tree /image/provenance` shows the text `until`."""
    for _ in range(_STARTS - 1):
        try:
            return _started(checkpoint, commands, until)
        except SilentShellError:
            continue
    return _started(checkpoint, commands, until)


def _started(checkpoint: Path, commands: Sequence[str], until: str) -> list[list[str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with TemporaryDirectory() as scratch:  # the shell leaves a directory behind
        options = ("-Xmx512m", f"-Djava.io.tmpdir={scratch}")
        command = java_command("org.apache.kafka.shell.MetadataShell", "--snapshot", str(checkpoint), options=options)
        with subprocess.Popen(command, encoding="utf-8", **pipes) as process:
            try:
                return _answers(process, commands, until)
            finally:
                process.kill()


def _answers(process: subprocess.Popen, commands: Sequence[str], until: str) -> list[list[str]]:
    deadline, lines = time.monotonic() + SECONDS, [""]
    while not any(until in line for line in lines):
        lines = _ask(process, "tree /image/provenance")
        assert time.monotonic() < deadline, f"the shell still shows {lines}"
    return [_ask(process, command) for command in commands]


def _ask(process: subprocess.Popen, command: str) -> list[str]:
    """Send a command, and one that fails in a known way; what is printed before that one's complaint."""
    lines = []
    silence = threading.Timer(_SILENCE_SECONDS, process.kill)
    silence.start()
    try:
        process.stdin.write(f"{command}\ncat {MARK}\n")
        process.stdin.flush()
        for line in process.stdout:
            if MARK in line:
                return lines
            lines.append(line.rstrip("\n").removeprefix(">> "))
    finally:
        silence.cancel()
    raise SilentShellError(f"the shell ended at {command!r}: {lines}")
