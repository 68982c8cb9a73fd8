"""The flags that configure the authorizer of a decision."""

from enum import StrEnum
from typing import Annotated, Self

import typer
from attrs import evolve, field, frozen

from aclog.authorizer.generation import Generation, named_generation
from aclog.metalog.errors import ConfigError

_PANEL = "Authorizer"


def _text(value: str | None) -> str:
    """Return what decides by the value of a flag: flags are equal that decide the same."""
    return value or ""


class Semantics(StrEnum):
    """Which behavior to follow where Kafka 4.3.1 departs from its own documentation."""

    KAFKA = "kafka"
    DOCUMENTED = "documented"


@frozen(kw_only=True)
class AuthorizerFlags:
    """Broker properties that affect decisions besides the ACLs, and the semantics."""

    super_users: Annotated[
        str | None,
        typer.Option(
            "--super-users",
            metavar="USERS",
            help="Principals that are allowed everything, in the syntax of the broker's [cyan]super.users[/]: "
            "[cyan]'User:a;User:b'[/].",
            rich_help_panel=_PANEL,
        ),
    ] = field(default=None, eq=_text)
    """None if nothing gives them: none, or in a running cluster those that it has set."""
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
    ] = field(default=False, eq=False)
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
    kafka_version: Annotated[
        str | None,
        typer.Option(
            "--kafka-version",
            metavar="V",
            show_default=False,
            help="The Kafka that decides, such as 4.3.1: from 4.4 on, the host of an ACL may be a range, such as "
            "10.0.0.0/8. [dim]Default: what the source says of its brokers[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    cidr: Annotated[
        bool | None,
        typer.Option(
            "--cidr/--no-cidr",
            metavar="",
            show_default=False,
            help="The same as [cyan]--kafka-version 4.4[/], or 4.3.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def __attrs_post_init__(self) -> None:
        flag_generation(self.kafka_version, self.cidr)
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

    def given(self) -> frozenset[str]:
        """Return the properties of brokers whose values are given."""
        from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG

        given = {
            SUPER_USERS_CONFIG: self.super_users is not None,
            ALLOW_EVERYONE_CONFIG: self.allow_everyone or self.no_allow_everyone,
        }
        return frozenset(name for name, is_given in given.items() if is_given)

    @property
    def generation(self) -> Generation | None:
        """The generation of the Kafka that decides; None if no flag names it."""
        return flag_generation(self.kafka_version, self.cidr)

    def of_generation(self, generation: Generation) -> Self:
        """Return the same flags for a Kafka of this generation."""
        return evolve(self, kafka_version=None, cidr=generation.has_ranges)

    @property
    def documented(self) -> bool:
        """Whether decisions follow Kafka's documentation instead of Kafka 4.3.1."""
        return self.semantics is Semantics.DOCUMENTED


def flag_generation(kafka_version: str | None, cidr: bool | None, *, prefix: str = "--") -> Generation | None:
    """Return the generation that two flags name; None if none does.

    Raises:
        ConfigError: no version of a known Kafka, or they differ.

    """
    ranges = f"{prefix}cidr" if cidr else f"--no-{prefix.removeprefix('--')}cidr"
    return named_generation(kafka_version, cidr, version_name=f"{prefix}kafka-version", ranges_text=ranges)
