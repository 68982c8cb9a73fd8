"""DENY rules that may keep a younger ALLOW from opening something.

What a young rule matches is known only since it exists: what an older DENY was seen to refuse, it may allow by now.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, PatternType, StandardAcl
from aclog.authorizer.index.masks import ALLOWED, DENIED, rule_mask

MOST_PAIRS = 1 << 18
"""Pairs of a DENY and an ALLOW that are worth comparing: a tenth of a second."""


def may_open(denies: Sequence[StandardAcl], younger: Iterable[StandardAcl]) -> list[bool]:
    """Return for each DENY whether any of these ALLOW rules may match what it matches; when in doubt it may."""
    of_type: dict[int, list[StandardAcl]] = defaultdict(list)
    for acl in younger:
        of_type[acl.resource_type].append(acl)
    return [any(_overlap(deny, allow) for allow in of_type[deny.resource_type]) for deny in denies]


def _overlap(deny: StandardAcl, allow: StandardAcl) -> bool:
    return (
        _operations_overlap(deny, allow)
        and _same_or_all(deny.principal, allow.principal, WILDCARD_PRINCIPAL)
        and (_same_or_all(deny.host, allow.host, WILDCARD) or "/" in deny.host + allow.host)
        and (_covers(deny, allow) or _covers(allow, deny))
    )


def _operations_overlap(deny: StandardAcl, allow: StandardAcl) -> bool:
    denied = rule_mask(deny.operation, deny.permission_type) // DENIED
    return bool(denied & rule_mask(allow.operation, allow.permission_type) // ALLOWED)


def _same_or_all(one: str, other: str, everything: str) -> bool:
    return one == other or everything in (one, other)


def _covers(one: StandardAcl, other: StandardAcl) -> bool:
    """Return whether the one is on the first name that the other is on."""
    if one.resource_name in {other.resource_name, WILDCARD}:
        return True
    return one.pattern_type != PatternType.LITERAL and other.resource_name.startswith(one.resource_name)
