"""Pagers and tables on real terminals: what a person sees, and the exit code."""

import json
import os
import re
import sys

import pexpect
import pytest
from rich.cells import cell_len

from tests.support.cli.shells import program

# Since Python 3.12 forking a process with threads, such as a test worker, is a warning
pytestmark = [pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"), pytest.mark.process]

ESCAPE = "\x1b[31m"
LONG = "payments." + "very-long-region-name." * 4 + "orders"
WIDE = "注文" * 20
WAITING = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # one that comes before the wait is not lost
sys.stdin.buffer.read()
print("READ", flush=True)
signal.sigwait({signal.SIGINT})
print("ENDED")
"""
"""A pager that ends at an interrupt."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with ACLs, no ACLs, and pagers."""
    directory = tmp_path_factory.mktemp("paged")
    names = [LONG, WIDE, ESCAPE, *(f"t{number}" for number in range(300))]
    rows = [
        {
            "resourceType": "TOPIC", "resourceName": name, "patternType": "LITERAL", "principal": "User:alice",
            "host": "*", "operation": "DESCRIBE_CONFIGS", "permissionType": "ALLOW", "id": None,
        }
        for name in names
    ]  # fmt: skip
    (directory / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (directory / "few.jsonl").write_text("\n".join(map(json.dumps, rows[:3])))
    (directory / "none.jsonl").write_text("")
    (directory / "marked").write_text("#!/bin/sh\necho BEGIN; cat; echo END\n")
    (directory / "one-line").write_text('#!/bin/sh\nread line; echo "$line" | cut -c1-4\n')
    (directory / "failing").write_text("#!/bin/sh\ncat >/dev/null; exit 3\n")
    (directory / "waiting").write_text(f"#!{sys.executable} -IS\n{WAITING}")
    for name in ("marked", "one-line", "failing", "waiting"):
        (directory / name).chmod(0o755)
    return directory


def typed(place, *words, columns=200, **environment):
    """Start a command line on a terminal."""
    kept = {
        name: value for name, value in os.environ.items() if name not in {"PAGER", "ACLOG_PAGER", "LESS", "COLUMNS"}
    }
    # Not with stderr on the terminal: a progress bar would be part of what is seen.
    words = ["-c", 'exec "$0" -m aclog "$@" 2>errors', sys.executable, *words]
    chosen = {**kept, "TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": os.getcwd(), **environment}  # noqa: PTH109 - of the checkout
    return pexpect.spawn(
        "/bin/sh", words, cwd=place, env=chosen, dimensions=(24, columns), encoding="utf-8", timeout=300
    )


def with_less():
    """Have less on the path, which is the pager if none is chosen."""
    return {"PATH": f"{os.environ['PATH']}{os.pathsep}{os.path.dirname(program('less'))}"}  # noqa: PTH120


def screen(child):
    """Return the lines of a command that ends by itself, and its exit code."""
    said = child.read()
    child.close()
    return said.replace("\r\n", "\n").splitlines(), child.exitstatus


LIST = ("acls", "list", "--acls", "many.jsonl")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (LIST, {"ACLOG_PAGER": "./marked", "PAGER": "false"}),
        (LIST, {"PAGER": "./marked"}),
        (LIST, {"ACLOG_PAGER": "A=1 ./marked | cat"}),
    ],
)
def test_all_of_it_goes_through_the_chosen_pager(words, environment, place):
    lines, code = screen(typed(place, *words, **environment))
    assert (lines[0], lines[-1], code) == ("BEGIN", "END", 0)
    assert lines[1].split()[:4] == ["TYPE", "NAME", "PATTERN", "PRINCIPAL"]
    assert len(lines) == 306
    assert not any("\x1b" in line for line in lines)  # a pager is a terminal to a name


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (LIST, {"ACLOG_PAGER": ""}),
        (LIST, {"ACLOG_PAGER": "cat", "PAGER": "./marked"}),
        (LIST, {"PAGER": "no-such-pager"}),
        (LIST, {"ACLOG_PAGER": "./marked", "TERM": "dumb"}),
        ((*LIST, "--no-pager"), {"ACLOG_PAGER": "./marked"}),
        (("--no-pager", *LIST), {"ACLOG_PAGER": "./marked"}),
    ],
)
def test_no_pager_if_none_is_wanted(words, environment, place):
    lines, code = screen(typed(place, *words, **environment))
    assert (lines[0][:4], len(lines), code) == ("TYPE", 304, 0)


