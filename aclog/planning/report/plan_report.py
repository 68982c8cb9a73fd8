"""A plan, and all that is known of what it does."""

from functools import cached_property

from attrs import define

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
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
