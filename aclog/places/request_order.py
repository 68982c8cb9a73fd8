"""What of a change may be sent in one request to a server that makes its parts in an order of its own.

A Kafka's controller writes what CreateAcls adds in the order of the request, but what DeleteAcls removes in the order
of a HashSet (AclControlManager); a broker with ZooKeeper goes through the resources of either in any order.
"""

from collections.abc import Iterable

from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern, StandardAcl, resource_of


def independent_runs(acls: Iterable[StandardAcl]) -> list[list[StandardAcl]]:
    """Return the ACLs in runs: within a run no two cover a name in common, and those that do keep their order.

    So nobody can tell in which order the ACLs of a run were added or removed.
    """
    runs: list[list[StandardAcl]] = []
    last: dict[ResourcePattern, int] = {}
    for acl in acls:
        pattern = resource_of(acl)
        run = max((number + 1 for other, number in last.items() if _meet(pattern, other)), default=0)
        if run == len(runs):
            runs.append([])
        runs[run].append(acl)
        last[pattern] = run
    return runs


def _meet(one: ResourcePattern, other: ResourcePattern) -> bool:
    """Return whether the two patterns cover a name in common; True if they may."""
    if one.resource_type != other.resource_type:
        return False
    prefixed, other_prefixed = (each.pattern_type == PatternType.PREFIXED for each in (one, other))
    if prefixed and other_prefixed:
        return one.name.startswith(other.name) or other.name.startswith(one.name)
    if prefixed:
        return other.name == WILDCARD or other.name.startswith(one.name)
    if other_prefixed:
        return one.name == WILDCARD or one.name.startswith(other.name)
    return WILDCARD in (one.name, other.name) or one.name == other.name