def test_to_leave_the_pager_early_is_no_error(place):
    lines, code = screen(typed(place, *LIST, ACLOG_PAGER="./one-line"))
    assert (lines, code) == (["TYPE"], 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("pager", ["./marked", "./one-line", "./failing"])
def test_the_exit_code_is_the_commands(pager, place):
    _, code = screen(typed(place, "diff", "--acls", "few.jsonl", "--to-acls", "many.jsonl", ACLOG_PAGER=pager))
    assert code == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("pager", ["./failing", "'no-such'", "'x"])
def test_a_pager_that_fails_is_told_of(pager, place):
    _, code = screen(typed(place, *LIST, ACLOG_PAGER=pager))
    assert code == 0
    said = (place / "errors").read_text().splitlines()[-1]
    assert said.startswith("aclog: note: the pager failed with exit code ")
    assert said.endswith(f": {pager}: use --no-pager")


def test_ctrl_c_is_the_pagers(place):
    child = typed(place, *LIST, ACLOG_PAGER="./waiting")
    child.expect_exact("READ")
    child.sendintr()
    child.expect_exact("ENDED")
    assert screen(child) == ([""], 0)


def test_nothing_is_started_for_an_error(place):
    assert screen(typed(place, *LIST, "--columns", "x", ACLOG_PAGER="./marked")) == ([], 2)
    assert (place / "errors").read_text().startswith("aclog: --columns: no column 'x': expected")


@pytest.mark.slow(1)  # which says that less may have to be fetched
def test_less_shows_a_screen_and_ends_by_q(place):
    child = typed(place, *LIST, **with_less())
    child.expect("TYPE +NAME")
    child.expect(":")
    child.send("q")
    rest, code = screen(child)
    assert code == 0
    assert "Traceback" not in "\n".join(rest)
    assert not any("t299" in line for line in rest)


@pytest.mark.slow(1)
def test_less_leaves_what_fits_on_the_screen(place):
    lines, code = screen(typed(place, "acls", "list", "--acls", "few.jsonl", **with_less()))
    assert code == 0
    assert sum("ALLOW" in line for line in lines) == 3


@pytest.mark.sample(1)
@pytest.mark.parametrize("columns", [80, 200])
def test_a_table_fits_the_terminal(columns, place):
    lines, _ = screen(typed(place, *LIST, "--no-pager", columns=columns))
    assert max(map(cell_len, lines)) <= columns
    assert len(lines) == 304
    assert all("DESCRIBE_CONFIGS" in line for line in lines[1:])
    note = "aclog: note: no room for id, place: a wider terminal, --columns, or a pipe shows more\n"
    assert (place / "errors").read_text() == (note if columns == 80 else "")
    shown = next(line.split()[1] for line in lines if "paym" in line)
    assert (shown == LONG) is (columns == 200)
    assert shown == LONG or (shown.startswith("paym") and shown.endswith("ders") and "…" in shown)


def test_a_narrow_terminal_gets_whole_names_in_blocks(place):
    lines, code = screen(typed(place, "acls", "list", "--acls", "few.jsonl", "--no-pager", columns=50))
    assert code == 0
    assert [line for line in lines if line.startswith("resourceName: ")] == [
        r"resourceName: \x1b[31m", f"resourceName: {LONG}", f"resourceName: {WIDE}",
    ]  # fmt: skip
    assert lines[5:9] == ["operation: DESCRIBE_CONFIGS", "permissionType: ALLOW", "id: -", "place: few.jsonl:3"]


def test_no_color_takes_only_the_codes_and_a_pipe_has_none(place):
    plain = screen(typed(place, *LIST, "--no-pager"))
    lines, code = screen(typed(place, *LIST, "--no-pager", NO_COLOR=""))
    assert any("\x1b" in line for line in lines)
    assert ([re.sub(r"\x1b\[[0-9]+m", "", line) for line in lines], code) == plain
    assert not any("\x1b" in line for line in plain[0])


def test_chosen_columns_stay(place):
    lines, _ = screen(typed(place, *LIST, "--columns", "operation,resourceName", "--no-pager", columns=50))
    assert lines[0].split() == ["OPERATION", "NAME"]
    assert len(lines) == 304
    assert max(map(cell_len, lines)) <= 50
