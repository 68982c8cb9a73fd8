"""Colors and hyperlinks: on a terminal only, of program text only, and never of a name's own codes."""

import io
import os
import re
import sys

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import printable
from aclog.terminal import output
from aclog.terminal.colors import painted, painted_cell
from tests.support.cli.command import aclog

CODES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")
ACLS = "acls.jsonl"
HOSTILE = "\x1b]8;;http://evil/\x1b\\orders\x1b[31mDENIED"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working directory with ACLs in two files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    rule = (
        '{{"resourceType":"TOPIC","resourceName":{},"patternType":"LITERAL","principal":"User:a","host":"*",'
        '"operation":"{}","permissionType":"{}"}}\n'
    )
    import json

    (tmp_path / "rules" / ACLS).write_text(
        rule.format('"t"', "READ", "ALLOW") + rule.format(json.dumps(HOSTILE), "WRITE", "DENY")
    )
    (tmp_path / "rules" / "b.jsonl").write_text(rule.format('"t"', "READ", "ALLOW"))
    return tmp_path


LINES = (
    ("why", "a", "t", "rules"),
    ("authorize", "rules", "--principal", "User:a", "--operation", "WRITE", "--topic", "t"),
    ("explain", "rules", "--principal", "User:a", "--operation", "READ", "--topic", "t"),
    ("lint", "rules"),
    ("acls", "list", "rules", "--format", "table"),
    ("diff", "rules", "rules/b.jsonl"),
    ("who-can", "rules", "--operation", "READ", "--topic", "t"),
    ("what-can", "rules", "--principal", "User:a"),
    ("check", "no-public", "rules", "--operation", "READ", "--topic", "t"),
)


@pytest.mark.parametrize("words", LINES, ids=lambda words: words[0])
def test_a_pipe_gets_no_codes_and_always_adds_nothing_else(words, place, monkeypatch):
    plain = aclog(*words)
    assert not CODES.search(plain.out.replace(HOSTILE, "") + plain.err)
    colored = aclog(*words, "--color", "always")
    assert CODES.search(colored.out + colored.err)
    assert aclog("--color", "always", *words) == colored
    bare = CODES.sub("", colored.out)
    assert "\x1b" not in bare
    assert bare == plain.out.replace(HOSTILE, printable(HOSTILE))
    assert aclog(*words, "--color", "never") == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert aclog(*words) == plain


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "markdown"])
def test_rows_for_programs_have_no_codes(form, place):
    always = aclog("acls", "list", "rules", "--format", form, "--color", "always")
    assert always.out == aclog("acls", "list", "rules", "--format", form).ok().out


def test_a_wrong_value_is_refused():
    assert "'auto', 'always', 'never'" in aclog("lint", "--color", "blue").complaint
    assert "'auto', 'always', 'never'" in aclog("--color", "blue", "lint").complaint


@given(st.text())
def test_colors_add_codes_and_change_no_text(text):
    line = printable(text)
    assert CODES.sub("", painted(line, links=True)) == line
    for is_head in (False, True):
        assert CODES.sub("", painted_cell("change", line, is_head=is_head)) == line


@pytest.mark.parametrize(
    ("line", "colored"),
    [
        ("DENIED DefaultDeny", "\x1b[31m\x1b[1mDENIED\x1b[0m DefaultDeny"),
        ("GAINED-x", "GAINED-x"),
        ("topic DENIED", "topic DENIED"),
        ("error [17 x]", "\x1b[31m\x1b[1merror\x1b[0m [17 x]"),
        ("errors", "errors"),
        ("    aclog acls list", "    \x1b[36maclog acls list\x1b[0m"),
        ("User:a: READ", "\x1b[1mUser:a\x1b[0m: READ"),
    ],
)
def test_what_is_colored(line, colored):
    assert painted(line, links=False) == colored


def test_a_location_opens_the_file_that_it_names(place):
    line = painted("ALLOW (rules/b.jsonl:1), nowhere.yaml:2, main:rules/b.jsonl:3", links=True)
    assert line.count("\x1b]8;;file://") == 1
    assert f"{place}/rules/b.jsonl\x1b\\rules/b.jsonl:1\x1b]8;;\x1b\\)" in line


def test_neither_a_dumb_terminal_nor_no_color_gets_codes(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, kind in ((Terminal(), "xterm"), (Terminal(), "dumb"), (io.StringIO(), "xterm")):
        monkeypatch.setenv("TERM", kind)
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert output.has_colors(stream) == (stream.isatty() and kind != "dumb")
        monkeypatch.setenv("NO_COLOR", "1")
        assert not output.has_colors(stream)


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "codes", "links"), [("xterm", True, True), ("linux", True, False), ("dumb", False, False)]
)
def test_on_a_real_terminal(kind, codes, links, place):
    child = pexpect.spawn(
        sys.executable, ["-m", "aclog", "lint", "rules", "--no-pager"],
        env={**os.environ, "TERM": kind}, dimensions=(40, 100), timeout=300, encoding="utf-8",
    )  # fmt: skip
    text = child.read()
    child.close()
    assert ("\x1b[" in text, "\x1b]8;;file" in text) == (codes, links)
    assert "http://evil/\x1b" not in text


def test_another_case_is_reported_before_the_verdict(place):
    asked = ("rules", "--principal", "user:A", "--operation", "READ", "--topic", "t")
    note = "note: no ACL names user:A: did you mean User:a? (upper and lower case differ)"
    for command in ("authorize", "explain"):
        assert note in aclog(command, *asked).err
    assert "no ACL names" not in aclog("authorize", *asked[:2], "User:b", *asked[3:]).err
