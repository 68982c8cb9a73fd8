"""What drafts are compared with: a state, with what makes comparing cheap."""

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property

from attrs import define, field

from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.changed_policy import with_ids
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclBindingFilter, StandardAcl, resource_of
from aclog.authorizer.rule_content import contents_of
from aclog.planning.granting.near_rules import near_rules


@define(eq=False, slots=False)
class Ground:
    """A policy, with ids for its rules, so that one with a few changes is soon made. Immutable by convention."""

    given: Policy

    @cached_property
    def policy(self) -> Policy:
        """The same policy; its rules have ids."""
        return with_ids(self.given)

    @cached_property
    def contents(self) -> frozenset[bytes]:
        """Its rules (aclog.authorizer.rule_content)."""
        return frozenset(contents_of(self.policy.acls))

    def near(self, changed: Sequence[StandardAcl]) -> tuple[StandardAcl, ...]:
        """Return the rules that have a name in common with changed ones, and all those of their principals."""
        return tuple(dict.fromkeys((*near_rules(self.contents, map(resource_of, changed)), *self._of(changed))))

    def _of(self, changed: Sequence[StandardAcl]) -> Iterable[StandardAcl]:
        for principal in dict.fromkeys((*(acl.principal for acl in changed), WILDCARD_PRINCIPAL)):
            for rule in self.policy.acls.matching(AclBindingFilter(principal=principal)):
                yield rule.acl


@define(eq=False)
class Grounds:
    """The newest ground, which most drafts share. Safe for any number of threads."""

    _newest: Ground | None = field(default=None, init=False)
    _making: threading.Lock = field(factory=threading.Lock, init=False)

    def of(self, policy: Policy) -> Ground:
        """Return the ground of a policy."""
        with self._making:
            known = self._newest
            if known is None or known.given is not policy:
                known = self._newest = Ground(policy)
            return known
