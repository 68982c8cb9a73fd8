"""Lints of rules that decide nothing (08 to 11): the policy without such a rule decides every request the same."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

import numpy as np
from attrs import define, evolve
from numpy.typing import NDArray

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.effect.verdicts import Verdict, verdicts
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, finding
from aclog.analysis.lint.responsible import Responsible
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import brief, noun, verb, what, who
from aclog.analysis.lint.wide_rules import wide_rows, without_wide
from aclog.authorizer.acl import AclOperation, StandardAcl
from aclog.authorizer.index.masks import rule_mask
from aclog.authorizer.rule_change import RuleChange
from aclog.metalog.vectors import Bools

_EXPLAINED = 10_000
"""So many findings of a lint name the rule that makes theirs needless: to look for it takes longer than all else."""
_SUSPECTS = 2
"""A finding names no more rules that may be wrong instead of its own."""
_KEPT = "Keep it, and mend the wide rule for everyone: once that is gone, this one is needed."


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
            told = Told(lost, (RuleChange(added=False, acl=rule),))
            yield finding(lint, (rule,), told, neutral=True)

    def _with_suspect(self, found: Finding) -> Finding:
        """Return a finding that blames the wide rules for everyone: their end would leave nothing of a removed rule."""
        (rule,) = found.rules
        suspects = " and ".join(map(brief, islice(self.responsible.sharing(rule, self._wide), _SUSPECTS)))
        lost = f"nothing today; the suspect is {suspects or 'a wide rule for everyone'}: without that it is needed"
        return evolve(found, lost=lost, fix=(), advice=_KEPT, neutral=False)

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
        found: Bools = (self.verdicts == Verdict.COVERED) & np.isin(
            self.table.operation_of, (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        )
        for row in np.flatnonzero(found).tolist():
            found[row] = self.responsible.implying(self.table.rule(row)) is not None
        return found

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
        if not rule_mask(rule.operation, rule.permission_type) & self.responsible.asked:
            return f"no request asks for {verb(rule)}: {who(rule)} may do nothing by it"
        return f"no {noun(rule.resource_type)} is {what(rule)}: {who(rule)} may do nothing by it"

    def _tell_dead(self, rule: StandardAcl) -> str:
        if rule.principal in self.table.settings.super_users:
            return f"nothing is denied: {rule.principal} is a super user"
        other = self.responsible.covering(rule, allows=False)
        if other is not None:
            return f"nothing more is denied: {brief(other)} denies it as well"
        return f"nothing is denied that any rule allows: {who(rule)}: {verb(rule)} {what(rule)}"
