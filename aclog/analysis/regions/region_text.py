"""Regions and their parts as text for people. A long list is cut: the JSON lines of a difference have all of it.

Names that hold more than letters, digits, `.`, `_` and `-` stand in JSON quotes, so `orders.*` is always a prefix.
"""

import json
import re
from collections.abc import Sequence
from typing import TypeGuard

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.regions.operations import REQUESTED, operations_of
from aclog.analysis.regions.principals import Principals
from aclog.authorizer.acl import WILDCARD, ResourceType

SHOWN = 4
"""How many members of a list are shown, if it is longer than one more."""

_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_RESOURCE_TYPES = sum(kind > ResourceType.ANY for kind in ResourceType)
"""How many types resources may have."""


def who_text(principals: Principals) -> str:
    """Return such as `User:a, User:b`, `everyone` or `everyone but User:a`."""
    if not principals.complement:
        return _listed(principals.named)
    return f"everyone but {_listed(principals.named)}" if principals.named else "everyone"


def requests_text(operations: int, types: Sequence[str], names: Names) -> str:
    """Return such as `READ, DESCRIBE on TOPIC orders.*`, for the names of one type or of several."""
    text = f"{operations_text(operations)} on"
    (first, *others) = names
    if others or isinstance(first, Literal) or first.prefix:
        return f"{text} {', '.join(types)} {names_text(names)}"
    if types == [ResourceType.CLUSTER.name]:
        return f"{text} CLUSTER"
    every = "everything" if len(types) == _RESOURCE_TYPES else f"every {_listed(types)}"
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
