"""The flags of `aclog acls`, which are those of kafka-acls.sh (org.apache.kafka.tools.AclCommandOptions).

Kafka's pattern filter is a ResourcePattern here: its text form is the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import asdict, evolve, field, frozen

from aclog.authorizer.acl import (
    WILDCARD,
    AclOperation,
    AclPermissionType,
    code_name,
)
from aclog.cli.flags import source
from aclog.cli.flags.groups import group_from
from aclog.cli.flags.target import ZOOKEEPER_HELP
from aclog.cli.flags.values import OPERATIONS, completions, named, typed_text
from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from aclog.sources.choice import ChosenSource

_RULE = "Rule"


@frozen(kw_only=True)
class AclSourceFlags:
    """The state source of `acls list`: SourceFlags, and the ZooKeeper of an older Kafka."""

    log: source.LogDir = None
    snapshot: source.SnapshotFile = None
    acls: source.AclsPath = None
    ref: source.GitRef = None
    acls_format: source.AclsFormatFlag = None
    modules: source.Modules = field(factory=list)
    topics_file: source.TopicsFile = None
    bootstrap_controller: source.BootstrapController = None
    bootstrap_server: source.BootstrapServer = None
    command_config: source.CommandConfig = None
    authorizer_properties: Annotated[
        list[str],
        typer.Option(
            "--authorizer-properties",
            metavar="KEY=VALUE",
            help=ZOOKEEPER_HELP,
            rich_help_panel=source.PANEL,
        ),
    ] = field(factory=list)
    as_of: source.AsOf = None
    timezone: source.Timezone = None

    def choose(self) -> "ChosenSource":
        """Return the source that is given. Raises as SourceFlags.choose."""
        from aclog.sources.choice import choose_source

        named = group_from(source.SourceFlags, asdict(self, recurse=False)).selection()
        return choose_source(evolve(named, authorizer_properties=self.authorizer_properties))


@frozen(kw_only=True)
class Entry:
    """An ACL without its resource (AccessControlEntry)."""

    principal: str
    host: str
    operation: int
    permission_type: int

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={code_name(AclOperation, self.operation)}, "
            f"permissionType={code_name(AclPermissionType, self.permission_type)})"
        )


@frozen(kw_only=True)
class RuleFlags:
    """Principals, hosts and operations of the ACLs to add or remove; hosts default to `*`."""

    allow_principals: Annotated[
        list[str],
        typer.Option(
            "--allow-principal",
            metavar="TYPE:NAME",
            help="A principal to allow; [cyan]'User:*'[/] is everyone.",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    deny_principals: Annotated[
        list[str],
        typer.Option(
            "--deny-principal",
            metavar="TYPE:NAME",
            help="A principal to deny. DENY takes precedence over ALLOW.",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    allow_hosts: Annotated[
        list[str],
        typer.Option(
            "--allow-host",
            metavar="ADDRESS",
            help="The host from which allowed principals have access. [dim]Default: *[/]",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    deny_hosts: Annotated[
        list[str],
        typer.Option(
            "--deny-host",
            metavar="ADDRESS",
            help="The host from which denied principals have no access. [dim]Default: *[/]",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    operations: Annotated[
        list[AclOperation],
        typer.Option(
            "--operation",
            parser=named(OPERATIONS),
            autocompletion=completions(OPERATIONS),
            metavar="NAME",
            help="An operation, such as READ or AlterConfigs. [dim]Default: ALL[/]",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    producer: Annotated[
        bool,
        typer.Option(
            "--producer",
            metavar="",
            help="WRITE, DESCRIBE and CREATE on the topics, WRITE and DESCRIBE on the transactional ids.",
            rich_help_panel=_RULE,
        ),
    ] = False
    consumer: Annotated[
        bool,
        typer.Option(
            "--consumer", metavar="", help="READ and DESCRIBE on the topics, READ on the groups.", rich_help_panel=_RULE
        ),
    ] = False
    idempotent: Annotated[
        bool,
        typer.Option(
            "--idempotent",
            metavar="",
            help="With --producer: IDEMPOTENT_WRITE on the cluster as well.",
            rich_help_panel=_RULE,
        ),
    ] = False

    def entries(self, operations: Iterable[AclOperation]) -> list[Entry]:
        """Return an entry for each principal, operation and host: the allowed ones, then the denied ones."""
        operations = tuple(operations)
        return [
            *_entries(self.allow_principals, operations, self.allow_hosts, AclPermissionType.ALLOW),
            *_entries(self.deny_principals, operations, self.deny_hosts, AclPermissionType.DENY),
        ]


def _entries(
    principals: Sequence[str], operations: Sequence[AclOperation], hosts: Sequence[str], permission: AclPermissionType
) -> Iterator[Entry]:
    for principal in dict.fromkeys(map(parse_principal, principals)):
        for operation in dict.fromkeys(operations):
            for host in dict.fromkeys(typed_text(host.strip()) for host in hosts or [WILDCARD]):
                yield Entry(principal=principal, host=host, operation=operation, permission_type=permission)


def parse_principal(text: str) -> str:
    """Return a principal as `Type:name`, trimmed (SecurityUtils.parseKafkaPrincipal).

    Raises:
        ConfigError: no colon, or not UTF-8.

    """
    principal = typed_text(text.strip())
    if ":" not in principal:
        raise ConfigError(f"expected a string in format principalType:principalName but got {principal}")
    return principal
