"""Decisions as one number each: the ordinal of the determining ACL, or a negative code if there is none."""

from enum import IntEnum

from aclog.authorizer.decision import Basis


class DecisionCode(IntEnum):
    """Decisions without a determining ACL; a code >= 0 is the ordinal of the ACL, whose permission type decides."""

    DEFAULT_DENY = -1
    DEFAULT_ALLOW = -2
    SUPER_USER = -3
    # everything below is an error: code that compares with DEFAULT_ALLOW or SUPER_USER relies on the order
    MISSING = -4
    NO_OPERATION = -5
    NO_RESOURCE_TYPE = -6
    NO_HOST = -7
    NO_PRINCIPAL = -8
    WILDCARD_PRINCIPAL = -9
    RULE_WITHOUT_COLON = -10
    NO_TIME = -11
    BEFORE_THE_LOG = -12
    UNKNOWN_KAFKA = -13


UNRESOLVED = -14
"""Never leaves this package: the scan rank alone does not tell which ACL Kafka names, or whether it throws."""

ALLOWED = frozenset({DecisionCode.DEFAULT_ALLOW, DecisionCode.SUPER_USER})
"""The negative codes that allow."""

BASES = {
    DecisionCode.DEFAULT_DENY: Basis.DEFAULT_DENY.value,
    DecisionCode.DEFAULT_ALLOW: Basis.DEFAULT_ALLOW.value,
    DecisionCode.SUPER_USER: Basis.SUPER_USER.value,
}
"""The text of the audit log in place of an ACL."""

ERRORS = {
    DecisionCode.MISSING: "principal, host, operation, resourceType or resourceName is missing",
    DecisionCode.NO_OPERATION: "not an operation of Kafka",
    DecisionCode.NO_RESOURCE_TYPE: "not a resource type of Kafka",
    DecisionCode.NO_HOST: "the host is not an IPv4 or IPv6 address",
    DecisionCode.NO_PRINCIPAL: "the principal has no colon: expected Type:name",
    DecisionCode.WILDCARD_PRINCIPAL: "User:* is not a principal: in ACLs it matches all users",
    DecisionCode.RULE_WITHOUT_COLON: "an ACL on the resource has a principal with no colon: Kafka's authorizer throws",
    DecisionCode.NO_TIME: "the access has no timestamp, as of which to decide it",
    DecisionCode.BEFORE_THE_LOG: "the log does not reach back to the time of the access",
    DecisionCode.UNKNOWN_KAFKA: "Kafka 4.3 and 4.4 decide it by different ACLs, and which of them decided is not known",
}
"""Why there is no decision."""
