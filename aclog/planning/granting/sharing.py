"""Whose resources a new rule on a prefix, or on every name, also opens."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from attrs import frozen

from aclog.authorizer.acl import AclPermissionType, PatternType, ResourcePattern, StandardAcl, resource_of
from aclog.authorizer.rule_content import acl_of_content, pattern_of_content
from aclog.planning.granting.patterns import covers, is_every_name
from aclog.planning.overlap import PatternSet


@frozen(kw_only=True)
class Shared:
    """A pattern that is granted, and another principal who is allowed something on names of it."""

    pattern: ResourcePattern
    principal: str
    patterns: tuple[ResourcePattern, ...]
    """Of that principal's rules, sorted by name; each is the pattern itself or inside of it."""


def shared(added: Iterable[StandardAcl], contents: AbstractSet[bytes]) -> tuple[Shared, ...]:
    """Return who else has rules on the names of the prefixes that are granted."""
    granted = dict.fromkeys(resource_of(acl) for acl in added)
    wide = [each for each in granted if each.pattern_type == PatternType.PREFIXED or is_every_name(each)]
    if not wide:
        return ()
    own = {acl.principal for acl in added}
    found: dict[tuple[ResourcePattern, str], set[ResourcePattern]] = {}
    for acl in _allowing(contents, PatternSet.of(wide), own):
        for pattern in wide:
            if covers(pattern, resource_of(acl)):
                found.setdefault((pattern, acl.principal), set()).add(resource_of(acl))
    order = {pattern: number for number, pattern in enumerate(wide)}
    return tuple(
        Shared(pattern=pattern, principal=principal, patterns=tuple(sorted(found[pattern, principal], key=_by_name)))
        for pattern, principal in sorted(found, key=lambda key: (order[key[0]], key[1]))
    )


def _allowing(contents: Iterable[bytes], near: PatternSet, own: AbstractSet[str]) -> Iterator[StandardAcl]:
    for content in contents:
        kind, name, pattern_type, principal = pattern_of_content(content)
        if principal not in own and near.meets(kind, name, pattern_type):
            acl = acl_of_content(content)
            if acl.permission_type == AclPermissionType.ALLOW:
                yield acl


def _by_name(pattern: ResourcePattern) -> tuple[str, int]:
    return pattern.name, pattern.pattern_type
