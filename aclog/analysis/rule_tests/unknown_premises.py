"""Cases whose outcome an unknown premise could turn: none of them passes."""

from collections.abc import Iterator

from attrs import define, evolve, field

from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.premises import Premises


@define(eq=False)
class PremisedRun:
    """Runs cases on a policy of whose settings something is unknown.

    A case that passes is run again with all that is unknown the other way: with the principals that it names as super
    users, and with everything open that no ACL is for. If it fails then, it is not known to pass.
    """

    policy: Policy
    premises: Premises
    _policies: dict[tuple[frozenset[str], bool], Policy] = field(factory=dict, init=False)

    def run(self, case: Case) -> Outcome:
        """Return what became of the case. Raises as Case.run."""
        found = case.run(self.policy)
        if not found.passed or not self.premises:
            return found
        each_alone = map(Premises, ((premise,) for premise in self.premises.unknown))
        turning = Premises(tuple(each.unknown[0] for each in each_alone if not self._passes(case, each)))
        if not turning and not self._passes(case, self.premises):
            turning = self.premises
        if not turning:
            return found
        return evolve(found, failures=(Failure(found=f"it is not known to hold: it does not if {turning.unless()}"),))

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
