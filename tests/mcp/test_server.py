"""The process of `aclog mcp`: what it says on stdout, how it ends, and what it refuses to start with."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import anyio
import psutil
import pytest

from aclog.installation import install_command
from aclog.mcp.server import ChildCommands
from aclog.mcp.tools import AskedState, CommandLine
from aclog.ops import extras
from tests.support.cli.command import aclog
from tests.support.processes.waiting import SECONDS

HELLO = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
}  # fmt: skip


class Served:
    """A server that was asked about files that never end: named pipes that nobody writes to."""

    def __init__(self, directory, *flags: str):
        os.mkfifo(directory / "acls.jsonl")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aclog", "mcp", "--acls", directory / "acls.jsonl", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.send(id=1, method="initialize", params=HELLO)
        assert self.read()["result"]["serverInfo"]["name"] == "aclog"
        self.send(method="notifications/initialized")

    def send(self, **message: object) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def begin(self) -> list[psutil.Process]:
        """Ask something, and return the processes that look for the answer."""
        self.send(id=2, method="tools/call", params={"name": "lint", "arguments": {}})
        deadline = time.monotonic() + SECONDS
        while not (children := psutil.Process(self.process.pid).children(recursive=True)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return children

    def ended(self, children: list[psutil.Process]) -> tuple[int, list[dict], bytes]:
        """Wait until all have ended; return the exit code, the messages that were left, and stderr."""
        out, err = self.process.communicate(timeout=SECONDS)
        assert not psutil.wait_procs(children, timeout=SECONDS)[1]
        return self.process.returncode, list(map(json.loads, out.splitlines())), err


@pytest.mark.process
def test_it_ends_with_its_stdin_and_leaves_nothing(tmp_path):
    served = Served(tmp_path)
    code, _, err = served.ended(served.begin())
    assert (code, err) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.sample(1)
@pytest.mark.process
def test_it_ends_at_a_signal_and_leaves_nothing(tmp_path, number):
    served = Served(tmp_path)
    children = served.begin()
    served.process.send_signal(number)
    assert served.ended(children) == (-number, [], b"")


@pytest.mark.process
def test_an_assistant_that_is_gone_is_no_error(tmp_path):
    served = Served(tmp_path)
    children = served.begin()
    served.process.stdout.close()
    served.process.stdin.close()
    assert served.process.wait(SECONDS) == 0
    assert not psutil.wait_procs(children, timeout=SECONDS)[1]
    assert served.process.stderr.read() == b""
    served.process.stderr.close()


@pytest.mark.process
def test_what_takes_too_long_or_is_cancelled_ends_and_the_server_goes_on(tmp_path):
    served = Served(tmp_path, "--time-limit", "1")
    children = served.begin()
    result = served.read()["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("no answer after 1 s: narrow the question")
    assert not psutil.wait_procs(children, timeout=SECONDS)[1]
    children = served.begin()
    served.send(method="notifications/cancelled", params={"requestId": 2})
    assert not psutil.wait_procs(children, timeout=SECONDS)[1]
    served.send(id=3, method="ping")
    while served.read()["id"] != 3:
        pass
    assert served.ended([])[0] == 0


@pytest.mark.process
def test_bad_messages_are_answered_or_passed_over(tmp_path):
    served = Served(tmp_path)
    for line, code in (
        (b"{", -32700), (b"no json \x1b[31m", -32700), (b"\xff\xfe", -32700), (b'{"id":1}{"id":2}', -32700),
        (b"[" * 5000, -32700), (b"[]", -32600), (b'"x"', -32600), (b"null", -32600), (b'{"jsonrpc":"1.0"}', -32600),
    ):  # fmt: skip
        served.process.stdin.write(line + b"\n")
        served.send(id=7, method="ping")
        message = served.read()
        assert message["id"] is None, f"{line!r} is passed over"
        assert served.read()["id"] == 7
        assert (message["id"], message["error"]["code"]) == (None, code), line
        assert b"\x1b" not in json.dumps(message).encode()
        assert "31m" not in message["error"]["message"], "what is no message is not repeated"
    for line in (b"", b"  ", b'{"jsonrpc":"2.0","id":9,"method":"tools/call"}'):
        served.process.stdin.write(line + b"\n")
    served.send(id=4, method="tools/call", params={"name": "acls_remove", "arguments": {}})
    served.send(id=5, method="tools/call", params={"name": "lint", "arguments": {"select": "\ud800"}})
    served.send(id=6, method="ping")
    found = {}
    while not {4, 6, 9} <= found.keys():
        message = served.read()
        found[message.get("id")] = message
    assert "error" in found[9]
    assert "no tool 'acls_remove'" in found[4]["error"]["message"]
    assert served.ended([])[0] == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "exactly one state source must be given"),
        (("--acls", "-"), "--acls -: the assistant speaks on stdin: expected a file"),
        (("--acls", "x", "--topics", "-"), "--topics -: the assistant speaks on stdin: expected a file"),
        (("--log", __file__), "not a directory"),
        (("--log", "x", "--as-of", "soon"), "soon"),
        (("--log", "x", "--time-limit", "0"), "--time-limit"),
        (("--log", "x", "--super-users", "root"), "super.users: expected"),
    ],
)
def test_what_it_is_started_with_is_checked_at_once(flags, said):
    result = aclog("mcp", *flags)
    assert (result.code, result.out) == (2, "")
    assert said in result.complaint


def test_without_its_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "mcp" else find_spec(name))
    result = aclog("mcp", "--acls", "x")
    assert result.code == 2
    assert install_command("mcp") in result.complaint


@pytest.mark.process
def test_what_lies_in_the_working_directory_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("json", "typing", "aclog", "attrs"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('run')")
    (tmp_path / "acls.jsonl").write_text("")
    state = AskedState(source="acls.jsonl", end_offset=None, why_none="", as_of=None)
    line = CommandLine(words=("lint", "--acls=acls.jsonl"), stdin=None, state=state, to_state=None)
    said: list[bytes] = []
    ended = anyio.run(ChildCommands(SECONDS).run, line, said.append)
    assert (ended.code, ended.error) == (0, None)
    assert b"".join(said)
