"""A decision with its reason, for explanations and the audit log; plain authorize() does without."""

from enum import Enum

from attrs import frozen

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.interface import AuthorizationResult


class Basis(Enum):
    """What a decision is based on; the values are Kafka's texts (MatchingRule)."""

    SUPER_USER = "SuperUser"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"
    MATCHING_ACL = "MatchingAcl"


@frozen(kw_only=True)
class Decision:
    """The result for one action and its reason; `rule` is set for MATCHING_ACL only."""

    result: AuthorizationResult
    basis: Basis
    rule: StandardAclWithId | None = None

    def __bool__(self) -> bool:
        """Return whether the action is allowed."""
        return bool(self.result)

    @property
    def text(self) -> str:
        """The reason as in Kafka's audit line."""
        return self.basis.value if self.rule is None else f"{self.basis.value}(acl={self.rule.acl})"


SUPER_USER = Decision(result=AuthorizationResult.ALLOWED, basis=Basis.SUPER_USER)
DEFAULT_ALLOW = Decision(result=AuthorizationResult.ALLOWED, basis=Basis.DEFAULT_ALLOW)
DEFAULT_DENY = Decision(result=AuthorizationResult.DENIED, basis=Basis.DEFAULT_DENY)
"""The decisions that no ACL determines."""
