"""The flags that configure the authorizer of a decision."""

from enum import StrEnum
from typing import Annotated

import typer
from attrs import frozen

from aclog.metalog.errors import ConfigError

_PANEL = "Authorizer"


class Semantics(StrEnum):
    """Which behavior to follow where Kafka 4.3.1 departs from its own documentation."""

    KAFKA = "kafka"
    DOCUMENTED = "documented"


@frozen(kw_only=True)
class AuthorizerFlags:
    """Broker properties that affect decisions besides the ACLs, and the semantics."""

    super_users: Annotated[
        str,
        typer.Option(
            "--super-users",
            metavar="USERS",
            help="Principals that are allowed everything, in the syntax of the broker's [cyan]super.users[/]: "
            "[cyan]'User:a;User:b'[/].",
            rich_help_panel=_PANEL,
        ),
    ] = ""
    allow_everyone: Annotated[
        bool,
        typer.Option(
            "--allow-everyone-if-no-acl-found",
            metavar="",
            help="Allow access to resources that no ACL matches, as the broker property of that name does.",
            rich_help_panel="Authorizer (if no ACL matches)",
        ),
    ] = False
    # Two flags, as a flag with its opposite would be wider than a terminal.
    no_allow_everyone: Annotated[
        bool,
        typer.Option(
            "--no-allow-everyone-if-no-acl-found",
            metavar="",
            help="Deny it, whatever the context says. [dim]The default[/]",
            rich_help_panel="Authorizer: --no-allow-everyone-if-no-acl-found",
        ),
    ] = False
    semantics: Annotated[
        Semantics,
        typer.Option(
            "--semantics",
            metavar="kafka|documented",
            help="[cyan]kafka[/] decides as Kafka 4.3.1 does; [cyan]documented[/] lets an ACL on '*' also cover names "
            "that begin with '*'.",
            rich_help_panel=_PANEL,
        ),
    ] = Semantics.KAFKA
    cidr: Annotated[
        bool,
        typer.Option(
            "--cidr/--no-cidr",
            metavar="",
            show_default=False,
            help="Let the host of an ACL be a CIDR range, such as 10.0.0.0/8, as nodes do with "
            "[cyan]aclog.cidr.enabled[/]. Kafka 4.3.1 matches no such ACL.",
            rich_help_panel=_PANEL,
        ),
    ] = False

    def __attrs_post_init__(self) -> None:
        if self.allow_everyone and self.no_allow_everyone:
            raise ConfigError(
                "--allow-everyone-if-no-acl-found and --no-allow-everyone-if-no-acl-found: expected one of them"
            )

    def warn_of_super_users(self, flag: str = "--super-users") -> None:
        """Warn of super users that are hardly meant; `flag` named them. Raises ConfigError: one without a colon."""
        from aclog.authorizer.config import super_user_mistakes
        from aclog.terminal.notices import warn

        for mistake in super_user_mistakes(self.super_users):
            warn(f"{flag}: {mistake}")

    @property
    def documented(self) -> bool:
        """Whether decisions follow Kafka's documentation instead of Kafka 4.3.1."""
        return self.semantics is Semantics.DOCUMENTED
