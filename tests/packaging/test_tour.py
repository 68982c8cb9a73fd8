"""What `make run` shows: in a pipe, on a terminal, and pasted."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pexpect
import pytest

from tests.packaging.conftest import ROOT

pytestmark = [pytest.mark.slow(10), pytest.mark.xdist_group("tour")]  # both write below build/tour

ESCAPE = "\x1b"
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)


def piped(script: str) -> str:
    ended = subprocess.run(
        [str(ROOT / script)],
        cwd="/",
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ESCAPE not in ended.stdout + ended.stderr
    return ended.stdout


def on_a_terminal(script: str, **environment: str) -> str:
    """What a terminal of 100 columns gets; the script ends by itself, and no pager waits for a key."""
    known = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "PAGER", "ACLOG_PAGER"}}
    child = pexpect.spawn(
        str(ROOT / script), env=known | {"TERM": "xterm-256color"} | environment, dimensions=(24, 100), timeout=120,
        encoding="utf-8",
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    return child.before


def parts(shown: str) -> list[tuple[str, str]]:
    """Each command with what stands below it, up to the next command or heading."""
    found = COMMAND.split(shown)[1:]
    return [
        (command, re.split(r"\n\n(?=\d\.|   So|Now)", below)[0].strip())
        for command, below in zip(found[::2], found[1::2], strict=True)
    ]


def test_the_tour_tells_its_story_and_each_command_can_be_pasted(tmp_path: Path):
    told = parts(piped("tour.sh"))
    text = "\n".join(below for _, below in told)
    explained, _, removed, asked, given, then, now, when, *tree = (below for _, below in told)
    assert explained.startswith("DENIED: User:bob WRITE TOPIC 'payments.eu'")
    assert "To allow it:\n  remove DENY User:bob" in explained
    assert removed == ""
    assert asked.startswith("ALLOWED ")
    assert given.startswith("GAINED  User:bob: WRITE on TOPIC payments.*")
    assert (len(then.splitlines()), len(now.splitlines())) == (4, 5)
    assert "User:carol" in now
    assert "User:carol" not in then
    assert len(re.findall("^(?:ALLOWED since|  until) offset", when, re.MULTILINE)) == 3
    assert "S-Xn6z2XSjuee8K6tHhplg" in "".join(tree)
    assert "Traceback" not in text
    for command, below in told[3:]:
        pasted = subprocess.run(
            ["/bin/bash", "-c", command], cwd=ROOT, check=False, capture_output=True, text=True, timeout=300
        )
        assert pasted.stdout.strip() == below, command
        assert len(shlex.split(command)) > 2


def test_a_terminal_gets_colors_unless_told_otherwise():
    assert f"{ESCAPE}[1m1. Bob" in on_a_terminal("tour.sh")
    plain = on_a_terminal("tour.sh", NO_COLOR="1")
    assert "1. Bob" in plain
    assert not re.search(rf"{ESCAPE}\[[0-9;]*m", plain)


@pytest.mark.server
@pytest.mark.tier("test")
def test_the_node_is_started_asked_changed_and_stopped():
    shown = piped("run.sh")
    assert "5. A node that Kafka's own clients manage" in shown
    listed = dict(parts(shown))
    [rules] = [below for command, below in listed.items() if "acls list --bootstrap-server" in command]
    assert "(principal=User:carol, host=*, operation=READ, permissionType=ALLOW)" in rules
    assert re.search(r"^The console: http://127\.0\.0\.1:\d+/$", shown, re.MULTILINE)
    [place] = re.findall(r"^  cd (.+)$", shown, re.MULTILINE)
    assert shlex.split(place) == [str(ROOT)]
