"""The order in which a change is made, and what of it becomes visible together.

Denies are added first and removed last, so that no request is allowed on the way that both ends deny. Where a resource
without ACLs is open to everyone (allow.everyone.if.no.acl.found), the first ACL on it closes it. So the widest pattern
comes first, with its widest rule: what it does not let in is all that waits for the rest. Removal is the mirror image.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby

from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourcePattern,
    StandardAcl,
    resource_of,
)
from aclog.authorizer.rule_change import Action, RuleChange
from aclog.planning.batching import Batching
from aclog.planning.overlap import overlapping
from aclog.planning.step import Stage, Step, stage_of


def ordered(changes: Iterable[RuleChange], batching: Batching) -> tuple[Step, ...]:
    """Return the steps that make these changes, of distinct ACLs, in a place that shows so much at once.

    They depend on the set of the changes alone, not on how they were listed.
    """
    by_stage: dict[Stage, list[StandardAcl]] = {stage: [] for stage in Stage}
    for change in changes:
        by_stage[stage_of(change.acl, added=change.added)].append(change.acl)
    staged = [(stage, acl) for stage, acls in by_stage.items() for acl in _in_order(stage, acls)]
    batches = _by_resource(staged) if batching is Batching.RESOURCE else groupby(staged)
    return tuple(
        Step(
            action=Action.ADD if stage <= Stage.ADD_ALLOW else Action.REMOVE,
            acl=acl,
            batch=0 if batching is Batching.ALL else number,
        )
        for number, (_, batch) in enumerate(batches)
        for stage, acl in batch
    )


def _in_order(stage: Stage, acls: Iterable[StandardAcl]) -> list[StandardAcl]:
    return sorted(acls, key=_widest_first, reverse=stage >= Stage.REMOVE_ALLOW)


def _by_resource(
    staged: list[tuple[Stage, StandardAcl]],
) -> Iterator[tuple[object, Iterable[tuple[Stage, StandardAcl]]]]:
    """Yield batches of one resource each: all that changes on one that overlaps no other that changes, else a stage."""
    resources = [resource_of(acl) for _, acl in staged]
    shared = overlapping(set(resources))
    together: dict[tuple[Stage, ResourcePattern], list[tuple[Stage, StandardAcl]]] = {}
    alone: dict[ResourcePattern, list[tuple[Stage, StandardAcl]]] = {}
    for each, resource in zip(staged, resources, strict=True):
        if resource in shared:
            together.setdefault((each[0], resource), []).append(each)
        else:
            alone.setdefault(resource, []).append(each)
    return chain(together.items(), alone.items())


def _widest_first(acl: StandardAcl) -> tuple[object, ...]:
    """Return the key by which the widest pattern comes first, with its rules together, and of these the widest."""
    narrow = (acl.principal != WILDCARD_PRINCIPAL, acl.host != WILDCARD, acl.operation != AclOperation.ALL)
    rest = (acl.principal, acl.host, acl.operation, acl.permission_type)
    return (acl.resource_type, *_narrowness(acl), acl.pattern_type, sum(narrow), narrow, rest)


def _narrowness(acl: StandardAcl) -> tuple[int, int, str]:
    """Return the key of a name and its pattern type; whatever is not LITERAL is compared as a prefix."""
    name = acl.resource_name
    if acl.pattern_type != PatternType.LITERAL:
        return 1 if name else -1, len(name), name
    return 0 if name == WILDCARD else 2, 0, name
