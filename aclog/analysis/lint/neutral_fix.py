"""A mend that changes no decision: rules that can go together, since others say all that they say."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from aclog.analysis.difference import differences
from aclog.analysis.lint.effect.verdicts import Verdict, verdicts
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.responsible import Responsible
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import is_allow
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.index.masks import rule_mask
from aclog.authorizer.index.overlay import ResourceKey, key_of
from aclog.authorizer.rule_change import RuleChange, changed_acls


def neutral_fix(policy: Policy, findings: Iterable[Finding]) -> tuple[RuleChange, ...]:
    """Return removals after which every request is decided as before: of rules that findings call needless.

    Of rules that stand in for one another the wider ones stay. A DENY goes only if another DENY covers it: one that
    denies nothing yet may stand guard against rules to come. That the removals are neutral together is proved by the
    exact difference, of each step.
    """
    needless = dict.fromkeys(rule for found in findings if found.neutral for rule in found.rules)
    wanted = dict.fromkeys(_unguarding(policy, needless))
    removed: list[StandardAcl] = []
    now = policy
    while wanted:
        step = _together(now, wanted)
        now, gone = _removed(now, step)
        if not gone:
            break
        removed += gone
        for rule in gone:
            del wanted[rule]
    return tuple(RuleChange(added=False, acl=rule) for rule in removed)


def _unguarding(policy: Policy, rules: Iterable[StandardAcl]) -> Iterable[StandardAcl]:
    """Yield the rules without the DENYs that no other DENY covers."""
    responsible = Responsible.of(RuleTable.of(policy))
    for rule in rules:
        if is_allow(rule) or responsible.covering(rule, allows=False) is not None:
            yield rule


def _together(policy: Policy, wanted: Iterable[StandardAcl]) -> list[StandardAcl]:
    """Return those of the wanted rules that are needless now, one of each cell: the one that says the least.

    What stands in for a rule has a wider pattern, principal or host, and what stands in for that a wider one yet. Only
    rules of one cell can stand in for one another.
    """
    table = RuleTable.of(policy)
    found = verdicts(table)
    rows = np.flatnonzero(np.isin(found, (Verdict.COVERED, Verdict.OVERRIDDEN, Verdict.DEAD)))
    needless = {table.rule(row) for row in rows.tolist()}
    narrowest: dict[object, StandardAcl] = {}
    for rule in wanted:
        cell = (*key_of(rule), rule.principal, rule.host)
        if rule in needless and (cell not in narrowest or _said(rule) < _said(narrowest[cell])):
            narrowest[cell] = rule
    return (
        _all_but_one(policy, list(narrowest.values())) if policy.settings.allow_everyone else list(narrowest.values())
    )


def _all_but_one(policy: Policy, rules: Sequence[StandardAcl]) -> list[StandardAcl]:
    """Return the rules without the last one on each pattern that would be left without a rule, unless it was alone.

    With allow.everyone.if.no.acl.found two rules on one pattern keep it closed, either of them.
    """
    of_pattern: dict[ResourceKey, list[StandardAcl]] = defaultdict(list)
    for rule in rules:
        of_pattern[key_of(rule)].append(rule)
    kept: list[StandardAcl] = []
    for (kind, name, literal), some in of_pattern.items():
        resource = policy.acls.index.named(kind, name)[0 if literal else 1]
        count = policy.acls.index.count(resource)
        kept += some[:-1] if len(some) == count > 1 else some
    return kept


def _said(rule: StandardAcl) -> int:
    """Return how many operations a rule is about."""
    return rule_mask(rule.operation, rule.permission_type).bit_count()


def _removed(policy: Policy, rules: Sequence[StandardAcl]) -> tuple[Policy, list[StandardAcl]]:
    """Return the policy without the rules, and the rules; without a part of them, if all are not neutral together."""
    if not rules:
        return policy, []
    changes = [RuleChange(added=False, acl=rule) for rule in rules]
    without = Policy(changed_acls(policy.acls, changes), policy.settings)
    if next(differences(policy, without, changed=rules), None) is None:
        return without, list(rules)
    if len(rules) == 1:
        return policy, []
    middle = len(rules) // 2
    half, gone = _removed(policy, rules[:middle])
    rest, more = _removed(half, rules[middle:])
    return rest, [*gone, *more]
