"""The flags that configure the authorizer of a second state; by default it is that of the first."""

from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.flags.authorizer import AuthorizerFlags, Semantics

_PANEL = "Authorizer of the second state (by default as of the first)"


@frozen(kw_only=True)
class SecondSettingsFlags:
    """What differs from the settings of the first state; None: nothing."""

    to_super_users: Annotated[
        str | None,
        typer.Option(
            "--to-super-users",
            metavar="USERS",
            help="Its super users; [cyan]''[/] is none.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    to_allow_everyone: Annotated[
        bool | None,
        typer.Option(
            "--to-allow-everyone-if-no-acl-found/--no-to-allow-everyone-if-no-acl-found",
            metavar="",
            help="Whether it allows access to resources that no ACL matches.",
            show_default=False,
            rich_help_panel="Authorizer of the second state (if no ACL matches)",
        ),
    ] = None
    to_semantics: Annotated[
        Semantics | None,
        typer.Option("--to-semantics", metavar="kafka|documented", help="Its semantics.", rich_help_panel=_PANEL),
    ] = None
    to_cidr: Annotated[
        bool | None,
        typer.Option(
            "--to-cidr/--no-to-cidr",
            metavar="",
            help="Whether the host of an ACL may be a CIDR range.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    def given(self) -> bool:
        """Return whether any setting is given."""
        named = (self.to_super_users, self.to_allow_everyone, self.to_semantics, self.to_cidr)
        return any(flag is not None for flag in named)

    def after(self, first: AuthorizerFlags) -> AuthorizerFlags:
        """Return the settings of the second state."""
        return AuthorizerFlags(
            super_users=first.super_users if self.to_super_users is None else self.to_super_users,
            allow_everyone=first.allow_everyone if self.to_allow_everyone is None else self.to_allow_everyone,
            semantics=self.to_semantics or first.semantics,
            cidr=first.cidr if self.to_cidr is None else self.to_cidr,
        )
