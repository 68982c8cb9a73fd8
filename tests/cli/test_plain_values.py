"""Values of flags: what a type makes of a word of the command line, and what the error says."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click
import pytest

from aclog.authorizer.codes import AclOperation
from aclog.cli.flags.common import OPERATIONS, named
from aclog.cli.options import Argument, Command, Option


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


def command(
    needed: Annotated[str, Argument()],
    rest: Annotated[list[Path] | None, Argument()] = None,
    name: Annotated[str | None, Option("--name")] = None,
    names: Annotated[list[str] | None, Option("--names")] = None,
    color: Annotated[Color, Option("--color")] = Color.RED,
    place: Annotated[Path | None, Option("--place")] = None,
    count: Annotated[int, Option("--count", min=1, max=9)] = 3,
    share: Annotated[float, Option("--share")] = 0.5,
    operation: Annotated[AclOperation | None, Option("--operation", parser=named(OPERATIONS))] = None,
    quick: Annotated[bool, Option("--quick/--slow")] = False,
) -> dict[str, object]:
    return {name: value for name, value in locals().items() if value != DEFAULTS[name]}


DEFAULTS = {
    "needed": "a", "rest": None, "name": None, "names": None, "color": Color.RED, "place": None, "count": 3,
    "share": 0.5, "operation": None, "quick": False,
}  # fmt: skip


def outcome(words):
    return Command(command, None, None).main(words.split(), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("a", {}),
        ("b", {"needed": "b"}),
        ("a b /tmp c", {"rest": [Path("b"), Path("/tmp"), Path("c")]}),
        ("a --name x --names y --names z", {"name": "x", "names": ["y", "z"]}),
        ("a --color blue", {"color": Color.BLUE}),
        ("a --place /nowhere/at/all", {"place": Path("/nowhere/at/all")}),
        ("a --place .", {"place": Path()}),
        ("a --count 7", {"count": 7}),
        ("a --count 07", {"count": 7}),
        ("a --share 0.25", {"share": 0.25}),
        ("a --operation read", {"operation": AclOperation.READ}),
        ("a --operation AlterConfigs", {"operation": AclOperation.ALTER_CONFIGS}),
        ("a --quick", {"quick": True}),
        ("a --slow", {}),
    ],
)
def test_a_value_has_the_type_of_its_flag(words, values):
    assert outcome(words) == values


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "Missing argument 'needed'."),
        ("a --color BLUE", "Invalid value for '--color': 'BLUE' is not one of 'red', 'blue'."),
        ("a --color green", "Invalid value for '--color': 'green' is not one of 'red', 'blue'."),
        ("a --count 10", "Invalid value for '--count': Input should be less than or equal to 9"),
        ("a --count 0", "Invalid value for '--count': Input should be greater than or equal to 1"),
        (
            "a --count seven",
            "Invalid value for '--count': Input should be a valid integer, unable to parse string as an integer",
        ),
        ("a --count -1", "Invalid value for '--count': Input should be greater than or equal to 1"),
        ("a --count 99999999999999999999", "Invalid value for '--count': Input should be less than or equal to 9"),
        (
            "a --share much",
            "Invalid value for '--share': Input should be a valid number, unable to parse string as a number",
        ),
        (
            "a --operation fly",
            (
                "Invalid value for '--operation': 'fly' is not one of ALL, READ, WRITE, CREATE, DELETE, ALTER, "
                "DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, CREATE_TOKENS, "
                "DESCRIBE_TOKENS, TWO_PHASE_COMMIT"
            ),
        ),
    ],
)
def test_an_error_names_the_flag_and_what_was_expected(words, error):
    with pytest.raises(click.ClickException) as refused:
        outcome(words)
    assert refused.value.format_message() == error
