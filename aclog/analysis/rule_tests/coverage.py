"""Which rules a set of cases exercises."""

from collections.abc import Iterable

from attrs import define, field, frozen

from aclog.analysis.answers.rules_about import is_about
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.no_new_access import NoNewAccess
from aclog.analysis.rule_tests.same_as import SameAs
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, StandardAcl
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class Coverage:
    """How many rules there are, and which of them no case exercises."""

    rules: int
    uncovered: tuple[StandardAcl, ...]

    @property
    def percent(self) -> float:
        """The share of rules that a case exercises; 100 if there is no rule."""
        return 100.0 if not self.rules else 100.0 * (self.rules - len(self.uncovered)) / self.rules


def coverage(policy: Policy, cases: Iterable[Case]) -> Coverage:
    """Return which rules match no request that a case is about.

    A comparison with another policy exercises no rule by itself: it says nothing of what any of them is for.
    """
    asked = _Asked(policy.settings)
    for case in cases:
        if not isinstance(case, SameAs | NoNewAccess):
            asked.add(case.queries(policy.settings))
    uncovered = [rule.acl for rule in policy.acls if not asked.covers(rule.acl)]
    return Coverage(rules=len(policy.acls), uncovered=tuple(sorted(uncovered, key=str)))


@define(eq=False)
class _Asked:
    """Queries by principal. Filled, then asked."""

    settings: Settings
    _of_one: dict[str, list[Query]] = field(factory=dict, init=False)
    _of_many: list[Query] = field(factory=list, init=False)

    def add(self, queries: Iterable[Query]) -> None:
        """Take queries."""
        for query in queries:
            if query.principals.complement:
                self._of_many.append(query)
            for each in () if query.principals.complement else query.principals.named:
                self._of_one.setdefault(each, []).append(query)

    def covers(self, rule: StandardAcl) -> bool:
        """Return whether a rule matches a request of one."""
        if any(is_about(rule, query, self.settings) for query in self._of_many):
            return True
        everybody = rule.principal == WILDCARD_PRINCIPAL or ":" not in rule.principal
        groups = self._of_one.values() if everybody else [self._of_one.get(rule.principal, [])]
        return any(is_about(rule, query, self.settings) for queries in groups for query in queries)
