"""Every `aclog` command line in a block of a page can be typed: command, flags, choices and what must be given."""

import re

import pytest

from aclog.cli.app import app
from tests.docs.commands import ROOT, blocks, command_lines, in_block, pages
from tests.docs.site.command_page import COMMANDS, command_sections
from tests.support.cli.parsing import parsed

NAMED = re.compile(rf"(?<![`\w.-])aclog +(?:-c +\w+ +)?(?:{'|'.join(app.commands)})(?![\w-])")
"""A command of ours, outside a sentence."""


@pytest.mark.parametrize(
    "page", [page for page in pages() if command_lines(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_each_command_line_of_a_page_can_be_typed(page):
    results = [(str(line), parsed(line.words)) for line in command_lines(page)]
    assert [(line, result.err) for line, result in results if result.code] == []


@pytest.mark.tier("test")
def test_no_command_line_is_overlooked():
    lines = 0
    for page in pages():
        for first, language, text in blocks(page):
            seen = list(in_block(language, text))
            assert len(seen) >= len(NAMED.findall(text)), f"{page}:{first}"
            lines += len(seen)
    assert lines > 150


def test_nothing_but_the_synopsis_of_each_command_is_left_out():
    fences = read = 0
    for page in COMMANDS.glob("*.md"):
        fences += sum(line.startswith("```") for line in page.read_text("utf-8").splitlines()) // 2
        read += len(list(blocks(page)))
    assert fences - read == len(command_sections()) > 50


def test_each_form_of_a_command_line_is_read():
    shell = """\
$ export A=1 B=2 && A=1 aclog log dump x > out 2>&1  # a comment
$ cat x | .venv/bin/aclog import - --log 'a b' || [ $? -eq 1 ]
$ aclog diff \\
    --log x \\
    --to-log '' < y; true
aclog: note: what is printed here isn't typed
    aclog acls list --log x
$ pip install 'aclog[web]' && python -m aclog status
"""
    assert list(in_block("console", shell)) == [
        (0, ["log", "dump", "x"]),
        (1, ["import", "-", "--log", "a b"]),
        (2, ["diff", "--log", "x", "--to-log", ""]),
        (6, ["acls", "list", "--log", "x"]),
        (7, ["status"]),
    ]
    runners = """\
uvx --from dist/aclog.whl aclog --help
runuser -u aclog -- /opt/aclog/bin/aclog format c
podman run -d aclog
spark-submit --master M \\
  lib/aclog/__main__.py spark when
useradd --shell x aclog
"""
    assert [words for _, words in in_block("", runners)] == [["--help"], ["format", "c"], ["spark", "when"]]
    assert list(in_block("yaml", '- aclog lint "$A"\n- pip install aclog\n')) == [(0, ["lint", "$A"])]
    assert list(in_block("groovy", "sh 'aclog lint --log \"$A\"'\n")) == [(0, ["lint", "--log", "$A"])]
    servers = '{"a": [{"command": "aclog", "args": ["mcp", "--log", "x"]}], "b": "aclog lint --log=y"}'
    assert [words for _, words in in_block("json", servers)] == [["mcp", "--log", "x"], ["lint", "--log=y"]]
    assert list(in_block("python", """>>> import aclog\n>>> aclog.open_log("it's")\n""")) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("frobnicate", "No such command"),
        ("acls lst", "No such command"),
        ("lint --log x --nope", "No such option"),
        ("grant --principal User:a --intent eat", "is not one of"),
        ("authorize --log x --principal User:a --operation REED --topic t", "is not one of"),
        ("apply", "Missing argument"),
        ("log dump", "Missing argument"),
        ("spark history --log x", "Missing option"),
        ("log dump x --columns", "requires an argument"),
        ("-c none lint", "no context"),
    ],
)
def test_what_cannot_be_typed_is_refused(words, why):
    result = parsed(words.split())
    assert result.code == 2
    assert why in result.complaint


def test_what_can_be_typed_is_not_run():
    result = parsed(["lint", "--log", "nowhere"])
    assert (result.code, result.out, result.err) == (0, "", "")
