"""Commands that are imported when they are called: their names and lines are known before."""

import click
import pytest

from aclog.cli.app import LazyCommand, app
from aclog.cli.listing import BELOW
from tests.support.cli.command import aclog


def test_completion_knows_the_commands_and_what_they_are_for():
    found = {item.value: item.help for item in app.shell_complete(click.Context(app), "a")}
    assert set(found) == {"accesses", "acls", "apply", "authorize"}
    assert found["acls"].startswith("List, add, remove and copy ACLs")


def test_completion_inside_a_group_imports_it():
    _, command, _ = app.resolve_command(click.Context(app), ["acls", ""])
    assert {item.value for item in command.shell_complete(click.Context(command), "")} == {
        "add",
        "copy",
        "history",
        "list",
        "remove",
    }


def test_a_mistyped_command_is_told_with_the_nearest_one():
    assert aclog("history").complaint.startswith(
        "No such command 'history'. Did you mean 'aclog acls history', 'aclog spark history'?"
    )
    assert "Did you mean 'aclog log verify', 'aclog snapshot verify'?" in aclog("acls", "verify").complaint
    assert aclog("authorise").complaint.startswith("No such command 'authorise'. Did you mean 'authorize'?")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("log print", "dump"), ("log check", "verify"), ("acls create", "add"), ("acls delete", "remove"),
        ("acls describe", "list"), ("context use-context", "use"), ("can-i", "authorize"), ("audit", "report"),
    ],
)  # fmt: skip
def test_a_command_of_another_tool_is_told_with_the_one_that_means_it(words, meant):
    assert f"Did you mean {meant!r}? (see" in aclog(*words.split()).complaint


@pytest.mark.parametrize("command", app.commands.values(), ids=lambda command: command.name)
def test_each_command_has_a_module(command):
    assert isinstance(command, LazyCommand)
    loaded = command.load()
    assert loaded.name == command.name
    assert tuple(getattr(loaded, "commands", ())) == BELOW.get(command.name, ())
