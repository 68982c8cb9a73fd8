"""A policy: rules, and the settings with which an authorizer decides on them."""

from functools import cached_property

from attrs import define, field

from aclog.analysis.estate import Estate
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer


@define(eq=False, slots=False)
class Policy:
    """The rules of one moment, and the settings. Immutable by convention."""

    acls: AclsImage
    settings: Settings = field(factory=Settings)

    def __repr__(self) -> str:
        return f"Policy({self.acls!r}, {self.settings!r})"

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
