"""The flags of KIP-11's first version, other names of those of kafka-acls.sh; each takes a list with commas."""

from typing import Annotated

import typer
from attrs import evolve, field, frozen

from aclog.authorizer.acl import AclOperation, parse_name
from aclog.cli.acls.flags import RuleFlags
from aclog.cli.flags.values import OPERATIONS, completions
from aclog.metalog.errors import ConfigError

_PANEL = "Aliases from KIP-11, which take lists: A,B"


@frozen(kw_only=True)
class Kip11Flags:
    """What the five flags of KIP-11 were given, lists not yet split."""

    grant_principals: Annotated[
        list[str],
        typer.Option("--grantprincipal", metavar="TYPE:NAME,...", help="--allow-principal.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    grant_hosts: Annotated[
        list[str], typer.Option("--granthost", metavar="ADDRESS,...", help="--allow-host.", rich_help_panel=_PANEL)
    ] = field(factory=list)
    revoke_principals: Annotated[
        list[str],
        typer.Option("--revokeprincipal", metavar="TYPE:NAME,...", help="--deny-principal.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    revoke_hosts: Annotated[
        list[str], typer.Option("--revokehost", metavar="ADDRESS,...", help="--deny-host.", rich_help_panel=_PANEL)
    ] = field(factory=list)
    actions: Annotated[
        list[str],
        typer.Option(
            "--action",
            autocompletion=completions(OPERATIONS),
            metavar="NAME,...",
            help="--operation.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)

    def added_to(self, rules: RuleFlags) -> RuleFlags:
        """Return the flags of kafka-acls.sh with these values as well.

        Raises:
            ConfigError: an empty entry of a list, an operation that Kafka does not have, or an entry that is no
                principal, such as half of a name with a comma.

        """
        allowed = _principals("--grantprincipal", self.grant_principals, "--allow-principal")
        denied = _principals("--revokeprincipal", self.revoke_principals, "--deny-principal")
        return evolve(
            rules,
            allow_principals=[*rules.allow_principals, *allowed],
            deny_principals=[*rules.deny_principals, *denied],
            allow_hosts=[*rules.allow_hosts, *_split("--granthost", self.grant_hosts)],
            deny_hosts=[*rules.deny_hosts, *_split("--revokehost", self.revoke_hosts)],
            operations=[*rules.operations, *_operations(self.actions)],
        )


def _split(flag: str, lists: list[str]) -> list[str]:
    entries = [entry.strip() for text in lists for entry in text.split(",")]
    if not all(entries):
        raise ConfigError(f"{flag} {','.join(lists)!r}: an empty entry: expected a list such as A,B")
    return entries


def _principals(flag: str, lists: list[str], released: str) -> list[str]:
    entries = _split(flag, lists)
    for entry in entries:
        kind, colon, _ = entry.partition(":")
        # A certificate's name has commas: "User:CN=bob,OU=urn:x" must not become two rules that match nobody.
        if not colon or "=" in kind:
            raise ConfigError(
                f"{flag} {','.join(lists)!r}: {entry!r} is no principal: expected TYPE:NAME[,TYPE:NAME]*; a name "
                f"with a comma needs {released}"
            )
    return entries


def _operations(lists: list[str]) -> list[AclOperation]:
    entries = _split("--action", lists)
    try:
        return [parse_name(OPERATIONS, entry) for entry in entries]
    except ConfigError as error:
        raise ConfigError(f"--action {','.join(lists)!r}: {error}") from None
