"""The options that make up one request, as annotated types; and the request they make."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer
from attrs import frozen

from aclog.authorizer.acl import CLUSTER_NAME, AclOperation, ResourceType
from aclog.cli.enum_flags import OPERATIONS, completions, named
from aclog.cli.typed_text import typed_text
from aclog.metalog.errors import ConfigError

_REQUEST = "Request"

Principal: TypeAlias = Annotated[
    str | None, typer.Option("--principal", metavar="TYPE:NAME", help="Who asks.", rich_help_panel=_REQUEST)
]
Operation: TypeAlias = Annotated[
    AclOperation | None,
    typer.Option(
        "--operation",
        parser=named(OPERATIONS),
        autocompletion=completions(OPERATIONS),
        metavar="NAME",
        help="What is asked for, such as READ or AlterConfigs.",
        rich_help_panel=_REQUEST,
    ),
]
Host: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="From where, in any textual form of the address. [dim]Default: 127.0.0.1[/]",
        rich_help_panel=_REQUEST,
    ),
]
Topic: TypeAlias = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", help="On this topic.", rich_help_panel=_REQUEST)
]
Group: TypeAlias = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="On this consumer group.", rich_help_panel=_REQUEST)
]
OnCluster: TypeAlias = Annotated[
    bool, typer.Option("--cluster", metavar="", help="On the cluster.", rich_help_panel=_REQUEST)
]
TransactionalId: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", help="On this transactional id.", rich_help_panel=_REQUEST),
]
DelegationToken: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--delegation-token", metavar="ID", help="On this delegation token.", rich_help_panel=_REQUEST),
]
UserPrincipal: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--user-principal", metavar="PRINCIPAL", help="On this user.", rich_help_panel=_REQUEST),
]
Requests: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--requests",
        metavar="FILE",
        help="Decide every line of this file of JSON lines ([cyan]-[/] is stdin, gzip is read as it is).",
        rich_help_panel=_REQUEST,
    ),
]

_LOCALHOST = "127.0.0.1"


@frozen(kw_only=True)
class Request:
    """Who asks for what, on what, from where; codes are raw. `name` is None for any resource of the type."""

    principal: str
    operation: int
    host: str
    resource_type: int
    name: str | None


@frozen
class ResourceChoice:
    """The resource flags of one request, of which exactly one must be given, and once."""

    topics: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    cluster: bool = False
    transactional_ids: Sequence[str] | None = None
    delegation_tokens: Sequence[str] | None = None
    user_principals: Sequence[str] | None = None

    def given(self) -> list[tuple[ResourceType, str]]:
        """The resources that were named."""
        named = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.CLUSTER: [CLUSTER_NAME] if self.cluster else None,
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.delegation_tokens,
            ResourceType.USER: self.user_principals,
        }
        return [(kind, name) for kind, names in named.items() for name in names or ()]


def one_request(
    principal: str | None, operation: AclOperation | None, host: str | None, choice: ResourceChoice
) -> Request:
    """The request that the flags make.

    Raises:
        ConfigError: no principal, no operation, not exactly one resource, or a name that is not UTF-8.

    """
    if principal is None or operation is None:
        raise ConfigError("--principal and --operation must be given, or --requests FILE")
    resources = choice.given()
    if len(resources) != 1:
        raise ConfigError(
            "exactly one resource must be given: --topic, --group, --cluster, --transactional-id, --delegation-token "
            "or --user-principal"
        )
    [(resource_type, name)] = resources
    return Request(
        principal=typed_text(principal),
        operation=operation,
        host=_LOCALHOST if host is None else host,
        resource_type=resource_type,
        name=typed_text(name),
    )
