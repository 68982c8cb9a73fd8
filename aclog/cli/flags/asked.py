"""The flags of a question about many requests: an operation or an intent, resources, principals and a host."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from attrs import field, frozen

from aclog.analysis.answers.intents import Intent, Need, needs_of
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.query import RESOURCE_TYPES, Query
from aclog.authorizer.acl import CLUSTER_NAME, AclOperation, PatternType, ResourcePattern, ResourceType
from aclog.authorizer.hosts import host_address
from aclog.authorizer.name_notation import asked_pattern
from aclog.cli.flags.values import GROUP_HELP, TOPIC_HELP, completions, named, pattern_type_option, typed_text
from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from aclog.analysis.regions.principals import Principals

_PANEL = "Question"
_OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ALL)

AskedHost: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Only requests from this IP address.",
        show_default="from any",
        rich_help_panel=_PANEL,
    ),
]
AskedPrincipals: TypeAlias = Annotated[
    list[str],
    typer.Option("--principal", metavar="TYPE:NAME", help="A principal; can be repeated.", rich_help_panel=_PANEL),
]


@frozen(kw_only=True)
class AskedFlags:
    """An operation or an intent, on resources: names, or `pii-*` for all that begin with `pii-`."""

    operation: Annotated[
        AclOperation | None,
        typer.Option(
            "--operation",
            parser=named(_OPERATIONS),
            autocompletion=completions(_OPERATIONS),
            metavar="NAME",
            help="The operation, such as READ or AlterConfigs.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    intent: Annotated[
        Intent | None,
        typer.Option(
            "--intent",
            metavar="INTENT",
            help="All that a client needs to [cyan]produce[/], [cyan]consume[/], [cyan]transact[/], [cyan]stream[/] or "
            "[cyan]admin[/].",
            rich_help_panel=_PANEL,
        ),
    ] = None
    topics: Annotated[list[str], typer.Option("--topic", metavar="NAME", help=TOPIC_HELP, rich_help_panel=_PANEL)] = (
        field(factory=list)
    )
    groups: Annotated[list[str], typer.Option("--group", metavar="NAME", help=GROUP_HELP, rich_help_panel=_PANEL)] = (
        field(factory=list)
    )
    cluster: Annotated[bool, typer.Option("--cluster", metavar="", help="The cluster.", rich_help_panel=_PANEL)] = False
    transactional_ids: Annotated[
        list[str],
        typer.Option("--transactional-id", metavar="ID", help="A transactional id.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    delegation_tokens: Annotated[
        list[str],
        typer.Option("--delegation-token", metavar="ID", help="A delegation token.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    user_principals: Annotated[
        list[str],
        typer.Option("--user-principal", metavar="PRINCIPAL", help="A user.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        pattern_type_option(_PANEL),
    ] = None

    def resources(self) -> tuple[ResourcePattern, ...]:
        """Return the resources that are named.

        Raises:
            ConfigError: an empty name, unless prefixed: then it is every name; one that is not UTF-8; or a star that
                can be neither a prefix nor in the name (aclog.authorizer.name_notation).

        """
        names = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.delegation_tokens,
            ResourceType.USER: self.user_principals,
        }
        pattern = self.resource_pattern_type
        found = [_resource(kind, name, pattern) for kind, given in names.items() for name in dict.fromkeys(given)]
        if self.cluster:
            found.append(ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME))
        return tuple(found)

    def check(self) -> None:
        """Check that there is a question. Raises ConfigError: not one of an operation and an intent, or no resource."""
        self.check_one()
        if self.operation is None and self.intent is None:
            raise ConfigError("expected --operation NAME or --intent INTENT")
        if not self.resources():
            raise ConfigError(
                "no resource is given: --topic, --group, --cluster, --transactional-id, --delegation-token or "
                "--user-principal"
            )

    def check_one(self) -> None:
        """Check that at most one of an operation and an intent is given. Raises ConfigError otherwise."""
        if self.operation is not None and self.intent is not None:
            raise ConfigError("--operation and --intent: expected one of them")

    def narrows(self) -> bool:
        """Return whether a flag says what is asked; without one it is every operation on everything."""
        return self.operation is not None or self.intent is not None or bool(self.resources())

    def requests(self) -> tuple[tuple[int, int], ...] | None:
        """Return the resource type and the operation of all requests that are asked about; None if they may be any."""
        if self.operation is None or not (resources := self.resources()):
            return None
        return tuple((each.resource_type, self.operation) for each in resources)

    def query(self, principals: "Principals", host: str | None) -> Query:
        """Return the query for the operation; without one for all, and without a resource on all."""
        everything = tuple(
            ResourcePattern(resource_type=kind, name="", pattern_type=PatternType.PREFIXED) for kind in RESOURCE_TYPES
        )
        return Query(
            resources=self.resources() or everything,
            operations=REQUESTED if self.operation is None else 1 << self.operation,
            principals=principals,
            host=None if host is None else host_address(host),
        )

    def needs(self) -> tuple[Need, ...]:
        """Return what the intent needs; none without one. Raises ConfigError: a resource that it has no use for."""
        return () if self.intent is None else needs_of(self.intent, self.resources())


@frozen(kw_only=True)
class SubjectFlags:
    """Principals and a host."""

    principal: AskedPrincipals = field(factory=list)
    host: AskedHost = None


@frozen(kw_only=True)
class WhoFlags:
    """Principals, or all but some, and a host; without any, everybody from anywhere."""

    principal: AskedPrincipals = field(factory=list)
    except_principal: Annotated[
        list[str],
        typer.Option(
            "--except-principal",
            metavar="TYPE:NAME",
            help="Anybody but this principal; can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    host: AskedHost = None

    def principals(self) -> "Principals":
        """Return the principals that are asked about. Raises ConfigError: both flags, or a malformed principal."""
        from aclog.analysis.regions.principals import everyone_but, only

        if self.principal and self.except_principal:
            raise ConfigError("expected either --principal or --except-principal, not both")
        if self.principal:
            return only(*asked_principals(self.principal))
        return everyone_but(*asked_principals(self.except_principal, flag="--except-principal"))


def asked_principals(principals: list[str], *, flag: str = "--principal") -> tuple[str, ...]:
    """Return the values of a flag. Raises ConfigError: one has no colon, is `User:*`, or is not UTF-8."""
    for principal in principals:
        if ":" not in principal:
            raise ConfigError(f"{flag} {principal!r}: expected TYPE:NAME, such as User:alice")
        if principal == "User:*":
            raise ConfigError(f"{flag} User:*: no client has that name: leave the flag out to ask about everyone")
    return tuple(typed_text(principal) for principal in principals)


def _resource(kind: ResourceType, name: str, pattern: PatternType | None) -> ResourcePattern:
    if not name and pattern is not PatternType.PREFIXED:
        raise ConfigError(f"a {kind.name} with an empty name: expected a name, or '*' for every name")
    return asked_pattern(kind, typed_text(name), pattern)
