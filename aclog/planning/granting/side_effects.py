"""What a grant takes away, and what a revocation gives: nobody asked for that."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from aclog.analysis.difference import differences
from aclog.analysis.regions.region import Direction, Region
from aclog.authorizer.acl import resource_of
from aclog.authorizer.rule_change import RuleChange
from aclog.authorizer.settings import Settings
from aclog.planning.granting.near_rules import changed_policy, near_rules, policy_with


def side_effects(
    changes: Sequence[RuleChange], contents: AbstractSet[bytes], settings: Settings, direction: Direction
) -> list[Region]:
    """Return the requests of any principal that a change moves in a direction in which it should move none.

    Where a name without rules is open (allow.everyone.if.no.acl.found), the first rule on it closes it to all others,
    and it opens to everyone when its last rule goes.
    """
    changed = [change.acl for change in changes]
    old = policy_with(near_rules(contents, map(resource_of, changed)), settings)
    new = changed_policy(
        old,
        added=[change.acl for change in changes if change.added],
        removed=[change.acl for change in changes if not change.added],
    )
    return [each.region for each in differences(old, new, changed=changed) if each.direction is direction]
