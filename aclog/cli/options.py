"""Options that several commands share, as annotated types."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from aclog.authorizer.acl import AclOperation, PatternType
from aclog.cli.enum_flags import OPERATIONS, PATTERN_TYPES, completions, named

_SOURCE = "State source (exactly one)"
_RESOURCE = "Resource"
_RULE = "Rule"
_AUTHORIZER = "Authorizer"

LogDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="DIR",
        help="A directory of segments and checkpoints: aclog's own, or the [cyan]__cluster_metadata-0[/] of a stopped "
        "Kafka (or a copy of it).",
        rich_help_panel=_SOURCE,
    ),
]
TargetLog: TypeAlias = Annotated[
    Path, typer.Option("--log", metavar="DIR", help="The log's directory.", show_default=False)
]
_PLACE = "Place (exactly one)"
WritableLog: TypeAlias = Annotated[
    Path | None,
    typer.Option("--log", metavar="DIR", help="A log's directory, that nobody writes to.", rich_help_panel=_PLACE),
]
ChangedController: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The active controller of a running quorum, ours or Kafka's.",
        rich_help_panel=_PLACE,
    ),
]
ChangedServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="A running broker, ours or Kafka's; several with commas between them.",
        rich_help_panel=_PLACE,
    ),
]
ChangeConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties, as Kafka's tools take them: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=_PLACE,
    ),
]
ChangedStore: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--authorizer-properties",
        metavar="KEY=VALUE",
        help="The ZooKeeper of a Kafka up to 3.9: [cyan]zookeeper.connect=HOST:PORT[/], and other properties of its "
        "authorizer, each with a flag of its own.",
        rich_help_panel=_PLACE,
    ),
]
SnapshotFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--snapshot", metavar="FILE", help="A checkpoint file, as Kafka or aclog wrote it.", rich_help_panel=_SOURCE
    ),
]
AclsFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--acls",
        metavar="FILE",
        help="Rules as JSON lines, as [cyan]acls list --format jsonl[/] prints them; [cyan]-[/] is stdin, gzip is read "
        "as it is. The id may be missing.",
        rich_help_panel=_SOURCE,
    ),
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="N|TIME",
        help="With --log: the state after offset N-1, or before the first batch that is later than TIME "
        "([cyan]2026-11-20T10:00:00Z[/]).",
        rich_help_panel=_SOURCE,
    ),
]

BootstrapController: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="Follow the log of a running quorum, ours or Kafka's: its controllers, with commas between them.",
        rich_help_panel=_SOURCE,
    ),
]
BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="Ask a running broker, ours or Kafka's, by its admin API: rules without ids, SCRAM users without keys, no "
        "past. Several with commas between them.",
        rich_help_panel=_SOURCE,
    ),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties for the two above, as Kafka's tools take them: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=_SOURCE,
    ),
]

AuthorizerProperties: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--authorizer-properties",
        metavar="KEY=VALUE",
        help="The rules in the ZooKeeper of a Kafka up to 3.9: [cyan]zookeeper.connect=HOST:PORT[/], and other "
        "properties of its authorizer, each with a flag of its own.",
        rich_help_panel=_SOURCE,
    ),
]

Topics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", help="A topic; [cyan]'*'[/] is all.", rich_help_panel=_RESOURCE),
]
Groups: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", help="A consumer group.", rich_help_panel=_RESOURCE),
]
Cluster: TypeAlias = Annotated[
    bool, typer.Option("--cluster", metavar="", help="The cluster.", rich_help_panel=_RESOURCE)
]
TransactionalIds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", help="A transactional id.", rich_help_panel=_RESOURCE),
]
DelegationTokens: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--delegation-token", metavar="ID", help="A delegation token's id.", rich_help_panel=_RESOURCE),
]
UserPrincipals: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--user-principal",
        metavar="PRINCIPAL",
        help="A user as the resource, for CREATE_TOKENS and DESCRIBE_TOKENS.",
        rich_help_panel=_RESOURCE,
    ),
]
ResourcePatternType: TypeAlias = Annotated[
    PatternType | None,
    typer.Option(
        "--resource-pattern-type",
        parser=named(PATTERN_TYPES),
        autocompletion=completions(PATTERN_TYPES),
        metavar="TYPE",
        help="How names are compared: [cyan]literal[/] or [cyan]prefixed[/]; to list and remove also [cyan]any[/] "
        "(this very name, either type) and [cyan]match[/] (all that affects the resource). [dim]Default: literal[/]",
        rich_help_panel=_RESOURCE,
    ),
]

Operations: TypeAlias = Annotated[
    list[AclOperation] | None,
    typer.Option(
        "--operation",
        parser=named(OPERATIONS),
        autocompletion=completions(OPERATIONS),
        metavar="NAME",
        help="An operation, such as READ or AlterConfigs. [dim]Default: ALL[/]",
        rich_help_panel=_RULE,
    ),
]
AllowPrincipals: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-principal",
        metavar="TYPE:NAME",
        help="Who is allowed; [cyan]'User:*'[/] is everybody.",
        rich_help_panel=_RULE,
    ),
]
DenyPrincipals: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-principal",
        metavar="TYPE:NAME",
        help="Who is denied. A DENY beats every ALLOW.",
        rich_help_panel=_RULE,
    ),
]
_FIRST_NAMES = "Names that KIP-11 had first"
GrantPrincipals: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--grantprincipal", metavar="TYPE:NAME", help="--allow-principal.", rich_help_panel=_FIRST_NAMES),
]
GrantHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--granthost", metavar="ADDRESS", help="--allow-host.", rich_help_panel=_FIRST_NAMES),
]
RevokePrincipals: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--revokeprincipal", metavar="TYPE:NAME", help="--deny-principal.", rich_help_panel=_FIRST_NAMES),
]
RevokeHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--revokehost", metavar="ADDRESS", help="--deny-host.", rich_help_panel=_FIRST_NAMES),
]
Actions: TypeAlias = Annotated[
    list[AclOperation] | None,
    typer.Option(
        "--action",
        parser=named(OPERATIONS),
        autocompletion=completions(OPERATIONS),
        metavar="NAME",
        help="--operation.",
        rich_help_panel=_FIRST_NAMES,
    ),
]
AllowHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="ADDRESS",
        help="From where the allowed may come. [dim]Default: *[/]",
        rich_help_panel=_RULE,
    ),
]
DenyHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-host",
        metavar="ADDRESS",
        help="From where the denied may not come. [dim]Default: *[/]",
        rich_help_panel=_RULE,
    ),
]
Producer: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--producer",
        metavar="",
        help="WRITE, DESCRIBE and CREATE on the topics, WRITE and DESCRIBE on the transactional ids.",
        rich_help_panel=_RULE,
    ),
]
Consumer: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--consumer", metavar="", help="READ and DESCRIBE on the topics, READ on the groups.", rich_help_panel=_RULE
    ),
]
Idempotent: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--idempotent",
        metavar="",
        help="With --producer: IDEMPOTENT_WRITE on the cluster as well.",
        rich_help_panel=_RULE,
    ),
]

SuperUsers: TypeAlias = Annotated[
    str,
    typer.Option(
        "--super-users",
        metavar="USERS",
        help="Who may do everything, as the broker's [cyan]super.users[/] has it: [cyan]'User:a;User:b'[/].",
        rich_help_panel=_AUTHORIZER,
    ),
]
AllowEveryone: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-everyone-if-no-acl-found",
        metavar="",
        help="Allow where no rule is about the resource, as the broker's property of that name.",
        rich_help_panel="Authorizer: without a rule",
    ),
]


class Semantics(StrEnum):
    """Whose answers are given where Kafka 4.3.1 departs from its own documentation."""

    KAFKA = "kafka"
    DOCUMENTED = "documented"


SemanticsOption: TypeAlias = Annotated[
    Semantics,
    typer.Option(
        "--semantics",
        metavar="kafka|documented",
        help="[cyan]kafka[/] answers as Kafka 4.3.1 does; [cyan]documented[/] lets a rule on '*' also cover names that "
        "begin with '*'.",
        rich_help_panel=_AUTHORIZER,
    ),
]

ShowSecrets: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--show-secrets", metavar="", help="Print salts, keys and HMACs, which show as [cyan]***[/] otherwise."
    ),
]


class ListFormat(StrEnum):
    """How rules are printed."""

    KAFKA = "kafka"
    JSONL = "jsonl"
    TABLE = "table"


class ExportFormat(StrEnum):
    """How a state or a history is written."""

    AVRO = "avro"
    JSONL = "jsonl"


class SyncFormat(StrEnum):
    """How changes are told as they are recorded."""

    TABLE = "table"
    JSONL = "jsonl"
