"""Mutation testing: whether a mistake in any rule makes a case fail."""

from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field, frozen

from aclog.analysis.answers.questions import concerns
from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Difference
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.changed_policy import changed_policy, with_ids
from aclog.analysis.rule_tests.decides import Decides
from aclog.analysis.rule_tests.mutant import Mutant, mutants
from aclog.analysis.rule_tests.same_as import SameAs
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, StandardAcl
from aclog.authorizer.rule_change import RuleChange


@frozen(kw_only=True)
class MutationResult:
    """What became of a mutant that changes a decision."""

    mutant: Mutant
    killed: bool
    """Whether a case fails with it."""
    changed: Difference | None = None
    """Of one that survived: requests that it changes, and no case asks for."""


def mutation_results(policy: Policy, cases: Iterable[Case]) -> Iterator[MutationResult | None]:
    """Yield what becomes of each mutant of each rule, rule by rule; None for one that changes no decision.

    `cases` must all hold. Of each mutant only those are run again that a changed rule concerns, and only until one
    fails; that a mutant changes no decision is proved.
    """
    base = with_ids(policy)
    index = _CaseIndex.of(base, cases)
    for rule in sorted((each.acl for each in base.acls), key=str):
        for mutant in mutants(rule):
            yield _judged(base, index, mutant)


def mutant_count(policy: Policy) -> int:
    """Return how many mutants the rules of a policy have."""
    return sum(1 for rule in policy.acls for _ in mutants(rule.acl))


def _judged(base: Policy, index: "_CaseIndex", mutant: Mutant) -> MutationResult | None:
    changes = [RuleChange(added=False, acl=mutant.rule)]
    if mutant.becomes is not None and base.acls.find(mutant.becomes) is None:
        changes.append(RuleChange(added=True, acl=mutant.becomes))
    changed = changed_policy(base, changes)
    rules = [change.acl for change in changes]
    if any(not case.run(changed).passed for case in index.concerned(rules)):
        return MutationResult(mutant=mutant, killed=True)
    found = next(differences(base, changed, changed=rules), None)
    if found is None:
        return None
    # Whatever is decided otherwise fails a comparison of all requests, which would cost far more than this.
    return MutationResult(mutant=mutant, killed=index.compares_all, changed=None if index.compares_all else found)


@define(eq=False, kw_only=True)
class _CaseIndex:
    """Cases by the principals that they are about."""

    policy: Policy
    compares_all: bool
    """Whether one holds only if every request is decided as it is."""
    _of_one: dict[str, list[tuple[Case, Sequence[Query]]]] = field(factory=dict)
    _of_many: list[tuple[Case, Sequence[Query]]] = field(factory=list)

    @staticmethod
    def of(policy: Policy, cases: Iterable[Case]) -> "_CaseIndex":
        every = list(cases)
        index = _CaseIndex(policy=policy, compares_all=any(map(_compares_all, every)))
        # The quickest first.
        for case in sorted(every, key=lambda case: not isinstance(case, Decides)):
            if not _compares_all(case):
                index._add(case)
        return index

    def _add(self, case: Case) -> None:
        queries = case.queries(self.policy.settings)
        if any(query.principals.complement for query in queries):
            self._of_many.append((case, queries))
        else:
            for each in {name for query in queries for name in query.principals.named}:
                self._of_one.setdefault(each, []).append((case, queries))

    def concerned(self, rules: Sequence[StandardAcl]) -> Iterator[Case]:
        """Yield the cases in whose outcome one of the rules can have a part."""
        settings = self.policy.settings
        for case, queries in self._near(rules):
            if any(concerns(query, rule, settings) for rule in rules for query in queries):
                yield case

    def _near(self, rules: Sequence[StandardAcl]) -> Iterator[tuple[Case, Sequence[Query]]]:
        named = dict.fromkeys(rule.principal for rule in rules)
        everybody = self.policy.settings.allow_everyone or any(
            each == WILDCARD_PRINCIPAL or ":" not in each for each in named
        )
        for each in self._of_one if everybody else named:
            yield from self._of_one.get(each, ())
        yield from self._of_many


def _compares_all(case: Case) -> bool:
    return isinstance(case, SameAs) and case.accesses is None
