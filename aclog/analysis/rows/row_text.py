"""The parts of a row as text for people. A long list is cut: the JSON lines of a difference have all of it.

Names that hold more than letters, digits, `.`, `_` and `-` stand in JSON quotes, so `orders.*` is always a prefix.
"""

import json
import re
from collections.abc import Sequence
from typing import TypeGuard

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import ANY_NAME, Literal, NamePart, Names, Subtree
from aclog.analysis.regions.operations import REQUESTED, operations_of
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.query import RESOURCE_TYPES
from aclog.analysis.regions.region import Direction
from aclog.analysis.rows.extent import is_allow
from aclog.analysis.rows.row import Cause, Clause, Row, Setting, Summary
from aclog.authorizer.acl import WILDCARD, ResourceType

SHOWN = 4
"""How many members of a list are shown, if it is longer than one more."""

_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_VERBS = {Direction.GAINED: "gain", Direction.LOST: "lose"}
_RULES_TEXTS = {
    (True, True, True): "they gain what they lacked of it and no rule denies",
    (False, True, False): "they lose what no other rule allows of it",
    (True, False, False): "they lose all they had of it",
    (False, False, True): "they gain what other rules allow of it",
    # with allow.everyone.if.no.acl.found:
    (True, True, False): "the first rules there: they lose what no rule allows of it",
    (False, True, True): "no rules are left there: they gain what they lacked of it",
}
"""What a summary says, by whether the rules came, whether they allow, and whether requests were gained."""


def directions_text(row: Row) -> str:
    """Return `GAINED`, `LOST` or `GAINED, LOST`."""
    return ", ".join(direction.value for direction in row.directions)


def who_text(principals: Principals) -> str:
    """Return such as `User:a, User:b`, `everyone` or `everyone but User:a`."""
    if not principals.complement:
        return _listed(principals.named)
    return f"everyone but {_listed(principals.named)}" if principals.named else "everyone"


def what_text(clauses: Sequence[Clause]) -> str:
    """Return such as `READ, DESCRIBE on TOPIC orders.* but orders.pii.*; READ on GROUP app`."""
    return "; ".join(clause_texts(clauses))


def clause_texts(clauses: Sequence[Clause]) -> list[str]:
    """Return what each clause says, or several that differ in their resource type only."""
    types: dict[tuple[int, Names], list[str]] = {}
    for clause in clauses:
        names = ANY_NAME if clause.resource_type == ResourceType.CLUSTER else clause.names
        types.setdefault((clause.operations, names), []).append(clause.resource_type.name)
    return [_clause_text(operations, kinds, names) for (operations, names), kinds in types.items()]


def _clause_text(operations: int, types: Sequence[str], names: Names) -> str:
    text = f"{operations_text(operations)} on"
    (first, *others) = names
    if others or isinstance(first, Literal) or first.prefix:
        return f"{text} {', '.join(types)} {names_text(names)}"
    if types == [ResourceType.CLUSTER.name]:
        return f"{text} CLUSTER"
    every = "everything" if len(types) == len(RESOURCE_TYPES) else f"every {_listed(types)}"
    return f"{text} {every}{_but_text(first)}"


def operations_text(mask: int) -> str:
    """Return names of operations; `ALL` for all 13, and `ALL but READ` if few are missing."""
    missing = REQUESTED & ~mask
    if not missing:
        return "ALL"
    if missing.bit_count() <= SHOWN:
        return "ALL but " + ", ".join(operation.name for operation in operations_of(missing))
    return ", ".join(operation.name for operation in operations_of(mask))


def names_text(names: Names) -> str:
    """Return names and prefixes; `*` for what LITERAL `*` covers: no longer name that begins with `*`."""
    texts = []
    covered = Literal(name=WILDCARD) in names and any(map(_is_without_longer, names))
    for part in names:
        if covered and _is_without_longer(part):
            texts.append(f"*{_but_text(part, WILDCARD)}")
        elif not covered or part != Literal(name=WILDCARD):
            texts.append(_part_text(part))
    return texts[0] if len(texts) == 1 else _listed([f"({text})" if " but " in text else text for text in texts])


def hosts_text(hosts: Hosts) -> str:
    """Return such as `10.0.0.1, 10.1.0.0/16`, `any host` or `any host but 10.0.0.1`."""
    if not hosts.complement:
        but = f" but {_listed(hosts.except_addresses)}" if hosts.except_addresses else ""
        return _listed(hosts.entries) + but
    return f"any host but {_listed(hosts.entries)}" if hosts.entries else "any host"


def summary_text(row: Row, summary: Summary) -> str:
    """Return such as `they lose all they had of it: 412 principals, 100,000 rules`."""
    named = f"{summary.principals:,} principal{'s' * (summary.principals != 1)}"
    who = f"{named} and everyone else" if summary.everyone_else else named
    rules = "" if summary.cause.setting else f", {summary.rules:,} rule{'s' * (summary.rules != 1)}"
    return f"{_change_text(row, summary.cause)}: {who}{rules}"


def _change_text(row: Row, cause: Cause) -> str:
    if len(row.directions) > 1:
        return "they gain some of it and lose some"
    gained = row.directions == (Direction.GAINED,)
    if cause.setting is Setting.SUPER_USERS:
        return "super users: they gain all they lacked" if gained else "no super users: they lose all no rule gives"
    if cause.setting is not None:
        return f"{cause.setting.value}: they {_VERBS[row.directions[0]]} some of it"
    allows = {is_allow(rule) for rule in cause.rules}
    if len(allows) > 1:
        return f"they {_VERBS[row.directions[0]]} some of it"
    return _RULES_TEXTS[cause.is_added, allows.pop(), gained]


def _is_without_longer(part: NamePart) -> TypeGuard[Subtree]:
    """Return whether a part is what LITERAL `*` covers besides `*` itself, or less."""
    return isinstance(part, Subtree) and not part.prefix and WILDCARD in part.except_prefixes


def _part_text(part: NamePart) -> str:
    if isinstance(part, Literal):
        return _name(part.name)
    return f"{f'{_name(part.prefix)}*' if part.prefix else 'every name'}{_but_text(part)}"


def _but_text(part: Subtree, unsaid: str | None = None) -> str:
    """Return the exceptions of a part, but for one prefix."""
    prefixes = [f"{_name(prefix)}*" for prefix in part.except_prefixes if prefix != unsaid]
    but = [*prefixes, *map(_name, part.except_literals)]
    return f" but {_listed(but)}" if but else ""


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _listed(members: Sequence[str]) -> str:
    if len(members) <= SHOWN + 1:
        return ", ".join(members)
    return f"{', '.join(members[:SHOWN])} and {len(members) - SHOWN:,} more"
