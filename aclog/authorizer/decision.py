"""A decision with its reason, for explanations and the audit line; deciding itself does without."""

from enum import Enum

from attrs import frozen

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.interface import AuthorizationResult


class Basis(Enum):
    """What a decision is based on; the values are Kafka's texts (MatchingRule and its implementations)."""

    SUPER_USER = "SuperUser"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"
    MATCHING_ACL = "MatchingAcl"


@frozen(kw_only=True)
class Decision:
    """The answer to one action, and why; `rule` goes with MATCHING_ACL."""

    result: AuthorizationResult
    basis: Basis
    rule: StandardAclWithId | None = None

    @property
    def text(self) -> str:
        """The rule as Kafka's audit line names it."""
        return self.basis.value if self.rule is None else f"{self.basis.value}(acl={self.rule.acl})"
