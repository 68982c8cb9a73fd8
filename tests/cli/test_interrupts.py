"""Ctrl-C: one line, exit code 130, nothing half-written, and what was committed is said; from imports to the end."""

import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pexpect
import psutil
import pytest

from aclog.cli import acl_changes
from aclog.cli.spark.spark_session import _says_more
from aclog.snapshots.image import Image
from aclog.targets import log
from aclog.targets.log import LogWriter

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
ACLOG = [sys.executable, "-m", "aclog"]
RULE = (
    b'{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"*",'
    b'"operation":"READ","permissionType":"ALLOW"}\n'
)


@pytest.fixture
def silent():
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def wait_until_it_waits(process, *, reads):
    """Return once a process has read its input, if it `reads`, or has a connection, and does nothing for a second."""
    watched, seen, since = psutil.Process(process.pid), 0.0, time.monotonic()
    while not _has_begun(process, watched, reads=reads) or time.monotonic() - since < 1:
        found = watched.cpu_times()
        if found.user + found.system != seen:
            seen, since = found.user + found.system, time.monotonic()
        time.sleep(0.05)


def _has_begun(process, watched, *, reads):
    return not _unread(process.stdin) if reads else watched.net_connections("tcp")


def _unread(pipe):
    """Return how many bytes of a pipe nobody has read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def interrupted(arguments, *, stdin=b""):
    """Return what a command says that is interrupted while it waits, for its input or for a server.

    It gets more interrupts until it ends, as one that arrives just before a wait is handled after it.
    """
    with subprocess.Popen(
        [*ACLOG, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"ACLOG_PAGER": "cat"},
    ) as process:
        process.stdin.write(stdin)
        process.stdin.flush()
        wait_until_it_waits(process, reads=bool(stdin))
        for _ in range(10):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
                break
        assert process.wait() == 130
        said = process.stderr.read().decode().splitlines()
        assert said[-1] == "aclog: interrupted"
        return [line for line in said[:-1] if not line.startswith("aclog: note:")]


@pytest.mark.slow(12)
def test_what_waits_for_input_leaves_nothing(tmp_path):
    new, out = tmp_path / "new", tmp_path / "out"
    assert interrupted(["import", "-", "--log", new], stdin=RULE) == []
    assert interrupted(["acls", "list", "--acls", "-"], stdin=RULE) == []
    assert interrupted(["snapshot", "create", "--acls", "-", "--out", out], stdin=RULE) == []
    assert interrupted(["export", "--acls", "-", "--format", "jsonl", "--out", out], stdin=RULE) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow(12)
@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "--bootstrap-server"),
        ("acls", "list", "--bootstrap-controller"),
        ("doctor", "--bootstrap-server"),
    ],
    ids=lambda words: words[0],
)
def test_what_waits_for_a_server_ends_at_once(arguments, silent):
    assert interrupted([*arguments, silent]) == []


@pytest.mark.process
def test_a_question_is_no_answer():
    words = ["-m", "aclog", "acls", "remove", "--log", str(LOG), "--topic", "orders"]
    plain = {**os.environ, "NO_COLOR": "1"}
    child = pexpect.spawn(sys.executable, words, cwd=str(ROOT), timeout=300, encoding="utf-8", env=plain)
    child.expect(r"\(y/n\)")
    ends = [pexpect.EOF, pexpect.TIMEOUT]
    for _ in range(20):  # one that arrives just before the wait for the answer is handled after it
        child.sendintr()
        if child.expect(ends, timeout=5) == 0:
            break
    child.close()
    assert child.before.rstrip().endswith("aclog: interrupted")
    assert child.exitstatus == 130


@pytest.mark.process
def test_imports_are_interrupted_without_a_traceback():
    code = "import os, signal, sys; from aclog.__main__ import main; sys.argv = ['aclog', '--help'];"
    code += "sys.meta_path.insert(0, type('F', (), {'find_spec': lambda *_: os.kill(os.getpid(), signal.SIGINT)})());"
    done = subprocess.run(
        [sys.executable, "-c", f"{code} main()"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "aclog: interrupted\n")


def test_py4j_adds_no_traceback():
    def said(text):
        return _says_more(logging.LogRecord("root", logging.ERROR, "", 1, text, None, None))

    assert [said(f"{what} while sending command.") for what in ("KeyboardInterrupt", "Exception")] == [False, False]
    assert said("a task was lost")


class InterruptedRunner:
    """Runs nothing: an interrupt comes first."""

    def run(self, work):
        work.close()
        raise KeyboardInterrupt


def test_a_request_that_was_sent_may_be_carried_out(monkeypatch):
    said = []
    monkeypatch.setattr(acl_changes, "warn", said.append)
    connection = mock.Mock(address="broker:9092")
    with pytest.raises(KeyboardInterrupt):
        acl_changes._ServerTarget(InterruptedRunner(), connection).create([])
    [text] = said
    assert text.startswith("broker:9092: the request was sent, and may be carried out")


class Interrupting:
    """A log whose first commit is waited for by a thread that is interrupted meanwhile."""

    name = "log"

    def __init__(self):
        self.commits = []

    def append(self, values, timestamp):
        commit = Future()
        commit.result = self._result(commit)
        self.commits.append(values)
        return commit

    def _result(self, commit):
        waits = iter((KeyboardInterrupt(), None))

        def result():
            if (error := next(waits, None)) is not None:
                threading.Timer(0.05, commit.set_result, (None,)).start()
                raise error
            return Future.result(commit)

        return result

    def end_offset(self):
        return 7 + sum(map(len, self.commits))


@pytest.mark.parametrize("stays", [True, False])
def test_what_was_written_when_the_interrupt_came_is_said(monkeypatch, stays):
    said = []
    monkeypatch.setattr(log, "note", said.append)
    writer = LogWriter(Interrupting(), Image.EMPTY, stays)
    with pytest.raises(KeyboardInterrupt):
        writer.append([b"a", b"b"])
    assert said == (["log: offsets 7 to 8 are written: too late to stop"] if stays else [])
