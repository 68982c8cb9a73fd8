"""Changes of rules as JSON lines: `{"action":"ADD"|"REMOVE","rule":RULE}`, RULE as in `acls list --format jsonl`."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.rule_change import Action, RuleChange
from aclog.authorizer.rule_object import rule_of_object
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.sources.acl_lines import parse_acls
from aclog.sources.text_lines import display_name, numbered
from aclog.terminal.json_text import json_text


def read_changes(path: str) -> Iterator[RuleChange]:
    """Yield the changes of a file of JSON lines (`-` is stdin, gzip is detected) in order; ids are ignored.

    Raises:
        ConfigError: a line that is not a change, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    for number, line in numbered(path):
        name = display_name(path)
        where = f"{name}: line {number}"
        try:
            yield evolve(parse_change(parse_object(line), where), origin=FileOrigin(file=name, line=number))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error


def read_change_of_each(path: str, flag: str, *, added: bool) -> Iterator[RuleChange]:
    """Yield the change that adds, or removes, each ACL of a file of ACLs. Raises as `read_acls`."""
    name = display_name(path)
    for line, rule in parse_acls(numbered(path), name):
        origin = FileOrigin(file=name, line=line)
        yield RuleChange(added=added, acl=rule.acl, where=f"{flag} {path}", origin=origin)


def parse_change(value: dict[str, object], where: str) -> RuleChange:
    """Return the change in the JSON object of a line. Raises ConfigError: it is none."""
    action, rule = text_field(value, "action"), value.get("rule")
    if action not in set(Action):
        raise ConfigError(f"action {action[:40]!r} is not one of {', '.join(Action)}")
    if not isinstance(rule, dict):
        raise ConfigError("expected the key rule with an ACL, as `acls list --format jsonl` prints it")
    return RuleChange(added=action == Action.ADD, acl=rule_of_object(rule).acl, where=where)


def change_line(action: Action, rule: Mapping[str, Any]) -> str:
    """Return a line without its end: the rule with the keys of `acls list --format jsonl`."""
    return json_text({"action": action.value, "rule": rule})
