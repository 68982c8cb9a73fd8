"""A mend that changes no decision: rules that can go together, since others say all that they say."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from attrs import frozen

from aclog.analysis.difference import differences
from aclog.analysis.lint.effect.verdicts import Verdict, verdicts
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.responsible import Responsible
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import is_allow
from aclog.analysis.lint.wide_rules import wide_rows, without_wide
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.index.masks import rule_mask
from aclog.authorizer.index.overlay import ResourceKey, key_of
from aclog.authorizer.rule_change import RuleChange, changed_acls


def neutral_fix(policy: Policy, findings: Iterable[Finding]) -> tuple[RuleChange, ...]:
    """Return removals after which every request is decided as before: of rules that findings call needless.

    Of rules that stand in for one another the wider ones stay, but no rule goes because of a wide rule for everyone:
    that one may be the mistake. A DENY goes only if another DENY covers it: one that denies nothing yet may stand guard
    against rules to come. That the removals are neutral together is proved by the exact difference, of each step.
    """
    needless = dict.fromkeys(rule for found in findings if found.neutral for rule in found.rules)
    wanted = dict.fromkeys(_unguarding(policy, needless))
    removed: list[StandardAcl] = []
    now = _Sides.of(policy)
    while wanted:
        step = _together(now, wanted)
        now, gone = _removed(now, step)
        if not gone:
            break
        removed += gone
        for rule in gone:
            del wanted[rule]
    return tuple(RuleChange(added=False, acl=rule) for rule in removed)


@frozen(eq=False, kw_only=True)
class _Sides:
    """A policy, and the same without the wide rules for everyone: a rule is needless if it is in both."""

    policy: Policy
    narrow: Policy | None = None
    """None if no rule is wide."""
    wide: frozenset[StandardAcl] = frozenset()

    @classmethod
    def of(cls, policy: Policy) -> "_Sides":
        table = RuleTable.of(policy)
        wide = frozenset(map(table.rule, np.flatnonzero(wide_rows(table)).tolist()))
        return cls(policy=policy, narrow=without_wide(table), wide=wide)

    def needless(self) -> frozenset[StandardAcl]:
        """Return the rules that may go, each by itself."""
        found = _needless(self.policy)
        return found if self.narrow is None else found & (_needless(self.narrow) | self.wide)

    def without(self, rules: Sequence[StandardAcl]) -> "_Sides | None":
        """Return both without some rules; None if that changes a decision of either."""
        policy, narrow = _without(self.policy, rules), self.narrow
        if policy is not None and narrow is not None:
            narrow = _without(narrow, [rule for rule in rules if rule not in self.wide])
        if policy is None or (narrow is None and self.narrow is not None):
            return None
        return _Sides(policy=policy, narrow=narrow, wide=self.wide)


def _needless(policy: Policy) -> frozenset[StandardAcl]:
    table = RuleTable.of(policy)
    rows = np.flatnonzero(np.isin(verdicts(table), (Verdict.COVERED, Verdict.OVERRIDDEN, Verdict.DEAD)))
    return frozenset(map(table.rule, rows.tolist()))


def _without(policy: Policy, rules: Sequence[StandardAcl]) -> Policy | None:
    changes = [RuleChange(added=False, acl=rule) for rule in rules]
    without = Policy(changed_acls(policy.acls, changes), policy.settings)
    return without if next(differences(policy, without, changed=rules), None) is None else None


def _unguarding(policy: Policy, rules: Iterable[StandardAcl]) -> Iterable[StandardAcl]:
    """Yield the rules without the DENYs that no other DENY covers."""
    responsible = Responsible.of(RuleTable.of(policy))
    for rule in rules:
        if is_allow(rule) or responsible.covering(rule, allows=False) is not None:
            yield rule


def _together(now: _Sides, wanted: Iterable[StandardAcl]) -> list[StandardAcl]:
    """Return those of the wanted rules that are needless now, one of each cell: the one that says the least.

    What stands in for a rule has a wider pattern, principal or host, and what stands in for that a wider one yet. Only
    rules of one cell can stand in for one another.
    """
    needless = now.needless()
    narrowest: dict[object, StandardAcl] = {}
    for rule in wanted:
        cell = (*key_of(rule), rule.principal, rule.host)
        if rule in needless and (cell not in narrowest or _said(rule) < _said(narrowest[cell])):
            narrowest[cell] = rule
    rules = list(narrowest.values())
    return _all_but_one(now.policy, rules) if now.policy.settings.allow_everyone else rules


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


def _removed(now: _Sides, rules: Sequence[StandardAcl]) -> tuple[_Sides, list[StandardAcl]]:
    """Return both sides without the rules, and the rules; without a part of them, if all are not neutral together."""
    if not rules:
        return now, []
    without = now.without(rules)
    if without is not None:
        return without, list(rules)
    if len(rules) == 1:
        return now, []
    middle = len(rules) // 2
    half, gone = _removed(now, rules[:middle])
    rest, more = _removed(half, rules[middle:])
    return rest, [*gone, *more]
