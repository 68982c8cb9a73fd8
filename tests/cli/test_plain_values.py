"""Values of flags that are read without typer are those that typer reads, and so are the errors."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from aclog.authorizer.acl import AclOperation
from aclog.cli.app import read_plainly
from aclog.cli.flags.common import OPERATIONS, named


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


def command(
    needed: Annotated[str, typer.Argument()],
    rest: Annotated[list[Path] | None, typer.Argument()] = None,
    name: Annotated[str | None, typer.Option("--name")] = None,
    names: Annotated[list[str] | None, typer.Option("--names")] = None,
    color: Annotated[Color, typer.Option("--color")] = Color.RED,
    place: Annotated[Path | None, typer.Option("--place")] = None,
    there: Annotated[Path | None, typer.Option("--there", exists=True)] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=9)] = 3,
    share: Annotated[float, typer.Option("--share")] = 0.5,
    operation: Annotated[AclOperation | None, typer.Option("--operation", parser=named(OPERATIONS))] = None,
    quick: Annotated[bool, typer.Option("--quick/--slow")] = False,
) -> tuple[object, ...]:
    return needed, rest, name, names, color, place, there, count, share, operation, quick


def outcome(words, *, plainly):
    app = typer.Typer()
    app.command()(command)
    made = get_command(app)
    if plainly:
        read_plainly(made)
    try:
        return made.main(list(words), standalone_mode=False)
    except typer.TyperException as error:
        return type(error), error.format_message()


@pytest.mark.parametrize(
    "words",
    [
        "a",
        "",
        "a b /tmp c",
        "a --name x --names y --names z",
        "a --color blue",
        "a --color BLUE",
        "a --color green",
        "a --place /nowhere/at/all",
        "a --place .",
        "a --there /nowhere/at/all",
        "a --there .",
        "a --count 7",
        "a --count 07",
        "a --count 10",
        "a --count 0",
        "a --count seven",
        "a --count -1",
        "a --count 99999999999999999999",
        "a --share 0.25",
        "a --share much",
        "a --operation read",
        "a --operation AlterConfigs",
        "a --operation fly",
        "a --quick",
        "a --slow",
        "a --nothing",
    ],
)
def test_plain_values_are_what_typer_reads(words):
    found, expected = (outcome(words.split(), plainly=plainly) for plainly in (True, False))
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]
