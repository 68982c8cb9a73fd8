"""Every command and option is documented, every documented one exists, and every example in a help parses."""

import re
import shlex
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import pytest

from aclog.cli.app import LazyCommand, app
from tests.docs.site.command_page import command_sections
from tests.support.cli.command import aclog
from tests.support.cli.parsing import parsed

ROOT = Path(__file__).parents[2]
GENERAL = (ROOT / "docs/commands/README.md").read_text()
SECTIONS = command_sections()


def loaded(command):
    """Return a command itself, if it is one that is imported only when it is called."""
    return command.load() if isinstance(command, LazyCommand) else command


def commands(command, path=()) -> Iterator[tuple[str, object]]:
    """Yield every leaf command with the words that call it."""
    command = loaded(command)
    if hasattr(command, "commands"):
        for name, sub in command.commands.items():
            yield from commands(sub, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(commands(app))


def section(name):
    """Return what the pages say of one command."""
    return SECTIONS.get(name, "")


SHARED = (
    "--log", "--snapshot", "--acls", "--as-of", "--bootstrap-controller", "--bootstrap-server", "--command-config",
    "--ref", "--acls-format", "--module", "--exclude", "--accept-unread", "--topics", "--timezone",
    "--var-file", "--var", "--workspace",
)  # fmt: skip


def options(command):
    """Return the options of a command, also those that switch a flag off."""
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


OUTPUT = ("--columns", "--no-pager")
SECOND_STATE = (
    "--to-log", "--to-snapshot", "--to-acls", "--to-as-of", "--to-bootstrap-controller", "--to-bootstrap-server",
    "--to-command-config", "--to-context", "--change", "--add", "--remove", "--to-ref", "--to-acls-format",
)  # fmt: skip
OPPOSITES = ("--no-allow-everyone-if-no-acl-found", "--no-cidr")
COMPARED = ("--no-to-allow-everyone-if-no-acl-found", "--no-to-cidr")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_section_with_each_of_its_options(name):
    text = section(name)
    assert f"aclog {name}" in text
    for parameter in COMMANDS[name].params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            documented = text + (section("acls list") + section("acls add") if name.startswith("acls") else "")
            documented += section("authorize") if name == "explain" else ""
            if (option in SHARED and "SOURCE" in text) or (option in SECOND_STATE and "TARGET" in text):
                documented += GENERAL[: GENERAL.index("## ")]
            documented += section("diff") if option in COMPARED else ""
            documented += section("authorize") if option in OPPOSITES else ""
            if option in OUTPUT and "(README.md#output)" in text:
                documented += GENERAL[GENERAL.index("## Output") :]
            if option.startswith("--") and option != "--help":
                assert re.search(rf"{option}\b", documented), f"{name} {option} is not documented"


def test_every_documented_command_exists():
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_documented_option_exists(name):
    known = options(COMMANDS[name]) | {"--help"}
    everywhere = {option for command in COMMANDS.values() for option in options(command)}
    usage = re.search(r"```\n(.*?)```", section(name), re.DOTALL)[1]
    assert set(re.findall(r"--[a-z][a-z-]*", usage)) <= known
    assert set(re.findall(r"--[a-z][a-z-]*", section(name))) <= everywhere | {"--help"}


def examples(text):
    """Yield the arguments of indented `aclog` command lines, without pipes, redirections and remarks."""
    for line in re.findall(r"^  +(?:.*\| |\$ )?aclog (.*)$", text, re.MULTILINE):
        yield shlex.split(re.split(r" [|>] |  \(", line)[0].replace(" ...", ""), comments=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example_that_can_be_typed(name):
    found = list(examples(COMMANDS[name].help))
    assert found
    for words in found:
        parsed(words).ok()


def test_the_examples_of_the_first_help_can_be_typed():
    found = list(examples(app.help))
    assert len(found) >= 5
    for words in found:
        parsed(words).ok()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option_in_full_on_a_common_terminal(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = aclog(*name.split(), "--help").ok().out.split()
    for parameter in COMMANDS[name].params:
        assert parameter.param_type_name == "argument" or set(parameter.opts) <= set(words)


def test_help_shows_every_default_by_name():
    """The number of an enum member would be a useless default in help."""
    for command in COMMANDS.values():
        for parameter in command.params:
            assert not isinstance(parameter.default, IntEnum)


@pytest.mark.parametrize("command", app.commands.values(), ids=lambda command: command.name)
def test_the_first_help_tells_of_each_command_what_its_own_help_begins_with(command):
    assert command.help == command.load().help.partition("\n\n")[0]
