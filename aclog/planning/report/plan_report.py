"""A plan, and all that is known of what it does."""

from functools import cached_property

from attrs import define, evolve

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.side_premises import SidePremises
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import changed_acls
from aclog.planning.place import PlaceState
from aclog.planning.plan import Plan
from aclog.planning.planner import PlannedChange
from aclog.planning.report.rule_uses import RuleUses


@define(eq=False, slots=False, kw_only=True)
class PlanReport:
    """What a plan changes in a place. Immutable by convention."""

    name: str
    """Of the place, for people."""
    state: PlaceState
    plan: Plan
    change: PlannedChange
    uses: RuleUses | None = None
    """When the ACLs that it deletes were last used, if anybody asked."""
    premises: Premises = ALL_KNOWN
    """What decides there and is unknown; the settings of the plan count it as no super user, and as open."""

    @cached_property
    def before(self) -> Policy:
        """What decides before the plan."""
        settings = self.plan.settings
        acls = self.state.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        return Policy(acls, settings)

    @cached_property
    def end(self) -> Policy:
        """What decides after it."""
        return Policy(changed_acls(self.before.acls, self.change.changes), self.plan.settings)

    @cached_property
    def effect(self) -> Comparison:
        """What it gives and takes."""
        return Comparison.of(self.before, self.end, changes=self.change.changes)

    @cached_property
    def closed_end(self) -> Policy:
        """What decides after it if no name without ACLs is open, which the plan need not know."""
        return _closed(self.end)

    @cached_property
    def turning(self) -> Premises:
        """What is unknown and could make a difference of an effect without any; nothing if no ACL changes."""
        changes = self.change.changes
        if not changes:
            return ALL_KNOWN
        left = self.premises.without({ALLOW_EVERYONE_CONFIG})
        found = SidePremises(old=left, new=left).turning(None, lambda: False)
        if left == self.premises or not self._differs_when_closed():
            return found
        return found.also(Premises(tuple(each for each in self.premises.unknown if each.name == ALLOW_EVERYONE_CONFIG)))

    def _differs_when_closed(self) -> bool:
        """Return whether the plan changes a decision if no name without ACLs is open: it takes them for open."""
        before = _closed(self.before)
        return bool(Comparison.of(before, self.closed_end, changes=self.change.changes).differences)


def _closed(policy: Policy) -> Policy:
    return Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
