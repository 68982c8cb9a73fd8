"""Revoking: a principal's own rules that give what is asked, what else these gave, and what still allows it."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from attrs import evolve, frozen

from aclog.analysis.answers.permissions import Permission, permission_key, permissions
from aclog.analysis.by_generation import merged
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    ResourceType,
    StandardAcl,
    resource_of,
)
from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS
from aclog.planning.granting.asked import Asked, gives, least_operations, one_address, wide_first
from aclog.planning.granting.least import least_rules
from aclog.planning.granting.near_rules import by_rules_alone, changed_policy, near_rules, policy_with
from aclog.planning.granting.patterns import covers


@frozen(kw_only=True)
class Still:
    """What is allowed nevertheless, and why."""

    permission: Permission
    only: Generation | None = None
    """That of Kafka which alone allows it, if several may decide."""


@frozen(kw_only=True)
class Revocation:
    """What takes away what is asked, as far as a principal's own rules give it."""

    removed: tuple[StandardAcl, ...]
    added: tuple[StandardAcl, ...]
    """Rules for what else the removed ones gave."""
    still: tuple[Still, ...]


def revoke(
    asked: Asked, contents: AbstractSet[bytes], settings: Settings, generations: Collection[Generation] = ()
) -> Revocation:
    """Return what removes the rules of the principal that give what is asked, given the rules of a place.

    `generations`: of Kafka, that may decide; without any, it is that of `settings`. A rule on more names, or for more
    hosts, than is asked stays whole: only a DENY could cut it. DESCRIBE and DESCRIBE_CONFIGS stay with an operation
    that implies them.
    """
    patterns = [pattern for need in asked.needs for pattern in need.patterns]
    near = near_rules(contents, patterns)
    targets = {acl: _targets(acl, asked) for acl in near if _is_own(acl, asked)}
    removed = tuple(acl for acl, mask in targets.items() if _gives_of(acl, mask))
    each = settings.by_generation(generations)
    added = _kept({acl: targets[acl] for acl in removed}, near, each.values())
    still = {
        generation: _still(asked, changed_policy(policy_with(near, own), removed=removed, added=added))
        for generation, own in each.items()
    }
    found = (Still(permission=permission, only=only) for permission, only in merged(still, permission_key))
    return Revocation(removed=removed, added=added, still=tuple(found))


def _is_own(acl: StandardAcl, asked: Asked) -> bool:
    return (
        acl.permission_type == AclPermissionType.ALLOW
        and acl.principal == asked.principal
        and (not asked.hosts or acl.host in asked.hosts)
    )


def _targets(acl: StandardAcl, asked: Asked) -> int:
    """Return the operations that are to be taken away on all names of a rule."""
    mask = 0
    for need in asked.needs:
        if any(covers(pattern, resource_of(acl)) for pattern in need.patterns):
            mask |= need.operations
    return mask


def _gives_of(acl: StandardAcl, mask: int) -> bool:
    """Return whether a rule gives one of these operations other than by implication."""
    return bool(mask) if acl.operation == AclOperation.ALL else bool(mask >> acl.operation & 1)


def _kept(
    removed: Mapping[StandardAcl, int], near: Iterable[StandardAcl], each: Iterable[Settings]
) -> tuple[StandardAcl, ...]:
    """Return the least rules for what else the removed ones gave, on the same names and from the same hosts.

    Rules that deny do not count here: what they overrule today is kept for the day on which they go.
    """
    wanted = sorted({each for acl, mask in removed.items() for each in _rest(acl, mask)}, key=wide_first)
    left = [acl for acl in near if acl.permission_type == AclPermissionType.ALLOW and ":" in acl.principal]
    kept = [acl for acl in left if acl not in removed]
    return least_rules([policy_with(kept, by_rules_alone(settings)) for settings in each], wanted, Query())


def _rest(acl: StandardAcl, mask: int) -> Iterator[StandardAcl]:
    """Yield rules for the operations of a rule that its resource type supports and that are not taken away."""
    known = SUPPORTED_OPERATIONS[ResourceType(acl.resource_type)]  # an intent asks about no other type
    rest = sum(1 << each for each in known if gives(acl.operation) >> each & 1) & ~mask
    if acl.resource_type == ResourceType.TRANSACTIONAL_ID and mask >> AclOperation.WRITE & 1:
        # Kafka asks for it after WRITE, so it is of no use alone; and a Kafka 3.9 knows no such rule.
        rest &= ~(1 << AclOperation.TWO_PHASE_COMMIT)
    for operation in least_operations(rest):
        yield evolve(acl, operation=operation)


def _still(asked: Asked, after: Policy) -> Iterable[Permission]:
    """Return what is still allowed of the operations that no other one implies; what answers two needs, once."""
    still: dict[Hashable, Permission] = {}
    for need in asked.needs:
        query = asked.query(need, sum(1 << each for each in least_operations(need.operations)))
        for host in dict.fromkeys(map(one_address, asked.hosts or (WILDCARD,))):
            for each in permissions(after, evolve(query, host=host)):
                if asked.principal != WILDCARD_PRINCIPAL or each.region.principals.complement:
                    still.setdefault(permission_key(each), each)
    return still.values()
