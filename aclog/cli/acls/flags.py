"""The flags of `aclog acls`, which are those of kafka-acls.sh (org.apache.kafka.tools.AclCommandOptions).

Kafka's pattern filter is a ResourcePattern here: its text form is the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import asdict, evolve, field, frozen

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    code_name,
)
from aclog.cli.flags import cluster as target
from aclog.cli.flags import source
from aclog.cli.flags.groups import group_from
from aclog.cli.flags.values import OPERATIONS, PATTERN_TYPES, completions, named, typed_text
from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from aclog.sources.choice import ChosenSource

_RESOURCE = "Resource"
_RULE = "Rule"
_ZOOKEEPER_HELP = (
    "The ZooKeeper of a Kafka up to 3.9: [cyan]zookeeper.connect=HOST:PORT[/], and other properties of its authorizer; "
    "repeat the flag for each."
)

CLUSTER = ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


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
            help=_ZOOKEEPER_HELP,
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
class TargetFlags:
    """Where `acls add` and `acls remove` write: exactly one of a log, a running cluster and a ZooKeeper."""

    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="DIR", help="A log directory that no process writes to.", rich_help_panel=target.PANEL
        ),
    ] = None
    bootstrap_server: target.TargetServer = None
    bootstrap_controller: target.TargetController = None
    command_config: target.TargetConfig = None
    authorizer_properties: Annotated[
        list[str],
        typer.Option(
            "--authorizer-properties",
            metavar="KEY=VALUE",
            help=_ZOOKEEPER_HELP,
            rich_help_panel=target.PANEL,
        ),
    ] = field(factory=list)


@frozen(kw_only=True)
class ResourceFlags:
    """The resource patterns to list, add to or remove from."""

    topics: Annotated[
        list[str],
        typer.Option("--topic", metavar="NAME", help="A topic; [cyan]'*'[/] is all.", rich_help_panel=_RESOURCE),
    ] = field(factory=list)
    groups: Annotated[
        list[str], typer.Option("--group", metavar="NAME", help="A consumer group.", rich_help_panel=_RESOURCE)
    ] = field(factory=list)
    cluster: Annotated[bool, typer.Option("--cluster", metavar="", help="The cluster.", rich_help_panel=_RESOURCE)] = (
        False
    )
    transactional_ids: Annotated[
        list[str],
        typer.Option("--transactional-id", metavar="ID", help="A transactional id.", rich_help_panel=_RESOURCE),
    ] = field(factory=list)
    delegation_tokens: Annotated[
        list[str],
        typer.Option("--delegation-token", metavar="ID", help="A delegation token's id.", rich_help_panel=_RESOURCE),
    ] = field(factory=list)
    user_principals: Annotated[
        list[str],
        typer.Option(
            "--user-principal",
            metavar="PRINCIPAL",
            help="A user as the resource, for CREATE_TOKENS and DESCRIBE_TOKENS.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        typer.Option(
            "--resource-pattern-type",
            parser=named(PATTERN_TYPES),
            autocompletion=completions(PATTERN_TYPES),
            metavar="TYPE",
            help="How names are compared: [cyan]literal[/] or [cyan]prefixed[/]; to list and remove also [cyan]any[/] "
            "(exactly this name, either type) and [cyan]match[/] (every ACL that affects the resource). "
            "[dim]Default: literal[/]",
            rich_help_panel=_RESOURCE,
        ),
    ] = None

    @property
    def pattern_type(self) -> PatternType:
        """The pattern type of all named resources."""
        return self.resource_pattern_type or PatternType.LITERAL

    def patterns(self) -> list[ResourcePattern]:
        """Return the named resources; all names but transactional ids are trimmed, as in Kafka.

        Raises:
            ConfigError: a name that is not UTF-8.

        """
        names = [
            *((ResourceType.TOPIC, name.strip()) for name in self.topics),
            *((ResourceType.GROUP, name.strip()) for name in self.groups),
            *((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids),
            *((ResourceType.DELEGATION_TOKEN, name.strip()) for name in self.delegation_tokens),
            *((ResourceType.USER, name.strip()) for name in self.user_principals),
        ]
        patterns = [
            ResourcePattern(resource_type=kind, name=typed_text(name), pattern_type=self.pattern_type)
            for kind, name in names
        ]
        # kafka-acls.sh ignores --cluster with any other pattern type.
        if self.cluster and self.pattern_type is PatternType.LITERAL:
            patterns.append(CLUSTER)
        return list(dict.fromkeys(patterns))


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
