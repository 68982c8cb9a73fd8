"""The flags of one request, and the request they make."""

from typing import Annotated

import typer
from attrs import field, frozen

from aclog.authorizer.acl import CLUSTER_NAME, AclOperation, PatternType, ResourceType
from aclog.authorizer.name_notation import asked_pattern
from aclog.cli.flags.values import (
    GROUP_HELP,
    OPERATIONS,
    TOPIC_HELP,
    completions,
    named,
    pattern_type_option,
    typed_text,
)
from aclog.metalog.errors import ConfigError

PANEL = "Request"
_LOCALHOST = "127.0.0.1"


@frozen(kw_only=True)
class Request:
    """A request to authorize. Operation and type are codes; `name` is None for any resource of the type.

    If the pattern type is PREFIXED, it is for all names that begin so.
    """

    principal: str
    operation: int
    host: str
    resource_type: int
    name: str | None
    pattern_type: int = PatternType.LITERAL
    host_given: bool = True
    """Whether `host` was asked for, or is the default."""


@frozen(kw_only=True)
class RequestFlags:
    """The principal, operation, host and resource of one request."""

    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="The principal.", rich_help_panel=PANEL),
    ] = None
    operation: Annotated[
        AclOperation | None,
        typer.Option(
            "--operation",
            parser=named(OPERATIONS),
            autocompletion=completions(OPERATIONS),
            metavar="NAME",
            help="The operation, such as READ or AlterConfigs.",
            rich_help_panel=PANEL,
        ),
    ] = None
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The client's IP address, in any textual form. [dim]Default: 127.0.0.1[/]",
            rich_help_panel=PANEL,
        ),
    ] = None
    # The resource flags are lists so that a flag given twice is an error; typer would keep the last one silently.
    topics: Annotated[list[str], typer.Option("--topic", metavar="NAME", help=TOPIC_HELP, rich_help_panel=PANEL)] = (
        field(factory=list)
    )
    groups: Annotated[list[str], typer.Option("--group", metavar="NAME", help=GROUP_HELP, rich_help_panel=PANEL)] = (
        field(factory=list)
    )
    cluster: Annotated[bool, typer.Option("--cluster", metavar="", help="On the cluster.", rich_help_panel=PANEL)] = (
        False
    )
    transactional_ids: Annotated[
        list[str],
        typer.Option("--transactional-id", metavar="ID", help="On this transactional id.", rich_help_panel=PANEL),
    ] = field(factory=list)
    delegation_tokens: Annotated[
        list[str],
        typer.Option("--delegation-token", metavar="ID", help="On this delegation token.", rich_help_panel=PANEL),
    ] = field(factory=list)
    user_principals: Annotated[
        list[str],
        typer.Option("--user-principal", metavar="PRINCIPAL", help="On this user.", rich_help_panel=PANEL),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        pattern_type_option(PANEL),
    ] = None

    def given(self) -> bool:
        """Return whether any of the flags is given."""
        named = (self.principal, self.operation, self.host, self.resource_pattern_type)
        return any(flag is not None for flag in named) or bool(self._resources())

    def request(self) -> Request:
        """Return the request that the flags make.

        Raises:
            ConfigError: no principal, no operation, not exactly one resource, or a name that is not UTF-8 or has a star
                where none can be (aclog.authorizer.name_notation).

        """
        if self.principal is None or self.operation is None:
            raise ConfigError("--principal and --operation must be given, or --requests FILE")
        resources = self._resources()
        if len(resources) != 1:
            raise ConfigError(
                "exactly one resource must be given: --topic, --group, --cluster, --transactional-id, "
                "--delegation-token or --user-principal"
            )
        [(resource_type, name)] = resources
        resource = asked_pattern(resource_type, typed_text(name), self.resource_pattern_type)
        return Request(
            principal=typed_text(self.principal),
            operation=self.operation,
            host=_LOCALHOST if self.host is None else self.host,
            resource_type=resource.resource_type,
            name=resource.name,
            pattern_type=resource.pattern_type,
            host_given=self.host is not None,
        )

    def _resources(self) -> list[tuple[ResourceType, str]]:
        names = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.CLUSTER: [CLUSTER_NAME] if self.cluster else [],
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.delegation_tokens,
            ResourceType.USER: self.user_principals,
        }
        return [(kind, name) for kind, given in names.items() for name in given]
