"""The prompt in a real terminal, its history and its completion."""

import os
import stat
import sys
from pathlib import Path

import pexpect
import pytest
from prompt_toolkit.history import FileHistory, InMemoryHistory

from aclog.shell.prompt import history_path, open_history, prompt_text
from tests.support.cli.shell_sources import SMALL, fixture_image, session

# Since Python 3.12 forking a process with threads, such as a test worker, is a warning
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

LOG = SMALL / "__cluster_metadata-0"


def spawn(tmp_path, *, term="xterm", arguments=()):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": term, "PROMPT_TOOLKIT_NO_CPR": "1"}
    command = ["-m", "aclog", "shell", "--log", str(LOG), *arguments]
    return pexpect.spawn(
        sys.executable, command, env=environment, encoding="utf-8", dimensions=(40, 100), timeout=300, echo=False
    )


@pytest.mark.slow(3)
def test_a_session_in_a_terminal(tmp_path):
    shell = spawn(tmp_path)
    shell.expect("Tab completes")
    shell.expect_exact("/>")
    shell.send("cat /image/prov\t")
    shell.expect_exact("enance")
    shell.send("\r")
    shell.expect(r"offset 230, epoch 2, time 2026-11-21T02:25:\S+Z\[UTC\]")
    shell.expect_exact("/>")
    shell.send("cat /nothi")
    shell.send("\x03")  # Ctrl-C drops the line
    shell.expect_exact("/>")
    shell.send("cd /acl\r")
    shell.expect_exact("/acl>")
    shell.send("at 69\r")
    shell.expect_exact("/acl@69>")
    shell.send("at latest\r")
    shell.expect_exact("/acl>")
    shell.send("watch\r")
    shell.expect("watching . from offset 231; stop with Ctrl-C")
    shell.send("\x03")  # Ctrl-C ends a command, not the shell
    shell.expect_exact("/acl>")
    shell.send("nonsense\r")
    shell.expect("invalid choice: 'nonsense'")
    shell.expect_exact("/acl>")
    shell.send("\x04")  # Ctrl-D leaves
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0
    remembered = tmp_path / "aclog" / "shell-history"
    assert stat.S_IMODE(remembered.stat().st_mode) == 0o600
    assert "+watch" in remembered.read_text("utf-8")

    again = spawn(tmp_path)
    again.expect_exact("/>")
    again.send("\x1b[A")  # the line before, of the session before
    again.expect_exact("nonsense")
    again.send("\x03")
    again.expect_exact("/>")
    again.send("quit\r")
    again.expect(pexpect.EOF)
    again.close()
    assert again.exitstatus == 0


@pytest.mark.process
def test_a_dumb_terminal_is_enough(tmp_path):
    shell = spawn(tmp_path, term="dumb", arguments=("--as-of", "69"))
    shell.expect_exact("/@69>")
    shell.send("ls /scram\r")
    shell.expect("admin")
    shell.expect_exact("/@69>")
    shell.send("exit\r")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0


def test_where_lines_are_remembered():
    home = Path("/home/someone")
    assert history_path({"XDG_STATE_HOME": "/var/state"}, home) == Path("/var/state/aclog/shell-history")
    for environment in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert history_path(environment, home) == Path("/home/someone/.local/state/aclog/shell-history")


def test_a_history_is_private_and_does_without_a_file_where_there_can_be_none(tmp_path):
    path = tmp_path / "deep" / "er" / "shell-history"
    assert isinstance(open_history(path), FileHistory)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    assert isinstance(open_history(occupied / "shell-history"), InMemoryHistory)


@pytest.mark.parametrize(
    ("names", "moment", "expected"),
    [((), None, "/> "), (("acl", "principal", "a/b"), None, "/acl/principal/a%2Fb> "), (("acl",), 69, "/acl@69> ")],
)
def test_the_prompt_tells_where_one_is(names, moment, expected):
    assert prompt_text(session(fixture_image(SMALL, 69), working_directory=names, moment=moment)) == expected
