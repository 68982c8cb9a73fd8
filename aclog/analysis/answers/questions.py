"""Questions of each state of a log (aclog.analysis.answers.timeline)."""

from functools import cached_property

from attrs import define, field, frozen

from aclog.analysis.answers.holders import holders
from aclog.analysis.answers.intents import Need
from aclog.analysis.deciding import is_allowed
from aclog.analysis.difference import allowed, differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Direction, Request
from aclog.analysis.regions.root import root_of_pattern, within
from aclog.analysis.regions.witness import witness
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, PatternType, StandardAcl
from aclog.authorizer.index.masks import known_type
from aclog.authorizer.settings import Settings


@define
class AnyAllowed:
    """Is any request of a query allowed?"""

    query: Query
    _example: Request | None = field(default=None, init=False)
    """One that was allowed in the last state asked."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """The requests on which the answer depends."""
        return (self.query,)

    def concerns(self, rule: StandardAcl, settings: Settings) -> bool:
        """Return whether a rule can have a part in the answer."""
        return concerns(self.query, rule, settings)

    def holds(self, old: Policy, new: Policy, changed: StandardAcl | None) -> bool:
        """Return whether some request is allowed in `new`."""
        if self._example is not None and is_allowed(new, self._example):
            return True
        if self._example is None and changed is not None:
            gained = differences(old, new, query=self.query, changed=(changed,))
            found = next((each.region for each in gained if each.direction is Direction.GAINED), None)
        else:
            found = next(allowed(new, self.query), None)
        self._example = None if found is None else witness(found)
        return self._example is not None


@frozen(kw_only=True)
class IntentHeld:
    """Does an intent hold for any of some principals?"""

    needs: tuple[Need, ...]
    principals: Principals
    host: str | None = None
    """In the form of `host_address`; None for any."""

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """The requests on which the answer depends."""
        return tuple(need.query(self.principals) for need in self.needs)

    def concerns(self, rule: StandardAcl, settings: Settings) -> bool:
        """Return whether a rule can have a part in the answer."""
        return any(concerns(query, rule, settings) for query in self.queries)

    def holds(self, old: Policy, new: Policy, changed: StandardAcl | None) -> bool:  # noqa: ARG002
        """Return whether it holds for somebody in `new`."""
        return next(holders(new, self.needs, principals=self.principals, host=self.host), None) is not None


def question_of(query: Query, needs: tuple[Need, ...]) -> AnyAllowed | IntentHeld:
    """Return the question whether an intent holds, or, without needs, whether any request of a query is allowed."""
    if needs:
        return IntentHeld(needs=needs, principals=query.principals, host=query.host)
    return AnyAllowed(query)


def concerns(query: Query, rule: StandardAcl, settings: Settings) -> bool:
    """Return whether a rule can have a part in the decision on a request of a query."""
    who = rule.principal
    # Where uncovered names are open, any rule closes its resource; one without a colon stops Kafka's authorizer.
    if who != WILDCARD_PRINCIPAL and ":" in who and who not in query.principals and not settings.allow_everyone:
        return False
    literal = rule.pattern_type == PatternType.LITERAL
    root = root_of_pattern(known_type(rule.resource_type), rule.resource_name, literal=literal)
    return root is not None and any(within(root, query.roots))
