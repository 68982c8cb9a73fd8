"""The flags of a target, and of the rules that `aclog acls` changes there."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from attrs import field

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, code_name
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType
from aclog.cli.flags.common import OPERATIONS, completions, named, typed_text
from aclog.cli.flags.question import parse_principal
from aclog.cli.flags.source import complete_sources
from aclog.cli.options import Argument, Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from aclog.planning.plan import PlaceAddress


# The flags of a running cluster that a command changes or describes.


CLUSTER_PANEL = "Target (exactly one)"

TargetController: TypeAlias = Annotated[
    str | None,
    Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The active controller of a running quorum (aclog or Kafka).",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
TargetServer: TypeAlias = Annotated[
    str | None,
    Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="The brokers, comma-separated, of a running cluster (aclog or Kafka).",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
TargetConfig: TypeAlias = Annotated[
    Path | None,
    Option(
        "--command-config",
        metavar="FILE",
        help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]


TargetWord: TypeAlias = Annotated[
    str | None,
    Argument(
        metavar="TARGET",
        help="The target: a log directory, [cyan]HOST:PORT[/] or the name of a context. aclog detects which; or use "
        "one of the flags below.",
        show_default=False,
        autocompletion=complete_sources,
    ),
]
"""Taken as the value of one of the flags by aclog.cli.flags.positional, before they are read."""


@frozen(kw_only=True, eq=False, repr=False)
class ClusterFlags:
    """A running cluster that a command describes."""

    source_word: Annotated[
        str | None,
        Argument(
            metavar="CLUSTER",
            help="The cluster: [cyan]HOST:PORT[/] or the name of a context; or use one of the flags below.",
            show_default=False,
            autocompletion=complete_sources,
        ),
    ] = None
    """As TargetWord."""
    bootstrap_server: TargetServer = None
    bootstrap_controller: TargetController = None
    command_config: TargetConfig = None


# The flags of a place that a command changes: a log, a running cluster, or a ZooKeeper.


ZOOKEEPER_HELP = (
    "The ZooKeeper ensemble of a Kafka cluster up to version 3.9: [cyan]zookeeper.connect=HOST:PORT[/], and other "
    "properties of the authorizer. Repeat the flag for each property."
)


@frozen(kw_only=True, eq=False, repr=False)
class TargetFlags:
    """What a command changes: exactly one of a log, a running cluster and a ZooKeeper."""

    log: Annotated[
        Path | None,
        Option(
            "--log",
            metavar="DIR",
            help="The log directory that is the target; no other process may write to it.",
            rich_help_panel=CLUSTER_PANEL,
        ),
    ] = None
    bootstrap_server: TargetServer = None
    bootstrap_controller: TargetController = None
    command_config: TargetConfig = None
    authorizer_properties: Annotated[
        list[str],
        Option(
            "--authorizer-properties",
            metavar="KEY=VALUE",
            help=ZOOKEEPER_HELP,
            rich_help_panel=CLUSTER_PANEL,
        ),
    ] = field(factory=list)


# The flags of a place that a plan is made for, and of what decides there.


def given_address(target: TargetFlags) -> "PlaceAddress | None":
    """Return the place that the flags name; None if they name none.

    Raises:
        ConfigError: several, an invalid address, or properties without a place that takes them.

    """
    from aclog.planning.plan import PlaceAddress, PlaceKind
    from aclog.sources.server_flags import parse_servers

    store = bool(target.authorizer_properties)
    values = {
        PlaceKind.LOG: None if target.log is None else str(target.log.absolute()),
        PlaceKind.BOOTSTRAP_SERVER: target.bootstrap_server,
        PlaceKind.BOOTSTRAP_CONTROLLER: target.bootstrap_controller,
        PlaceKind.ZOOKEEPER: "" if store else None,
    }
    named = [(kind, value) for kind, value in values.items() if value is not None]
    if not named:
        return None
    if len(named) > 1:
        raise ConfigError(f"{', '.join(f'--{kind}' for kind, _ in named)}: expected one place")
    [(kind, value)] = named
    if kind in {PlaceKind.BOOTSTRAP_SERVER, PlaceKind.BOOTSTRAP_CONTROLLER}:
        parse_servers(f"--{kind}", value)
    config = target.command_config
    if config is not None and kind not in {PlaceKind.BOOTSTRAP_SERVER, PlaceKind.BOOTSTRAP_CONTROLLER}:
        raise ConfigError("--command-config: expected --bootstrap-server or --bootstrap-controller")
    properties = {}
    if store:
        from aclog.sources.zookeeper import store_properties

        properties = store_properties(target.authorizer_properties)
        value = properties.get("zookeeper.connect", "")
    return PlaceAddress(
        kind=kind,
        value=value,
        command_config=None if config is None else str(config.absolute()),
        properties=properties,
    )


def place_address(target: TargetFlags) -> "PlaceAddress":
    """Return the one place that the flags name. Raises ConfigError: not exactly one."""
    address = given_address(target)
    if address is None:
        raise ConfigError(
            "no place is given: --log DIR, --bootstrap-server HOST:PORT, --bootstrap-controller HOST:PORT or "
            "--authorizer-properties zookeeper.connect=HOST:PORT; or a context: -c NAME"
        )
    return address


# The flags of `aclog acls`, which are those of kafka-acls.sh (org.apache.kafka.tools.AclCommandOptions).
#
# Kafka's pattern filter is a ResourcePattern here: its text form is the same.


_RULE = "Rule"


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


def entry_of(acl: StandardAcl) -> Entry:
    """Return the ACL without its resource."""
    return Entry(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type)


def resource_filter(pattern: ResourcePattern) -> AclBindingFilter:
    """Return the filter that matches every ACL of the resource."""
    return AclBindingFilter(
        resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
    )


@frozen(kw_only=True, eq=False, repr=False)
class RuleFlags:
    """Principals, hosts and operations of the ACLs to add or remove; hosts default to `*`."""

    allow_principals: Annotated[
        list[str],
        Option(
            "--allow-principal",
            metavar="TYPE:NAME",
            help="A principal to allow; [cyan]'User:*'[/] is everyone.",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    deny_principals: Annotated[
        list[str],
        Option(
            "--deny-principal",
            metavar="TYPE:NAME",
            help="A principal to deny. DENY takes precedence over ALLOW.",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    allow_hosts: Annotated[
        list[str],
        Option(
            "--allow-host",
            metavar="ADDRESS",
            help="The host from which allowed principals have access. [dim]Default: *[/]",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    deny_hosts: Annotated[
        list[str],
        Option(
            "--deny-host",
            metavar="ADDRESS",
            help="The host from which denied principals have no access. [dim]Default: *[/]",
            rich_help_panel=_RULE,
        ),
    ] = field(factory=list)
    operations: Annotated[
        list[AclOperation],
        Option(
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
        Option(
            "--producer",
            metavar="",
            help="WRITE, DESCRIBE and CREATE on the topics, WRITE and DESCRIBE on the transactional ids.",
            rich_help_panel=_RULE,
        ),
    ] = False
    consumer: Annotated[
        bool,
        Option(
            "--consumer", metavar="", help="READ and DESCRIBE on the topics, READ on the groups.", rich_help_panel=_RULE
        ),
    ] = False
    idempotent: Annotated[
        bool,
        Option(
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
