"""Which unknown premises could turn a proof that two policies decide the same."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from attrs import evolve, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Direction
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.premises import ALL_KNOWN, Premise, Premises


@frozen(kw_only=True)
class SidePremises:
    """What is unknown of the settings of two sides.

    Two sides with the same settings have the same super users, whoever they are: those are allowed the same on both.
    """

    old: Premises = ALL_KNOWN
    new: Premises = ALL_KNOWN
    same_settings: bool = True
    """Whether what is unknown on both sides has one value: they have the settings of one cluster."""

    @staticmethod
    def of_one(unknown: Premises, old_given: AbstractSet[str], new_given: AbstractSet[str]) -> "SidePremises":
        """Return those of two sides with the settings of one cluster, as far as nothing gives them for a side."""
        return SidePremises(old=unknown.without(old_given), new=unknown.without(new_given))

    @property
    def unknown(self) -> Premises:
        """All that is unknown on a side, each name once."""
        known = {each.name: each for each in (*self.new.unknown, *self.old.unknown)}
        return Premises(tuple(known.values()))

    def turning(self, direction: Direction | None, differs_when_open: Callable[[], bool]) -> Premises:
        """Return those that could turn a proof that nothing differs in this direction, or in either.

        `differs_when_open`: whether something does if both sides allow everyone what no ACL is for.
        """
        return Premises(tuple(each for each in self.unknown.unknown if self._turns(each, direction, differs_when_open)))

    def _turns(self, premise: Premise, direction: Direction | None, differs_when_open: Callable[[], bool]) -> bool:
        if premise.denies:
            return True
        in_old, in_new = premise.name in self.old.names, premise.name in self.new.names
        if in_old and in_new and self.same_settings:
            if premise.name == ALLOW_EVERYONE_CONFIG:
                return differs_when_open()
            return premise.name != SUPER_USERS_CONFIG
        # It can only allow more, on its side.
        return not (direction is Direction.GAINED and not in_new) and not (direction is Direction.LOST and not in_old)


def turning(premises: SidePremises, comparison: Comparison, direction: Direction | None = None) -> Premises:
    """Return those that could turn `comparison`, which has no difference in this direction, or in either."""

    def differs_when_open() -> bool:
        """Compare the policies once more."""
        old, new = opened(comparison.old), opened(comparison.new)
        return bool(Comparison.of(old, new, changes=comparison.changes, direction=direction).differences)

    return premises.turning(direction, differs_when_open)


def turning_same(premises: Premises, comparison: Comparison) -> Premises:
    """Return those of one source that could make a difference of none between two of its states."""
    return ALL_KNOWN if comparison.differences else turning(SidePremises(old=premises, new=premises), comparison)


def opened(policy: Policy) -> Policy:
    """Return the policy with everything open to everyone that no ACL is for."""
    return Policy(policy.acls, evolve(policy.settings, allow_everyone=True))
