"""Cases whose outcome an unknown premise could turn, or another Kafka that may decide: none of them passes."""

from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from attrs import define, evolve, field, frozen

from aclog.analysis.by_generation import merged, only_on
from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.no_new_access import NoNewAccess
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.same_as import SameAs
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.generation import Generation
from aclog.authorizer.premises import ALL_KNOWN, Premises


@define(eq=False)
class PremisedRun:
    """Runs cases on a policy of whose settings something is unknown.

    A case that passes is run again with all that is unknown the other way: with the principals that it names as super
    users, and with everything open that no ACL is for. If it fails then, it is not known to pass.
    """

    policy: Policy
    premises: Premises
    given: AbstractSet[str] = frozenset()
    """The properties of brokers whose values the settings of the policy have."""
    _policies: dict[tuple[frozenset[str], bool], Policy] = field(factory=dict, init=False)

    def run(self, case: Case) -> Outcome:
        """Return what became of the case. Raises as Case.run."""
        outcome = case.run(self.policy)
        premises = self._unknown(case) if outcome.passed else ALL_KNOWN
        if not premises:
            return outcome
        each_alone = map(Premises, ((premise,) for premise in premises.unknown))
        turning = Premises(tuple(each.unknown[0] for each in each_alone if not self._passes(case, each)))
        if not turning and not self._passes(case, premises):
            turning = premises
        if not turning:
            return outcome
        reason = f"it is not known to hold: it does not if {turning.unless()}"
        return evolve(outcome, failures=(Failure(found=reason),))

    def _unknown(self, case: Case) -> Premises:
        """Return what is unknown of the policy, or of one that it was compared with: both have its settings."""
        other = case.than if isinstance(case, NoNewAccess) else case.other if isinstance(case, SameAs) else None
        if other is None:
            return self.premises
        more = other.premises.without(self.given | set(self.premises.names))
        return Premises((*self.premises.unknown, *more.unknown))

    def _passes(self, case: Case, others: Premises) -> bool:
        """Return whether a case passes if these are the other way; False if it is not known what that is."""
        if not {SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG}.issuperset(others.names):
            return False
        users = frozenset(_named(case, self.policy)) if SUPER_USERS_CONFIG in others.names else frozenset[str]()
        is_open = ALLOW_EVERYONE_CONFIG in others.names
        return not (users or is_open) or case.run(self._changed(users, is_open=is_open)).passed

    def _changed(self, users: frozenset[str], *, is_open: bool) -> Policy:
        key = users, is_open
        if key not in self._policies:
            settings = self.policy.settings
            changed = evolve(
                settings,
                super_users=settings.super_users | users,
                allow_everyone=settings.allow_everyone or is_open,
            )
            self._policies[key] = Policy(self.policy.acls, changed)
        return self._policies[key]


def _named(case: Case, policy: Policy) -> Iterator[str]:
    """Yield the principals that a case is about by name; of everybody, super users are left out anyway."""
    for query in case.queries(policy.settings):
        if not query.principals.complement:
            yield from query.principals.named


@frozen(eq=False)
class EachRun:
    """Runs cases on the policies of all generations of Kafka that may decide: one passes if it passes on each."""

    runs: Mapping[Generation, PremisedRun]

    @classmethod
    def of(
        cls, policies: Mapping[Generation, Policy], premises: Premises, given: AbstractSet[str] = frozenset()
    ) -> "EachRun":
        """Return it for policies of whose settings something is unknown; as PremisedRun has these."""
        return cls({generation: PremisedRun(policy, premises, given) for generation, policy in policies.items()})

    def run(self, case: Case) -> Outcome:
        """Return what became of the case; how it fails on one Kafka only is marked. Raises as Case.run."""
        outcomes = {generation: run.run(case) for generation, run in self.runs.items()}
        if len(outcomes) == 1:
            return next(iter(outcomes.values()))
        failures = merged({generation: outcome.failures for generation, outcome in outcomes.items()}, _key)
        found = (evolve(each, found=f"{each.found}{only_on(only)}", only=only) for each, only in failures)
        return Outcome(case=case, failures=tuple(found))


def _key(failure: Failure) -> Hashable:
    return failure.found, failure.request, failure.decided_by, failure.region
