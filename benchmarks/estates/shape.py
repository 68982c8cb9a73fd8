"""Estates: rules of one shape, requests about them, and changes to them; the same in every run."""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from attrs import evolve, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType

HOSTS = tuple(f"10.20.{number // 250}.{number % 250}" for number in range(500))
"""The addresses of clients, where a rule is for any."""
READ, ALL = AclOperation.READ, AclOperation.ALL


class Asked(NamedTuple):
    """One request."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str


class Change(NamedTuple):
    """One change: an added rule with a new number, or the number of a rule that is removed."""

    number: int
    added: StandardAcl | None


@frozen(kw_only=True)
class Shape:
    """How rules are distributed: `rules(tag)` yields those of one estate; each tag gives other names, alike."""

    name: str
    what: str
    rules: Callable[[str], Iterator[StandardAcl]]


def rule(name: str, principal: str, *, host: str = "*", operation: int = READ, **codes: int) -> StandardAcl:
    """Return a rule, LITERAL on a topic and allowing unless `codes` say otherwise (kind, pattern, permission)."""
    return StandardAcl(
        resource_type=codes.get("kind", ResourceType.TOPIC),
        resource_name=name,
        pattern_type=codes.get("pattern", PatternType.LITERAL),
        principal=principal,
        host=host,
        operation=operation,
        permission_type=codes.get("permission", AclPermissionType.ALLOW),
    )


def requests(rules: list[StandardAcl], count: int, *, seed: int) -> list[Asked]:
    """Return distinct requests: four of five by whom a rule allows it, the others by strangers or for unknown names."""
    draw = Random(seed)
    allowing = [each for each in rules if each.permission_type == AclPermissionType.ALLOW]
    found: dict[Asked, None] = {}
    while len(found) < count:
        found[_request(draw.choice(allowing), draw)] = None
    return list(found)


def _request(acl: StandardAcl, draw: Random) -> Asked:
    principal = f"User:anyone-{draw.randrange(5_000)}" if acl.principal == "User:*" else acl.principal
    name = acl.resource_name
    if name == "*":
        name = f"any.{draw.randrange(1_000_000)}"
    elif acl.pattern_type == PatternType.PREFIXED:
        name += f"{draw.randrange(1_000_000)}"
    turn = draw.random()
    if turn < 0.1:
        principal = f"User:stranger-{draw.randrange(1_000)}"
    elif turn < 0.2:
        name = f"unknown.{draw.randrange(1_000_000)}"
    return Asked(
        principal=principal,
        host=draw.choice(HOSTS) if acl.host == "*" else acl.host,
        operation=READ if acl.operation == ALL else acl.operation,
        resource_type=acl.resource_type,
        name=name,
    )


def changes(rules: list[StandardAcl], count: int, *, seed: int) -> list[Change]:
    """Return changes: four additions, half of them on resources that have rules, to one removal of an old rule."""
    draw = Random(seed)
    removable = draw.sample(range(len(rules)), min(count // 5, len(rules) // 5))
    found = [Change(number, None) for number in removable]
    for number in range(count - len(found)):
        acl = draw.choice(rules)
        changed = evolve(acl, principal=f"User:new-{number}")
        if number % 2:
            changed = evolve(changed, resource_name=f"{acl.resource_name}.new-{number}", principal=acl.principal)
        found.append(Change(len(rules) + number, changed))
    draw.shuffle(found)
    return found
