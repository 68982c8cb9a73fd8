"""What the cluster's rules let a viewer see: everything, or his own rights.

Kafka shows all rules to who may DESCRIBE the cluster, and so does the console, by the same authorizer. Anybody else
sees the rules that speak of him: those of his principal and those of `User:*`, allows and denies, with their hosts.
Nothing that is left out can match a request of his, so that each of his decisions has its rule in what he sees. What
is left out: rules of other principals, who they are, and where they are; other super users; topics, brokers, users and
tokens of the cluster.

`allow.everyone.if.no.acl.found` and a rule whose principal has no colon (on which Kafka throws) are the two ways in
which rules of others decide for him. What he may do is therefore decided from all rules (`State.authorizer`, of
aclog.console.pages.states), which tells him no more than asking his cluster would; rules that he sees explain it, and
are never decided from. `OwnStates`, of aclog.console.pages.own_states, makes the states of the pages for him.
"""

from attrs import evolve, frozen

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclOperation,
    ResourcePattern,
    ResourceType,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.premises import Premises
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.snapshots.image import Image

_NOT_SHOWN = "the cluster does not show it to you"
_DESCRIBE_CLUSTER, _ALTER_CLUSTER = (
    Action(
        operation=operation,
        resource_pattern=ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME),
        log_if_allowed=False,
        log_if_denied=False,
    )
    for operation in (AclOperation.DESCRIBE, AclOperation.ALTER)
)


@frozen
class All:
    """Everything."""


@frozen
class Own:
    """The rights of one principal."""

    principal: str

    @property
    def notice(self) -> str:
        """What a page says to who sees only this. It is said whether or not anything was left out."""
        return (
            f"You see the rules of {self.principal} and of {WILDCARD_PRINCIPAL}. There may be more: all are shown to "
            "who may DESCRIBE the cluster."
        )


def may_alter(principal: str, host: str, authorizer: StandardAuthorizer) -> bool:
    """Return whether a principal that asks from an address may change rules: as kafka-acls --add from there."""
    try:
        return bool(authorizer.decide(RequestContext(principal=principal, host=host), _ALTER_CLUSTER))
    except InvalidRequestError:
        return False


def visibility(principal: str, host: str, authorizer: StandardAuthorizer) -> All | Own:
    """Return what a principal that asks from an address may see: as kafka-acls --list from there.

    A principal that Kafka's authorizer would throw on sees its own rights.
    """
    try:
        found = authorizer.decide(RequestContext(principal=principal, host=host), _DESCRIBE_CLUSTER)
    except InvalidRequestError:
        return Own(principal)
    return All() if found else Own(principal)


def authorizer_of(image: Image, settings: Settings) -> StandardAuthorizer:
    """Return what decides from a state. Raises ConfigError: a super user has no colon."""
    return Policy(image.acls.with_options(documented=settings.documented, cidr=settings.cidr), settings).authorizer


def visible_image(image: Image, sight: All | Own) -> Image:
    """Return a state with what a viewer may see of it: offset, epoch and time stay as they are."""
    if isinstance(sight, All):
        return image
    acls = AclsImage.from_acls(_rules(image.acls, sight.principal))
    acls = acls.with_options(documented=image.acls.documented, cidr=image.acls.cidr)
    return Image(acls=acls, features=image.features, provenance=image.provenance)


def visible_premises(premises: Premises) -> Premises:
    """Return what is unknown of the settings without the values that nodes show: they name super users."""
    hidden = (evolve(each, problem=_NOT_SHOWN, settled_by="whoever serves this") for each in premises.unknown)
    return Premises(tuple(hidden))


def visible_settings(settings: Settings, sight: All | Own) -> Settings:
    """Return settings without the super users that a viewer may not know of."""
    if isinstance(sight, All):
        return settings
    return evolve(settings, super_users=settings.super_users & {sight.principal})


def decides_alone(image: Image, settings: Settings) -> bool:
    """Return whether what a viewer sees decides his requests as all rules do; if not, others' rules can decide, too."""
    return not settings.allow_everyone and not image.acls.index.has_colonless


def _rules(acls: AclsImage, principal: str) -> list[StandardAclWithId]:
    # Either filter reads only the rules of its principal, whatever the number of others.
    return [
        rule
        for each in dict.fromkeys((principal, WILDCARD_PRINCIPAL))
        for rule in acls.matching(AclBindingFilter(principal=each))
    ]
