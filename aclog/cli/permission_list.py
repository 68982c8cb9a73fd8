"""Prints permissions."""

from collections.abc import Iterable

from aclog.analysis.answers.permission_report import all_of, permission_lines, permission_object
from aclog.analysis.answers.permissions import SUPER_USER, Permission
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.origin import Origins
from aclog.cli.flags.answer import AnswerFormat
from aclog.metalog.printable import printable
from aclog.terminal.json_text import json_text
from aclog.terminal.output import emit, say


def print_permissions(found: Iterable[Permission], form: AnswerFormat, origins: Origins, *, none: str) -> None:
    """Print permissions, super users last and apart; `none` if there are none."""
    if form is AnswerFormat.JSONL:
        for permission in found:
            emit(json_text(permission_object(permission, origins)))
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
