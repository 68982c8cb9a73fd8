"""Progress on a terminal: what is shown, when, and that it costs neither output nor a line of a note."""

import re
import sys
from pathlib import Path

import pexpect
import pytest

from aclog.terminal import notices as progress_module
from aclog.terminal.bar import _clock

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
HEAD = """
import sys, time
from aclog.terminal import notices as p
from aclog.terminal.bar import Bar, is_shown
from aclog.terminal.output import note

drawings, draw = [], Bar.get_renderables
Bar.get_renderables = lambda bar: drawings.append(1) or draw(bar)

def drawn():
    while not is_shown():
        time.sleep(0.01)
    before = len(drawings)
    while len(drawings) < before + 3:  # when the third frame is begun, two are on the terminal
        time.sleep(0.01)
"""


def on_terminal(code, *, redirect="", env=None):
    """Return what a program leaves on a terminal, as the frames between the places where a line is drawn anew."""
    line = f"exec {sys.executable} -c '{HEAD}{code}' {redirect}"
    variables = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "PYTHONPATH": str(ROOT)} | (env or {})
    child = pexpect.spawn("/bin/sh", ["-c", line], env=variables, timeout=300, encoding="utf-8", dimensions=(24, 100))
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    return child.before


def frames(text):
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", each).strip() for each in re.split(r"\r|\x1b\[2K", text)]


LONG = "p.DELAY_SECONDS = 0.05\nwith p.progress({what}) as advance:\n    {body}"


def long_work(body, what='"working", "rules"'):
    return LONG.format(what=what, body=body)


def test_short_work_shows_nothing():
    assert on_terminal('\nwith p.progress("working") as advance: advance(1, 2)') == ""


def test_long_work_shows_what_how_much_and_how_long():
    body = "[(advance(n * 1000, 40000), n or drawn(), time.sleep(0.02)) for n in range(40)]"
    shown = [each for each in frames(on_terminal(long_work(body))) if "working" in each]
    assert any(re.search(r"working .*\d,000 of 40,000 rules \d:\d\d", each) for each in shown)
    assert any(each.endswith("left") for each in shown)


def test_bytes_are_shown_as_people_write_them():
    body = "(advance(1_000_000, 60_000_000), drawn())"
    assert "of 60.0 MB" in on_terminal(long_work(body, '"reading", p.BYTES'))


def test_work_that_reports_nothing_is_seen_to_be_under_way():
    shown = frames(on_terminal(long_work("drawn()")))
    assert len({each for each in shown if re.search("working +0:0", each)}) > 1  # the spinner turns


def test_notes_and_output_stand_above_the_bar():
    body = '(drawn(), note("seen"), drawn(), print("a line"), drawn())'
    lines = frames(on_terminal(long_work(body)))
    assert {"aclog: note: seen", "a line"} <= set(lines)


def test_nothing_is_left_and_the_cursor_is_never_hidden():
    text = on_terminal(long_work("drawn()"))
    assert "\x1b[?25l" not in text
    assert frames(text)[-1] == ""


def test_only_one_is_shown():
    inner = 'exec("with p.progress(\\"inner\\"): time.sleep(0.4)")'
    text = on_terminal(long_work(f"(drawn(), {inner})".replace("'", '"')))
    assert "working" in text
    assert "inner" not in text


@pytest.mark.parametrize(
    ("redirect", "env"), [("2>&1 | cat", {}), ("", {"TERM": "dumb"})], ids=["a pipe", "a dumb terminal"]
)
def test_nothing_is_shown_where_it_cannot_be(redirect, env):
    assert on_terminal(long_work("time.sleep(0.3)"), redirect=redirect, env=env) == ""


def test_no_color_is_obeyed():
    text = on_terminal(long_work("drawn()"), env={"NO_COLOR": "1"})
    assert "working" in text
    assert not re.search(r"\x1b\[(\d+;)*3[0-7]m", text)


def test_output_to_a_terminal_is_its_own_progress():
    what = '"listing", "ACLs", streams=True'
    assert on_terminal(long_work("time.sleep(0.3)", what)) == ""
    assert "listing" in on_terminal(long_work("drawn()", what), redirect="> /dev/null")


def test_the_first_item_of_output_is_waited_for():
    body = """
p.DELAY_SECONDS = 0.05
def items():
    drawn()
    yield "first"
    time.sleep(0.3)
    yield "second"
for each in p.tracked(items(), "listing", "ACLs", streams=True):
    print(each, is_shown())
"""
    lines = frames(on_terminal(body.replace("'", '"')))
    assert any("listing" in each for each in lines)
    assert {"first False", "second False"} <= set(lines)


def test_items_pass_as_they_are():
    assert list(progress_module.tracked(iter("abc"), "x", "y")) == ["a", "b", "c"]
    assert [_clock(each) for each in (0, 61, 3600 + 62)] == ["0:00", "1:01", "1:01:02"]
