"""The fewest of some rules that allow what all of them would allow together."""

from collections.abc import Collection, Sequence

from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Direction
from aclog.authorizer.acl import StandardAcl
from aclog.planning.granting.near_rules import changed_policy


def least_rules(policies: Collection[Policy], rules: Sequence[StandardAcl], query: Query) -> tuple[StandardAcl, ...]:
    """Return the rules to add to policies; without them one of these allows less of the query than with all of `rules`.

    The policies have the same rules, and other settings. All of `rules` are ALLOWs for one principal, and wider ones
    come before those that they cover.
    """
    chosen: dict[StandardAcl, None] = {}
    now, looks_again = list(policies), True
    while looks_again:
        looks_again = False
        for rule in rules:
            if rule in chosen or now[0].acls.find(rule) is not None:
                continue
            then = [changed_policy(policy, added=(rule,)) for policy in now]
            if any(_gains(old, new, query, rule) for old, new in zip(now, then, strict=True)):
                chosen[rule], now = None, then
                # Where a name without rules is open, the first rule on it closes it: others may be needed then.
                looks_again = any(policy.settings.allow_everyone for policy in now)
    return tuple(chosen)


def _gains(old: Policy, new: Policy, query: Query, rule: StandardAcl) -> bool:
    return any(each.direction is Direction.GAINED for each in differences(old, new, query=query, changed=(rule,)))
