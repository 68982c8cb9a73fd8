"""A plan, and all that is known of what it does."""

from functools import cached_property

from attrs import define, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.authorizer.generation import Generation
from aclog.authorizer.rule_change import changed_acls
from aclog.authorizer.settings import Settings
from aclog.planning.place import PlaceState
from aclog.planning.plan import Plan
from aclog.planning.planner import PlannedChange
from aclog.planning.report.rule_uses import RuleUses
from aclog.snapshots.deciding_kafka import DecidingKafka


@frozen(eq=False, kw_only=True)
class PlanEffect:
    """What decides after a plan, by one generation of Kafka, and what the plan gives and takes."""

    end: Policy
    comparison: Comparison


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
    kafka: DecidingKafka | None = None
    """What may decide there, if it is known why several generations may."""

    @cached_property
    def effects(self) -> dict[Generation | None, PlanEffect]:
        """What the plan does by each generation of Kafka that may decide; under None, if that is one."""
        return {each: self._effect(settings) for each, settings in self.plan.each_settings.items()}

    def _effect(self, settings: Settings) -> PlanEffect:
        acls = self.state.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        before, end = Policy(acls, settings), Policy(changed_acls(acls, self.change.changes), settings)
        return PlanEffect(end=end, comparison=Comparison.of(before, end, changes=self.change.changes))
