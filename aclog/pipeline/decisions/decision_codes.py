"""What becomes of an access, as one number: the rule that determined it, or why there is none."""

from enum import IntEnum

from aclog.authorizer.decision import Basis


class DecisionCode(IntEnum):
    """Verdicts without a rule; one that is not negative is the ordinal of the rule, which allows or denies."""

    DEFAULT_DENY = -1
    DEFAULT_ALLOW = -2
    SUPER_USER = -3
    MISSING = -4
    NO_OPERATION = -5
    NO_RESOURCE_TYPE = -6
    NO_HOST = -7
    NO_PRINCIPAL = -8
    WILDCARD_PRINCIPAL = -9
    RULE_WITHOUT_COLON = -10
    NO_TIME = -11
    BEFORE_THE_LOG = -12


UNRESOLVED = -13
"""Inside of the judge only: the order of visits does not tell which rule is named."""

ALLOWED = frozenset({DecisionCode.DEFAULT_ALLOW, DecisionCode.SUPER_USER})
"""Those without a rule that are allowed."""

BASES = {
    DecisionCode.DEFAULT_DENY: Basis.DEFAULT_DENY.value,
    DecisionCode.DEFAULT_ALLOW: Basis.DEFAULT_ALLOW.value,
    DecisionCode.SUPER_USER: Basis.SUPER_USER.value,
}
"""What the audit line says instead of a rule."""

ERRORS = {
    DecisionCode.MISSING: "principal, host, operation, resourceType or resourceName is missing",
    DecisionCode.NO_OPERATION: "the operation is none of Kafka's",
    DecisionCode.NO_RESOURCE_TYPE: "the resource type is none of Kafka's",
    DecisionCode.NO_HOST: "the host is not an IPv4 or IPv6 address",
    DecisionCode.NO_PRINCIPAL: "the principal has no colon: expected Type:name",
    DecisionCode.WILDCARD_PRINCIPAL: "nobody can ask as User:*, which stands for everybody in rules",
    DecisionCode.RULE_WITHOUT_COLON: "a rule on the resource has a principal without colon: Kafka's authorizer throws",
    DecisionCode.NO_TIME: "the access has no timestamp to be judged at",
    DecisionCode.BEFORE_THE_LOG: "the log does not reach back to the time of the access",
}
"""Why there is no decision."""
