"""Questions of each state of a log (aclog.analysis.timeline)."""

from attrs import define, field

from aclog.analysis.deciding import is_allowed
from aclog.analysis.difference import allowed, differences
from aclog.analysis.policy import Policy, Settings
from aclog.analysis.query import Query
from aclog.analysis.region import Direction, Request
from aclog.analysis.root import root_of_pattern, within
from aclog.analysis.scope import roots_of
from aclog.analysis.witness import witness
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, PatternType, StandardAcl
from aclog.authorizer.index.masks import known_type


@define
class AnyAllowed:
    """Is any request of a query allowed?"""

    query: Query
    _example: Request | None = field(default=None, init=False)
    """One that was allowed in the last state asked."""

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


def concerns(query: Query, rule: StandardAcl, settings: Settings) -> bool:
    """Return whether a rule can have a part in the decision on a request of a query."""
    who = rule.principal
    # Where uncovered names are open, any rule closes its resource; one without a colon stops Kafka's authorizer.
    if who != WILDCARD_PRINCIPAL and ":" in who and who not in query.principals and not settings.allow_everyone:
        return False
    literal = rule.pattern_type == PatternType.LITERAL
    root = root_of_pattern(known_type(rule.resource_type), rule.resource_name, literal=literal)
    return root is not None and any(within(root, roots_of(query)))
