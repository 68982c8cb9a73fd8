"""Prints permissions."""

from collections.abc import Iterable, Mapping

from aclog.analysis.answers.permission_report import all_of, permission_lines, permission_object
from aclog.analysis.answers.permissions import SUPER_USER, Permission, permission_key
from aclog.analysis.by_generation import generation_object, merged, only_on
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import Origins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.cli.flags.output import Output
from aclog.cli.region_columns import PERMISSION_COLUMNS, PERMISSIONS_OF_PREFIXES, with_generation
from aclog.metalog.printable import printable
from aclog.terminal.output import say
from aclog.terminal.progress import tracked
from aclog.terminal.rows import print_rows


def print_permissions(
    answers: Mapping[Generation, Iterable[Permission]],
    output: Output,
    origins: Origins,
    *,
    none: str,
    premises: Premises = ALL_KNOWN,
    has_extents: bool = False,
) -> None:
    """Print permissions, super users last and apart; `none` if there are none.

    What only one of several generations of Kafka allows is marked. `premises`: what is unknown of the settings. What it
    could add is said at the end; rows are without it. `has_extents`: whether they say how much of a prefix that was
    asked about they have.
    """
    more = premises.turning(allowed=False)
    found = tracked(merged(answers, permission_key), "looking for what is allowed", "permissions", streams=True)
    if output.is_rows:
        rows = (
            permission_object(permission, origins) | generation_object(generation) for permission, generation in found
        )
        columns = with_generation(PERMISSIONS_OF_PREFIXES if has_extents else PERMISSION_COLUMNS, answers)
        print_rows(columns, rows, output.form, chosen=output.columns)
        return
    supers, count = "", 0
    for permission, generation in found:
        if permission.rules == (SUPER_USER,):
            supers = all_of(permission.region.principals)
            continue
        count += 1
        first, *rest = permission_lines(permission, origins)
        for line in (first + only_on(generation), *rest):
            say(printable(line))
    if supers:
        say(printable(f"super users, who may do everything: {supers}"))
    elif not count:
        say(printable(f"{none} unless {more.unless()}" if more else none))
        return
    if more:
        say(printable(f"and more if {more.unless()}"))


def print_denies(rules: Mapping[Generation, Iterable[StandardAcl]], origins: Origins) -> None:
    """Print rules that deny something, by the generation of Kafka; what only one denies is marked."""
    for rule, generation in merged(rules):
        say(printable(f"denied: {located_text(rule, origins)}{only_on(generation)}"))
