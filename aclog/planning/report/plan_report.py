"""A plan, and all that is known of what it does."""

from collections.abc import Sequence
from functools import cached_property

from attrs import define, evolve

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.side_premises import SidePremises
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG
from aclog.authorizer.generation import Generation
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import RuleChange, changed_acls
from aclog.authorizer.settings import Settings
from aclog.planning.place import PlaceState
from aclog.planning.plan import Plan
from aclog.planning.planner import PlannedChange
from aclog.planning.report.rule_uses import RuleUses
from aclog.snapshots.deciding_kafka import DecidingKafka


@define(eq=False, slots=False, kw_only=True)
class PlanEffect:
    """What decides before and after a plan, by one generation of Kafka, and what the plan gives and takes.

    Immutable by convention.
    """

    before: Policy
    end: Policy
    comparison: Comparison

    @cached_property
    def closed_end(self) -> Policy:
        """What decides after it if no name without ACLs is open, which the plan need not know."""
        return _closed(self.end)

    def differs_when_closed(self, changes: Sequence[RuleChange]) -> bool:
        """Return whether the plan changes a decision if no name without ACLs is open: it takes them for open."""
        return bool(Comparison.of(_closed(self.before), self.closed_end, changes=changes).differences)


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
    premises: Premises = ALL_KNOWN
    """What decides there and is unknown; the settings of the plan count it as no super user, and as open."""

    @cached_property
    def effects(self) -> dict[Generation | None, PlanEffect]:
        """What the plan does by each generation of Kafka that may decide; under None, if that is one."""
        return {each: self._effect(settings) for each, settings in self.plan.each_settings.items()}

    def _effect(self, settings: Settings) -> PlanEffect:
        acls = self.state.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        before, end = Policy(acls, settings), Policy(changed_acls(acls, self.change.changes), settings)
        return PlanEffect(before=before, end=end, comparison=Comparison.of(before, end, changes=self.change.changes))

    @cached_property
    def turning(self) -> Premises:
        """What is unknown and could make a difference of an effect without any; nothing if no ACL changes."""
        changes = self.change.changes
        if not changes:
            return ALL_KNOWN
        left = self.premises.without({ALLOW_EVERYONE_CONFIG})
        found = SidePremises(old=left, new=left).turning(None, lambda: False)
        if left == self.premises or not any(each.differs_when_closed(changes) for each in self.effects.values()):
            return found
        return found.also(Premises(tuple(each for each in self.premises.unknown if each.name == ALLOW_EVERYONE_CONFIG)))


def _closed(policy: Policy) -> Policy:
    return Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
