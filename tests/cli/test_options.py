"""Groups of flags: a command gets each group as one value."""

from typing import Annotated

import click
import pytest
from attrs import field, frozen

from aclog.cli.flags.common import group_from
from aclog.cli.options import Command, Option


@frozen(kw_only=True)
class Limits:
    most: Annotated[int, Option("--most")] = 10
    names: Annotated[list[str], Option("--name")] = field(factory=list)


@frozen
class Place:
    directory: Annotated[str, Option("--dir")]


def run(command, *words):
    return Command(command, None, None).main(list(words), standalone_mode=False)


def test_a_group_has_the_values_of_its_flags_and_the_defaults_of_the_others():
    def command(place: Place, limits: Limits, quick: Annotated[bool, Option("--quick")] = False) -> tuple:
        return place, limits, quick

    given = run(command, "--dir", "d", "--name", "a", "--name", "b", "--quick")
    assert given == (Place("d"), Limits(names=["a", "b"]), True)
    assert run(command, "--dir", "d", "--most", "3") == (Place("d"), Limits(most=3), False)


def test_flags_are_in_the_order_of_the_parameters_and_fields():
    def command(limits: Limits, place: Place) -> None: ...

    assert [name for parameter in Command(command, None, None).params for name in parameter.opts][:3] == [
        "--most",
        "--name",
        "--dir",
    ]


def test_a_required_flag_of_a_group_is_required():
    def command(place: Place) -> None: ...

    with pytest.raises(click.ClickException, match="Missing parameter: directory"):
        run(command)


def test_commands_do_not_share_the_list_of_a_group():
    def command(limits: Limits) -> Limits:
        limits.names.append("mine")
        return limits

    assert run(command) == run(command) == Limits(names=["mine"])


def test_two_groups_with_the_same_field_are_refused():
    @frozen
    class Other:
        most: Annotated[int, Option("--other")] = 1

    def command(limits: Limits, other: Other) -> None: ...

    command.__annotations__ = {"limits": Limits, "other": Other, "return": None}
    with pytest.raises(TypeError, match="two groups have a field of the same name"):
        Command(command, None, None)


def test_a_group_is_made_of_those_values_that_are_there():
    assert group_from(Limits, {"most": 7, "unrelated": 1}) == Limits(most=7)
