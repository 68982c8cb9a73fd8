"""Whom a test is about: a principal, or everybody but some, from one host or from any."""

from attrs import frozen

from aclog.analysis.regions.principals import Principals, everyone_but, only
from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class CaseSubject:
    """One principal, or with `User:*` all of them, but for super users and some that are named."""

    principal: str
    but: tuple[str, ...] = ()
    """With `User:*` only."""
    host: str | None = None
    """In the form of `host_address`; None for every host."""

    def principals(self, settings: Settings) -> Principals:
        """Return the principals; super users are nobody's surprise, so that "everybody" is without them."""
        if self.principal != WILDCARD_PRINCIPAL:
            return only(self.principal)
        return everyone_but(*self.but, *settings.super_users)

    @property
    def text(self) -> str:
        """Such as `User:billing` or `everybody but User:audit`."""
        if self.principal != WILDCARD_PRINCIPAL:
            return self.principal
        return f"everybody but {', '.join(self.but)}" if self.but else "everybody"

    @property
    def place(self) -> str:
        """The host as the end of a sentence; empty for every host."""
        return "" if self.host is None else f" from {self.host}"
