"""The flags that configure the authorizer of a second state; by default it is that of the first."""

from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.flags.authorizer import AuthorizerFlags, Semantics, flag_generation
from aclog.metalog.errors import ConfigError

_PANEL = "Authorizer of the second state (by default as of the first)"
# A column of help has room for 34 characters on a common terminal, and a title for more.
_ALLOW_PANEL = "Second state: --to-allow-everyone-if-no-acl-found"
_DENY_PANEL = "Second state: --no-to-allow-everyone-if-no-acl-found"


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
    # Two flags, as a flag with its opposite would be wider than a terminal.
    to_allow_everyone: Annotated[
        bool,
        typer.Option(
            "--to-allow-everyone-if-no-acl-found",
            metavar="",
            help="Allow access to resources that no ACL matches.",
            rich_help_panel=_ALLOW_PANEL,
        ),
    ] = False
    no_to_allow_everyone: Annotated[
        bool,
        typer.Option(
            "--no-to-allow-everyone-if-no-acl-found",
            metavar="",
            help="Deny access to resources that no ACL matches.",
            rich_help_panel=_DENY_PANEL,
        ),
    ] = False
    to_semantics: Annotated[
        Semantics | None,
        typer.Option("--to-semantics", metavar="kafka|documented", help="Its semantics.", rich_help_panel=_PANEL),
    ] = None
    to_kafka_version: Annotated[
        str | None,
        typer.Option(
            "--to-kafka-version",
            metavar="V",
            help="The Kafka that decides on it, such as 4.4.0.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    to_cidr: Annotated[
        bool | None,
        typer.Option(
            "--to-cidr/--no-to-cidr",
            metavar="",
            help="The same as [cyan]--to-kafka-version 4.4[/], or 4.3.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    def given(self) -> bool:
        """Return whether any setting is given."""
        named = (self.to_super_users, self.to_semantics, self.to_kafka_version, self.to_cidr)
        return self.to_allow_everyone or self.no_to_allow_everyone or any(flag is not None for flag in named)

    def after(self, first: AuthorizerFlags) -> AuthorizerFlags:
        """Return the settings of the second state. Raises ConfigError: a flag and its opposite."""
        if self.to_allow_everyone and self.no_to_allow_everyone:
            raise ConfigError(
                "--to-allow-everyone-if-no-acl-found and --no-to-allow-everyone-if-no-acl-found: expected one of them"
            )
        flag_generation(self.to_kafka_version, self.to_cidr, prefix="--to-")
        is_named = self.to_kafka_version is not None or self.to_cidr is not None
        allow_everyone = self.to_allow_everyone or (first.allow_everyone and not self.no_to_allow_everyone)
        return AuthorizerFlags(
            super_users=first.super_users if self.to_super_users is None else self.to_super_users,
            allow_everyone=allow_everyone,
            no_allow_everyone=not allow_everyone and (self.no_to_allow_everyone or first.no_allow_everyone),
            semantics=self.to_semantics or first.semantics,
            kafka_version=self.to_kafka_version if is_named else first.kafka_version,
            cidr=self.to_cidr if is_named else first.cidr,
        )
