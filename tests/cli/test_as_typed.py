"""What users type out of habit: other names of flags, the version, and no arguments."""

import json
from pathlib import Path

import pytest

from aclog.cli.app import _MEANT
from tests.cli.test_documentation import COMMANDS
from tests.support.cli.command import aclog
from tests.support.cli.parsing import parsed

LOG = Path(__file__).parents[1] / "data" / "week" / "log"


def test_without_arguments_there_are_the_first_steps() -> None:
    first = aclog()
    assert (first.code, first.err) == (2, "")
    assert len(first.lines) == 8
    assert max(map(len, first.lines)) <= 120
    for line in first.lines[2:-1]:
        words = line.split("   ")[0].split()
        assert words[0] == "aclog"
        parsed([{"SOURCE": "DIR"}.get(word, word) for word in words[1:]]).ok()
    assert "Usage: aclog" in aclog("--help").ok().out


@pytest.mark.parametrize("words", [("-V",), ("version",)])
def test_the_version(words: tuple[str, ...]) -> None:
    assert aclog(*words).ok().out == aclog("--version").ok().out
    assert "No such command 'version2'" in aclog("version2").complaint


@pytest.mark.parametrize("words", [("--output", "json"), ("--output=json",), ("-o", "json"), ("-ojson",)])
def test_a_format_by_the_name_that_other_tools_give_it(words: tuple[str, ...]) -> None:
    by_flag = aclog("acls", "list", "--log", LOG, "--format", "json").ok().out
    assert aclog("acls", "list", "--log", LOG, *words).ok().out == by_flag
    assert json.loads(by_flag)
    assert "one of" in aclog("acls", "list", "--log", LOG, "-o", "yaml").complaint


def test_output_is_no_format_where_a_command_has_another_flag_of_such_a_name() -> None:
    refused = aclog("snapshot", "create", "--log", LOG, "-o", "json")
    assert (refused.code, "No such option: -o" in refused.complaint) == (2, True)
    twice = aclog("acls", "list", "--log", LOG, "-o", "json", "--format", "csv")
    assert "--format is given twice, with different values" in twice.complaint


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("acls", "list", "--dir", "x"), "--log"),
        (("console", "--port", "8080"), "--listen"),
        (("lint", "--brokers", "h:1"), "--bootstrap-server"),
        (("what-can", "--user", "a"), "--principal"),
        (("acls", "add", "--user", "a"), "--allow-principal"),
        (("acls", "history", "--after", "1h"), "--since"),
        (("lint", "--env", "prod"), "--context"),
        (("who-can", "--user", "a"), None),
        (("lint", "--port", "1"), None),
    ],
)
def test_a_flag_of_another_tool_is_refused_with_the_one_of_the_same_meaning(
    words: tuple[str, ...], meant: str | None
) -> None:
    hint = "" if meant is None else f" (did you mean {meant}?)"
    complaint = aclog(*words).complaint
    flag = next(word for word in words if word.startswith("-"))
    assert complaint.startswith(f"No such option: {flag}{hint} (see `aclog ")


@pytest.mark.parametrize("flag", ["--principal", "--topic"])
def test_why_names_the_positions_of_what_explain_has_as_flags(flag: str) -> None:
    complaint = aclog("why", "--log", "log", flag, "x").complaint
    positions = "why takes them by position: aclog why PRINCIPAL NAME [SOURCE]"
    assert complaint == f"No such option: {flag}: {positions} (see `aclog why --help`)"


def test_a_mistyped_flag_is_refused_with_those_that_are_spelled_alike() -> None:
    assert "(Possible options: --topic" in aclog("who-can", "--topik", "x").complaint


def test_meanings_lead_to_flags_of_commands_and_are_no_flags_of_the_same_command() -> None:
    options = {
        name: {each for parameter in command.params for each in parameter.opts} for name, command in COMMANDS.items()
    }
    everything = {each for own in options.values() for each in own} | {"--context"}
    for name, meant in _MEANT.items():
        assert {each.split()[0] for each in meant} <= everything, name
