"""Lints of redundant ACLs, and fixes that change no decision."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from aclog.analysis.comparison import differences
from aclog.analysis.lint.effect import Verdict, verdicts
from aclog.analysis.lint.finding import Consequence, Finding, brief, finding, is_allow, noun, verb, what, who
from aclog.analysis.lint.holders import Responsible
from aclog.analysis.lint.names import wide_rows, without_wide
from aclog.analysis.lint.rule_table import LintContext, RuleTable
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclOperation, StandardAcl
from aclog.authorizer.acls_image import RuleChange, changed_acls
from aclog.authorizer.index.acl_index import ResourceKey, key_of
from aclog.authorizer.index.layout import rule_mask
from aclog.metalog.vectors import Bools

# Lints of rules that decide nothing (08 to 11): the policy without such a rule decides every request the same.


_EXPLAINED = 10_000
"""So many findings of a lint name the rule that makes theirs needless: to look for it takes longer than all else."""
_SUSPECTS = 2
"""A finding names no more rules that may be wrong instead of its own."""
_SUSPECT_ADVICE = "Keep it, and mend the wide rule for everyone: once that is gone, this one is needed."


@define(eq=False, slots=False)
class Redundancy:
    """The verdicts on the rules of a table, made once for all four lints."""

    table: RuleTable

    @cached_property
    def verdicts(self) -> NDArray[np.uint8]:
        """By row of the table: what the rule adds (Verdict)."""
        return verdicts(self.table)

    @property
    def undecided(self) -> int:
        """How many DENY rules were given up, since it would take too long to tell whether they are dead."""
        return int((self.verdicts == Verdict.UNDECIDED).sum())

    @cached_property
    def responsible(self) -> Responsible:
        """Finds the rules that others depend on."""
        return Responsible.of(self.table)

    def shadowed(self, _table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the ALLOWs whose operations other rules allow wherever they are not denied (08)."""
        for each in self._findings("08", Verdict.COVERED, self._tell_shadowed, implied=False):
            yield self._with_suspect(each) if each.rules[0] in self._leaning else each

    def overridden(self, _table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the ALLOWs that allow nothing in the end (09)."""
        return self._findings("09", Verdict.OVERRIDDEN, self._tell_overridden)

    def dead(self, _table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the DENYs that deny nothing which is allowed otherwise (10)."""
        return self._findings("10", Verdict.DEAD, self._tell_dead)

    def implied(self, _table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield those of the shadowed ALLOWs that another one on the same pattern implies (11)."""
        return self._findings("11", Verdict.COVERED, self._tell_implied, implied=True)

    def _findings(
        self, lint: str, verdict: Verdict, tell: Callable[[StandardAcl], str], *, implied: bool | None = None
    ) -> Iterator[Finding]:
        rows = self.verdicts == verdict
        if implied is not None:
            rows &= self._implied if implied else ~self._implied
        for number, row in enumerate(np.flatnonzero(rows).tolist()):
            rule = self.table.rule(row)
            lost = tell(rule) if number < _EXPLAINED else f"nothing: every request is decided as without {brief(rule)}"
            consequence = Consequence(lost, (RuleChange(added=False, acl=rule),))
            yield finding(lint, (rule,), consequence, neutral=True)

    def _with_suspect(self, original: Finding) -> Finding:
        """Return a finding that blames the wide rules for everyone: their end would leave nothing of a removed rule."""
        (rule,) = original.rules
        suspects = " and ".join(map(brief, islice(self.responsible.sharing(rule, self._wide), _SUSPECTS)))
        lost = f"nothing today; the suspect is {suspects or 'a wide rule for everyone'}: without that it is needed"
        return evolve(original, lost=lost, fix=(), advice=_SUSPECT_ADVICE, neutral=False)

    @cached_property
    def _wide(self) -> frozenset[StandardAcl]:
        """The rules that give everyone a right that reaches far."""
        return frozenset(map(self.table.rule, np.flatnonzero(wide_rows(self.table)).tolist()))

    @cached_property
    def _leaning(self) -> frozenset[StandardAcl]:
        """The shadowed rules that are needed as soon as the wide rules for everyone are gone."""
        narrow = without_wide(self.table)
        covered = np.flatnonzero(self.verdicts == Verdict.COVERED).tolist() if narrow is not None else []
        if narrow is None or not covered:
            return frozenset()
        rest = RuleTable.of(narrow)
        needless = {rest.rule(row) for row in np.flatnonzero(verdicts(rest) == Verdict.COVERED).tolist()}
        return frozenset(map(self.table.rule, covered)) - needless - self._wide

    @cached_property
    def _implied(self) -> Bools:
        """By row: whether it is shadowed, and another rule on the pattern implies it."""
        implied: Bools = (self.verdicts == Verdict.COVERED) & np.isin(
            self.table.operation_of, (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        )
        for row in np.flatnonzero(implied).tolist():
            implied[row] = self.responsible.implying(self.table.rule(row)) is not None
        return implied

    def _tell_implied(self, rule: StandardAcl) -> str:
        implying = self.responsible.implying(rule)
        by = "another rule" if implying is None else verb(implying)
        return f"nothing: {who(rule)} may {verb(rule)} {what(rule)} because of {by} on it"

    def _tell_shadowed(self, rule: StandardAcl) -> str:
        if rule.principal in self.table.settings.super_users:
            return f"nothing: {rule.principal} is a super user"
        other = self.responsible.covering(rule, allows=True)
        by = "other rules together" if other is None else brief(other)
        return f"nothing: {who(rule)} may {verb(rule)} {what(rule)} by {by}"

    def _tell_overridden(self, rule: StandardAcl) -> str:
        other = self.responsible.covering(rule, allows=False)
        if other is not None:
            return f"{who(rule)} may not {verb(rule)} {what(rule)}: {brief(other)} wins"
        if not rule_mask(rule.operation, rule.permission_type) & self.responsible.requestable:
            return f"no request asks for {verb(rule)}: {who(rule)} may do nothing by it"
        return f"no {noun(rule.resource_type)} is {what(rule)}: {who(rule)} may do nothing by it"

    def _tell_dead(self, rule: StandardAcl) -> str:
        if rule.principal in self.table.settings.super_users:
            return f"nothing is denied: {rule.principal} is a super user"
        other = self.responsible.covering(rule, allows=False)
        if other is not None:
            return f"nothing more is denied: {brief(other)} denies it as well"
        return f"nothing is denied that any rule allows: {who(rule)}: {verb(rule)} {what(rule)}"


# A mend that changes no decision: rules that can go together, since others say all that they say.


def neutral_fix(policy: Policy, findings: Iterable[Finding]) -> tuple[RuleChange, ...]:
    """Return removals after which every request is decided as before: of rules that findings call needless.

    Of rules that stand in for one another the wider ones stay, but no rule goes because of a wide rule for everyone:
    that one may be the mistake. A DENY goes only if another DENY covers it: one that denies nothing yet may stand guard
    against rules to come. That the removals are neutral together is proved by the exact difference, of each step.
    """
    needless = dict.fromkeys(rule for each in findings if each.neutral for rule in each.rules)
    candidates = dict.fromkeys(_unguarding(policy, needless))
    removed: list[StandardAcl] = []
    now = _Sides.of(policy)
    while candidates:
        step = _together(now, candidates)
        now, batch = _removed(now, step)
        if not batch:
            break
        removed += batch
        for rule in batch:
            del candidates[rule]
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
        rules = _needless(self.policy)
        return rules if self.narrow is None else rules & (_needless(self.narrow) | self.wide)

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


def _together(now: _Sides, candidates: Iterable[StandardAcl]) -> list[StandardAcl]:
    """Return those of the wanted rules that are needless now, one of each cell: the one that says the least.

    What stands in for a rule has a wider pattern, principal or host, and what stands in for that a wider one yet. Only
    rules of one cell can stand in for one another.
    """
    needless = now.needless()
    narrowest: dict[object, StandardAcl] = {}
    for rule in candidates:
        cell = (*key_of(rule), rule.principal, rule.host)
        if rule in needless and (cell not in narrowest or _operation_count(rule) < _operation_count(narrowest[cell])):
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
    removable: list[StandardAcl] = []
    for (kind, name, literal), some in of_pattern.items():
        resource = policy.acls.index.named(kind, name)[0 if literal else 1]
        count = policy.acls.index.count(resource)
        removable += some[:-1] if len(some) == count > 1 else some
    return removable


def _operation_count(rule: StandardAcl) -> int:
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
    half, removed = _removed(now, rules[:middle])
    rest, more = _removed(half, rules[middle:])
    return rest, [*removed, *more]
