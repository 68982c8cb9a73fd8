"""What a draft would change: which of its changes are any, who gains and loses what, and who shares what it opens."""

from collections.abc import Sequence
from functools import cached_property

from attrs import define, field

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import PatternType, StandardAcl
from aclog.authorizer.origin import NO_ORIGINS, Origins, TwoOrigins
from aclog.authorizer.rule_change import ChangedOrigins, RuleChange, changed_acls
from aclog.authorizer.rule_content import content_of
from aclog.console.draft.ground import Ground
from aclog.planning.granting.sharing import Shared, shared

_MOST_PAIRS = 2_000_000
"""Of a prefix that is opened and a rule near it, that are looked at for who shares it."""


@define(eq=False, slots=False, kw_only=True)
class DraftEffect:
    """A draft beside a state. Immutable by convention."""

    ground: Ground
    asked: Sequence[RuleChange]
    """All changes, in order: of several of a rule the last one counts."""
    _origins: Origins = field(default=NO_ORIGINS)
    """Where the rules of the state stand."""

    @cached_property
    def _last(self) -> list[RuleChange]:
        return list({change.acl: change for change in self.asked}.values())

    def _is_there(self, change: RuleChange) -> bool:
        return self.ground.policy.acls.find(change.acl) is not None

    @cached_property
    def changes(self) -> tuple[RuleChange, ...]:
        """Those that change the rules."""
        return tuple(each for each in self._last if self._is_there(each) is not each.added)

    @cached_property
    def idle(self) -> tuple[RuleChange, ...]:
        """Those that change nothing: what is to be added is there, or what is to be removed is not."""
        return tuple(each for each in self._last if self._is_there(each) is each.added)

    @property
    def repeated(self) -> int:
        """How many changes do not count, as a later one is of the same rule."""
        return len(self.asked) - len(self._last)

    @cached_property
    def after(self) -> Policy:
        """The policy with the draft."""
        before = self.ground.policy
        return Policy(changed_acls(before.acls, self.changes), before.settings) if self.changes else before

    @cached_property
    def comparison(self) -> Comparison:
        """Who gains and loses what."""
        both = ChangedOrigins.of_changes(self._origins, self.changes)
        return Comparison.of(
            self.ground.policy, self.after, changes=self.changes, origins=TwoOrigins(old=self._origins, new=both)
        )

    @cached_property
    def near(self) -> tuple[StandardAcl, ...]:
        """The rules that have a name in common with changed ones, and those of their principals."""
        return self.ground.near([change.acl for change in self.changes])

    @cached_property
    def sharing(self) -> tuple[Shared, ...] | None:
        """Who else has rules on names of prefixes that are opened or closed; None if there are too many to look at."""
        changed = [each.acl for each in self.changes]
        wide = sum(acl.pattern_type == PatternType.PREFIXED or acl.resource_name == "*" for acl in changed)
        if not wide:
            return ()
        if wide * len(self.near) > _MOST_PAIRS:
            return None
        return shared(changed, {content_of(acl) for acl in self.near})
