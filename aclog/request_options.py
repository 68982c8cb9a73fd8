"""The options that make up one request, as annotated types; and the request they make."""

from typing import Annotated, TypeAlias

import typer
from attrs import frozen

from aclog.enum_names import OPERATIONS, completions, named
from authorizer.acl import CLUSTER_NAME, AclOperation, ResourceType
from metalog.errors import ConfigError

REQUEST_PANEL = "Request"

Principal: TypeAlias = Annotated[
    str | None, typer.Option("--principal", metavar="TYPE:NAME", help="Who asks.", rich_help_panel=REQUEST_PANEL)
]
Operation: TypeAlias = Annotated[
    AclOperation | None,
    typer.Option(
        "--operation",
        parser=named(OPERATIONS),
        autocompletion=completions(OPERATIONS),
        metavar="NAME",
        help="What is asked for, such as READ or AlterConfigs.",
        rich_help_panel=REQUEST_PANEL,
    ),
]
Host: TypeAlias = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="From where, in any textual form of the address.",
        rich_help_panel=REQUEST_PANEL,
    ),
]
Topic: TypeAlias = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", help="On this topic.", rich_help_panel=REQUEST_PANEL)
]
Group: TypeAlias = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="On this consumer group.", rich_help_panel=REQUEST_PANEL)
]
OnCluster: TypeAlias = Annotated[bool, typer.Option("--cluster", help="On the cluster.", rich_help_panel=REQUEST_PANEL)]
TransactionalId: TypeAlias = Annotated[
    str | None,
    typer.Option("--transactional-id", metavar="ID", help="On this transactional id.", rich_help_panel=REQUEST_PANEL),
]
DelegationToken: TypeAlias = Annotated[
    str | None,
    typer.Option("--delegation-token", metavar="ID", help="On this delegation token.", rich_help_panel=REQUEST_PANEL),
]
UserPrincipal: TypeAlias = Annotated[
    str | None,
    typer.Option("--user-principal", metavar="PRINCIPAL", help="On this user.", rich_help_panel=REQUEST_PANEL),
]


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
    """The resource flags of one request, of which exactly one must be given."""

    topic: str | None = None
    group: str | None = None
    cluster: bool = False
    transactional_id: str | None = None
    delegation_token: str | None = None
    user_principal: str | None = None

    def given(self) -> list[tuple[ResourceType, str]]:
        """The resources that were named."""
        named = {
            ResourceType.TOPIC: self.topic,
            ResourceType.GROUP: self.group,
            ResourceType.CLUSTER: CLUSTER_NAME if self.cluster else None,
            ResourceType.TRANSACTIONAL_ID: self.transactional_id,
            ResourceType.DELEGATION_TOKEN: self.delegation_token,
            ResourceType.USER: self.user_principal,
        }
        return [(kind, name) for kind, name in named.items() if name is not None]


def one_request(principal: str | None, operation: AclOperation | None, host: str, choice: ResourceChoice) -> Request:
    """The request that the flags make.

    Raises:
        ConfigError: no principal, no operation, or not exactly one resource.

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
    return Request(principal=principal, operation=operation, host=host, resource_type=resource_type, name=name)
