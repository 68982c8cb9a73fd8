"""A policy: rules, and the settings with which an authorizer decides on them."""

from functools import cached_property

from attrs import define, frozen

from aclog.analysis.estate import Estate
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer


@frozen(kw_only=True)
class Settings:
    """What decides besides the rules (the broker's properties, and aclog's semantics)."""

    super_users: frozenset[str] = frozenset()
    """Principals such as `User:admin` (super.users)."""
    allow_everyone: bool = False
    """allow.everyone.if.no.acl.found."""
    documented: bool = False
    """Whether LITERAL `*` also covers longer names that begin with `*`; in Kafka 4.3.1 it does not."""
    cidr: bool = False
    """Whether the host of a rule may be a CIDR range (KIP-1276)."""


@define(eq=False, slots=False)
class Policy:
    """The rules of one moment, and the settings. Immutable by convention."""

    acls: AclsImage
    settings: Settings = Settings()

    @cached_property
    def estate(self) -> Estate:
        """The rules, as the engine reads them; what it has read is kept for the next question."""
        return Estate(self.acls.index)

    @cached_property
    def authorizer(self) -> StandardAuthorizer:
        """The authorizer that decides so, ready."""
        return build_authorizer(
            self.acls,
            super_users=";".join(sorted(self.settings.super_users)),
            allow_everyone=self.settings.allow_everyone,
            documented=self.settings.documented,
            cidr=self.settings.cidr,
            cache=False,
        )
