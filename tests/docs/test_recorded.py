"""Pages that begin with a quick start: their command lines print what the pages say, and others can be typed."""

import re
import shlex

import pytest
from typer.main import get_command

from aclog.cli.app import app
from aclog.cli.lazy_commands import LazyCommand
from tests.docs.recorded import pages, written

OTHER = re.compile(r"^ *```\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_says_what_its_commands_print(page):
    text = page.read_text("utf-8")
    assert written(text) == text, "run: .venv/bin/python -m tests.docs.recorded"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_commands_for_a_cluster_can_be_typed(page):
    for block in OTHER.findall(page.read_text("utf-8")):
        for line in map(str.strip, block.splitlines()):
            if line.startswith("aclog "):
                parse(shlex.split(line)[1:])


def parse(words):
    """Parse a command line without running it; raise if it is invalid."""
    command = get_command(app)
    while words[0] in ("-c", "--context"):
        words = words[2:]
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
        command = command.load() if isinstance(command, LazyCommand) else command
    command.make_context("aclog", words, resilient_parsing=False)
