"""A suggested rule, and why it is suggested."""

from enum import StrEnum

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl


@frozen
class Times:
    """How often something was done, and when first and last, in us since 1970."""

    count: int
    first: int
    last: int

    def plus(self, other: "Times") -> "Times":
        """Return the sum of both."""
        return Times(self.count + other.count, min(self.first, other.first), max(self.last, other.last))


class Why(StrEnum):
    """Why a rule has the form that it has."""

    USED = "USED"
    """Its one name was used."""
    FOLDED = "FOLDED"
    """Enough names with this prefix were used."""
    EVERY_NAME = "EVERY_NAME"
    """Nearly every name that exists was used, so that the next one will be, too."""
    EVERYBODY = "EVERYBODY"
    """Most principals that are known used it, by a rule for everybody."""
    DENY = "DENY"
    """It denies some of what the others allow."""


@frozen(kw_only=True)
class SuggestedRule:
    """A rule of the suggested set."""

    rule: StandardAcl
    why: Why
    times: Times | None = None
    """Of the accesses that it is for; None for a DENY."""
    names: tuple[str, ...] = ()
    """The names that were used, in order."""
    replaces: tuple[StandardAcl, ...] = field(default=())
    """The rules of the present set that allowed these accesses; for a DENY itself."""

    @property
    def intent(self) -> str | None:
        """What clients do with such a rule: produce, consume, transact or admin; None if it is none of these alone."""
        key = ResourceType(self.rule.resource_type), AclOperation(self.rule.operation)
        return _INTENTS.get(key) if self.why is not Why.DENY else None


_TOPIC, _GROUP, _TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
_INTENTS = {
    (_TOPIC, AclOperation.WRITE): "produce",
    (_TOPIC, AclOperation.READ): "consume",
    (_GROUP, AclOperation.READ): "consume",
    (_TRANSACTION, AclOperation.WRITE): "transact",
    **{(_TOPIC, operation): "admin" for operation in (
        AclOperation.CREATE, AclOperation.DELETE, AclOperation.ALTER, AclOperation.ALTER_CONFIGS,
        AclOperation.DESCRIBE_CONFIGS,
    )},
}  # fmt: skip
