"""Mutation testing: whether a mistake in any ACL makes a case fail."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from attrs import define, evolve, field, frozen

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Difference, Query
from aclog.analysis.rule_tests.case import Case, changed_policy, touches, with_ids
from aclog.analysis.rule_tests.expectations import CanOnly, Decides, NoNewAccess, Reason, SameAs
from aclog.analysis.who_can import is_about
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.settings import Settings

# Mutants of an ACL: plausible mistakes.


class Mutation(StrEnum):
    """A kind of mutation of an ACL."""

    REMOVED = "removed"
    ANY_LONGER_NAME = "literal to prefixed"
    ANY_HOST = "any host"
    ANY_PRINCIPAL = "any principal"
    ALL_OPERATIONS = "all operations"
    FLIPPED = "flipped"


@frozen(kw_only=True)
class Mutant:
    """An ACL and its mutation."""

    rule: StandardAcl
    mutation: Mutation
    becomes: StandardAcl | None
    """None if it is removed."""


def mutants(rule: StandardAcl) -> Iterator[Mutant]:
    """Yield the mutants of an ACL that differ from it."""
    yield Mutant(rule=rule, mutation=Mutation.REMOVED, becomes=None)
    literal = rule.pattern_type == PatternType.LITERAL and rule.resource_type != ResourceType.CLUSTER
    if literal and rule.resource_name != WILDCARD:
        yield _mutant(rule, Mutation.ANY_LONGER_NAME, pattern_type=int(PatternType.PREFIXED))
    if rule.host != WILDCARD:
        yield _mutant(rule, Mutation.ANY_HOST, host=WILDCARD)
    if rule.principal != WILDCARD_PRINCIPAL:
        yield _mutant(rule, Mutation.ANY_PRINCIPAL, principal=WILDCARD_PRINCIPAL)
    if rule.operation != AclOperation.ALL:
        yield _mutant(rule, Mutation.ALL_OPERATIONS, operation=int(AclOperation.ALL))
    allows = rule.permission_type == AclPermissionType.ALLOW
    yield _mutant(
        rule, Mutation.FLIPPED, permission_type=int(AclPermissionType.DENY if allows else AclPermissionType.ALLOW)
    )


def _mutant(rule: StandardAcl, mutation: Mutation, **fields: Any) -> Mutant:
    return Mutant(rule=rule, mutation=mutation, becomes=evolve(rule, **fields))


# Mutation testing: whether a mistake in any ACL makes a case fail.


@frozen(kw_only=True)
class MutationResult:
    """The result for a mutant that changes a decision."""

    mutant: Mutant
    killed: bool
    """Whether it makes a case fail."""
    changed: Difference | None = None
    """For a surviving mutant: requests that it changes and that no case covers."""


def mutation_results(policy: Policy, cases: Iterable[Case]) -> Iterator[MutationResult | None]:
    """Yield the result of each mutant of each ACL, ACL by ACL; None for one that changes no decision.

    All `cases` must pass. The differences of a mutant are computed exactly, and only the cases that cover one of them
    are run again, until one fails.
    """
    base = with_ids(policy)
    index = _CaseIndex.of(base, cases)
    for rule in sorted((each.acl for each in base.acls), key=str):
        for mutant in mutants(rule):
            yield _judged(base, index, mutant)


def mutant_count(policy: Policy) -> int:
    """Return the number of mutants of the ACLs of a policy."""
    return sum(1 for rule in policy.acls for _ in mutants(rule.acl))


def _judged(base: Policy, index: "_CaseIndex", mutant: Mutant) -> MutationResult | None:
    changes = [RuleChange(added=False, acl=mutant.rule)]
    if mutant.becomes is not None and base.acls.find(mutant.becomes) is None:
        changes.append(RuleChange(added=True, acl=mutant.becomes))
    changed, rules = changed_policy(base, changes), [change.acl for change in changes]
    effects = list(differences(base, changed, changed=rules))
    if not effects:
        return None
    if index.is_noticed(changed, effects, rules):
        return MutationResult(mutant=mutant, killed=True)
    return MutationResult(mutant=mutant, killed=False, changed=effects[0])


@define(eq=False, kw_only=True)
class _CaseIndex:
    """Cases by the principals that they cover."""

    settings: Settings
    compares_all: bool
    """Whether a case fails if any request is decided differently."""
    looks_at_rules: bool
    """Whether a case names the ACL that decides."""
    _of_one: dict[str, list[tuple[Case, Sequence[Query]]]] = field(factory=dict)
    _of_many: list[tuple[Case, Sequence[Query]]] = field(factory=list)

    @staticmethod
    def of(policy: Policy, cases: Iterable[Case]) -> "_CaseIndex":
        """Return the index of cases that pass on a policy."""
        every = list(cases)
        index = _CaseIndex(
            settings=policy.settings,
            compares_all=any(map(_compares_all, every)),
            looks_at_rules=any(map(_looks_at_rules, every)),
        )
        # Cases that need not be run come first.
        for case in sorted(every, key=lambda case: not isinstance(case, CanOnly)):
            if not isinstance(case, SameAs | NoNewAccess):
                index._add(case, case.queries(policy.settings))
        # Cases that read another policy come last.
        for case in every:
            if isinstance(case, SameAs | NoNewAccess) and not _compares_all(case):
                index._of_many.append((case, case.queries(policy.settings)))
        return index

    def _add(self, case: Case, queries: Sequence[Query]) -> None:
        if any(query.principals.complement for query in queries):
            self._of_many.append((case, queries))
        else:
            for each in {name for query in queries for name in query.principals.named}:
                self._of_one.setdefault(each, []).append((case, queries))

    def is_noticed(self, changed: Policy, effects: Sequence[Difference], rules: Sequence[StandardAcl]) -> bool:
        """Return whether a case fails on a policy with these differences, caused by these ACLs."""
        if self.compares_all:
            return True
        near = (case for case, queries in self._near(effects, rules) if self._may_fail(case, queries, effects, rules))
        return any(isinstance(case, CanOnly) or not case.run(changed).passed for case in near)

    def _may_fail(
        self, case: Case, queries: Sequence[Query], effects: Sequence[Difference], rules: Sequence[StandardAcl]
    ) -> bool:
        if any(touches(each.region, query) for query in queries for each in effects):
            return True
        # The deciding ACL may change where the decision does not.
        return _looks_at_rules(case) and any(is_about(rule, each, self.settings) for each in queries for rule in rules)

    def _near(
        self, effects: Sequence[Difference], rules: Sequence[StandardAcl]
    ) -> Iterator[tuple[Case, Sequence[Query]]]:
        """Yield the cases for the principals of the differences and of the changed ACLs."""
        everybody = any(each.region.principals.complement for each in effects)
        everybody |= self.looks_at_rules and any(rule.principal == WILDCARD_PRINCIPAL for rule in rules)
        named = dict.fromkeys(name for each in effects for name in each.region.principals.named)
        named |= dict.fromkeys(rule.principal for rule in rules)
        for each in self._of_one if everybody else named:
            yield from self._of_one.get(each, ())
        yield from self._of_many


def _looks_at_rules(case: Case) -> bool:
    return isinstance(case, Reason) or (isinstance(case, Decides) and bool(case.by_type or case.rule))


def _compares_all(case: Case) -> bool:
    return isinstance(case, SameAs) and case.accesses is None


# The ACLs that a set of cases exercises.


@frozen(kw_only=True)
class Coverage:
    """The number of ACLs, and those that no case exercises."""

    rules: int
    uncovered: tuple[StandardAcl, ...]

    @property
    def percent(self) -> float:
        """The share of ACLs that a case exercises, in percent; 100 if there are no ACLs."""
        return 100.0 if not self.rules else 100.0 * (self.rules - len(self.uncovered)) / self.rules


def coverage(policy: Policy, cases: Iterable[Case]) -> Coverage:
    """Return the ACLs that match no request of any case.

    A comparison with another policy exercises no ACL by itself: it states no purpose of an ACL.
    """
    index = _QueryIndex(policy.settings)
    for case in cases:
        if not isinstance(case, SameAs | NoNewAccess):
            index.add(case.queries(policy.settings))
    uncovered = [rule.acl for rule in policy.acls if not index.covers(rule.acl)]
    return Coverage(rules=len(policy.acls), uncovered=tuple(sorted(uncovered, key=str)))


@define(eq=False)
class _QueryIndex:
    """Queries by principal. Filled first, then queried."""

    settings: Settings
    _of_one: dict[str, list[Query]] = field(factory=dict, init=False)
    _of_many: list[Query] = field(factory=list, init=False)

    def add(self, queries: Iterable[Query]) -> None:
        """Add queries."""
        for query in queries:
            if query.principals.complement:
                self._of_many.append(query)
            for each in () if query.principals.complement else query.principals.named:
                self._of_one.setdefault(each, []).append(query)

    def covers(self, rule: StandardAcl) -> bool:
        """Return whether an ACL matches a request of a query."""
        if any(is_about(rule, query, self.settings) for query in self._of_many):
            return True
        everybody = rule.principal == WILDCARD_PRINCIPAL or ":" not in rule.principal
        groups = self._of_one.values() if everybody else [self._of_one.get(rule.principal, [])]
        return any(is_about(rule, query, self.settings) for queries in groups for query in queries)
