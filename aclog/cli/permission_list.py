"""Prints permissions."""

from collections.abc import Iterable

from aclog.analysis.answers.permission_report import all_of, permission_lines, permission_object
from aclog.analysis.answers.permissions import SUPER_USER, Permission
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.origin import Origins
from aclog.cli.flags.output import Output
from aclog.cli.region_columns import PERMISSION_COLUMNS
from aclog.metalog.printable import printable
from aclog.terminal.output import say
from aclog.terminal.progress import tracked
from aclog.terminal.rows import print_rows


def print_permissions(found: Iterable[Permission], output: Output, origins: Origins, *, none: str) -> None:
    """Print permissions, super users last and apart; `none` if there are none."""
    found = tracked(found, "looking for what is allowed", "permissions", streams=True)
    if output.is_rows:
        rows = (permission_object(permission, origins) for permission in found)
        print_rows(PERMISSION_COLUMNS, rows, output.form, chosen=output.columns)
        return
    supers, count = "", 0
    for permission in found:
        if permission.rules == (SUPER_USER,):
            supers = all_of(permission.region.principals)
            continue
        count += 1
        for line in permission_lines(permission, origins):
            say(printable(line))
    if supers:
        say(printable(f"super users, who may do everything: {supers}"))
    elif not count:
        say(printable(none))


def print_denies(rules: Iterable[StandardAcl], origins: Origins) -> None:
    """Print rules that deny something."""
    for rule in rules:
        say(printable(f"denied: {located_text(rule, origins)}"))
