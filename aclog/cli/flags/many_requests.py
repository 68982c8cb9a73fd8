"""The flags of a question about many requests: an operation or an intent, and a second state with its settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeAlias

from attrs import evolve, field

from aclog.analysis.intents import Intent, Need, needs_of
from aclog.authorizer.acl import ResourcePattern, host_address
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import rule_pattern
from aclog.cli.flags.common import (
    GROUP_HELP,
    STDIN,
    TOPIC_HELP,
    AuthorizerFlags,
    Semantics,
    check_one_stdin,
    completions,
    flag_generation,
    named,
    pattern_type_option,
    typed_text,
)
from aclog.cli.flags.question import asked_principals, question_principal, question_resource
from aclog.cli.flags.source import (
    SourceFlags,
    complete_refs,
    complete_sources,
    context_authorizer,
    context_source,
    log_place,
)
from aclog.cli.options import Argument, Option, complete_contexts
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.output_directory import Place
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.analysis.regions import Principals, Query
    from aclog.authorizer.acls_image import RuleChange
    from aclog.planning.granting import IntentResources
    from aclog.sources.contexts import Context

# The flags of a question about many requests: an operation or an intent, resources, principals and a host.


_PANEL = "Question"
_OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ALL)

AskedHost: TypeAlias = Annotated[
    str | None,
    Option(
        "--host",
        metavar="ADDRESS",
        help="Only requests from this IP address.",
        show_default="from any",
        rich_help_panel=_PANEL,
    ),
]
ShowSince: TypeAlias = Annotated[
    bool,
    Option(
        "--since",
        metavar="",
        help="Also show since when all of a row has been allowed, and by which change: of a log.",
        rich_help_panel=_PANEL,
    ),
]
AskedPrincipals: TypeAlias = Annotated[
    list[str],
    Option("--principal", metavar="TYPE:NAME", help="A principal; can be repeated.", rich_help_panel=_PANEL),
]


AskedTopics: TypeAlias = Annotated[
    list[str], Option("--topic", metavar="NAME", help=TOPIC_HELP, rich_help_panel=_PANEL)
]
AskedGroups: TypeAlias = Annotated[
    list[str], Option("--group", metavar="NAME", help=GROUP_HELP, rich_help_panel=_PANEL)
]
AskedCluster: TypeAlias = Annotated[bool, Option("--cluster", metavar="", help="The cluster.", rich_help_panel=_PANEL)]
AskedTransactionalIds: TypeAlias = Annotated[
    list[str], Option("--transactional-id", metavar="ID", help="A transactional id.", rich_help_panel=_PANEL)
]
AskedTokens: TypeAlias = Annotated[
    list[str], Option("--delegation-token", metavar="ID", help="A delegation token.", rich_help_panel=_PANEL)
]
AskedUsers: TypeAlias = Annotated[
    list[str], Option("--user-principal", metavar="PRINCIPAL", help="A user.", rich_help_panel=_PANEL)
]
AskedPatternType: TypeAlias = Annotated[PatternType | None, pattern_type_option(_PANEL)]


@frozen(kw_only=True, eq=False, repr=False)
class AskedResourceFlags:
    """Resources: names, or `pii-*` for all that begin with `pii-`."""

    topics: AskedTopics = field(factory=list)
    groups: AskedGroups = field(factory=list)
    cluster: AskedCluster = False
    transactional_ids: AskedTransactionalIds = field(factory=list)
    delegation_tokens: AskedTokens = field(factory=list)
    user_principals: AskedUsers = field(factory=list)
    resource_pattern_type: AskedPatternType = None

    def resources(self) -> tuple[ResourcePattern, ...]:
        """Return the resources that are named. Raises as named_resources."""
        return named_resources(self)


def named_resources(flags: "AskedFlags | AskedResourceFlags") -> tuple[ResourcePattern, ...]:
    """Return the resources that are named.

    Raises:
        ConfigError: an empty name, unless prefixed: then it is every name; one that is not UTF-8; or a star that
            can be neither a prefix nor in the name (aclog.authorizer.settings).

    """
    names = {
        ResourceType.TOPIC: flags.topics,
        ResourceType.GROUP: flags.groups,
        ResourceType.TRANSACTIONAL_ID: flags.transactional_ids,
        ResourceType.DELEGATION_TOKEN: flags.delegation_tokens,
        ResourceType.USER: flags.user_principals,
    }
    pattern = flags.resource_pattern_type
    patterns = [
        question_resource(kind, name, pattern) for kind, values in names.items() for name in dict.fromkeys(values)
    ]
    if flags.cluster:
        patterns.append(ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME))
    return tuple(patterns)


@frozen(kw_only=True, eq=False, repr=False)
class AskedFlags:
    """An operation or an intent, on resources: names, or `pii-*` for all that begin with `pii-`."""

    operation: Annotated[
        AclOperation | None,
        Option(
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
        Option(
            "--intent",
            metavar="INTENT",
            help="What the client does: [cyan]produce[/], [cyan]consume[/], [cyan]transact[/], [cyan]stream[/] or "
            "[cyan]admin[/].",
            rich_help_panel=_PANEL,
        ),
    ] = None
    topics: AskedTopics = field(factory=list)
    groups: AskedGroups = field(factory=list)
    cluster: AskedCluster = False
    transactional_ids: AskedTransactionalIds = field(factory=list)
    delegation_tokens: AskedTokens = field(factory=list)
    user_principals: AskedUsers = field(factory=list)
    resource_pattern_type: AskedPatternType = None

    def resources(self) -> tuple[ResourcePattern, ...]:
        """Return the resources that are named. Raises as named_resources."""
        return named_resources(self)

    def check(self, *, takes_any: bool = False) -> None:
        """Check that there is a question; `takes_any`: it may be about any operation.

        Raises:
            ConfigError: not one of an operation and an intent, or no resource.

        """
        self.check_one()
        if self.operation is None and self.intent is None and not takes_any:
            raise ConfigError("expected --operation NAME or --intent INTENT")
        if not self.resources():
            raise ConfigError(
                "no resource is given: --topic, --group, --cluster, --transactional-id, --delegation-token or "
                "--user-principal"
            )

    def is_given(self) -> bool:
        """Return whether a flag names an operation, an intent or a resource."""
        return self.operation is not None or self.intent is not None or bool(self.resources())

    def named(self) -> Iterator[tuple[str, str | None]]:
        """Yield the flags that are given, with their values; None for one without."""
        if self.operation is not None:
            yield "--operation", self.operation.name
        if self.intent is not None:
            yield "--intent", self.intent.value
        for flag, values in (
            ("--topic", self.topics),
            ("--group", self.groups),
            ("--transactional-id", self.transactional_ids),
            ("--delegation-token", self.delegation_tokens),
            ("--user-principal", self.user_principals),
        ):
            yield from ((flag, value) for value in values)
        if self.cluster:
            yield "--cluster", None
        if self.resource_pattern_type is not None:
            yield "--resource-pattern-type", self.resource_pattern_type.name.lower()

    def check_one(self) -> None:
        """Check that at most one of an operation and an intent is given. Raises ConfigError otherwise."""
        if self.operation is not None and self.intent is not None:
            raise ConfigError("--operation and --intent: expected one of them")

    def requests(self) -> tuple[tuple[int, int], ...] | None:
        """Return the resource type and the operation of all requests in question; None if they may be any."""
        if self.operation is None or not (resources := self.resources()):
            return None
        return tuple((each.resource_type, self.operation) for each in resources)

    def query(self, principals: "Principals", host: str | None) -> "Query":
        """Return the query for the operation; without one for all, and without a resource on all."""
        from aclog.analysis.regions import REQUESTED, RESOURCE_TYPES, Query

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


@frozen(kw_only=True, eq=False, repr=False)
class SubjectFlags:
    """Principals and a host."""

    principal: AskedPrincipals = field(factory=list)
    host: AskedHost = None


@frozen(kw_only=True, eq=False, repr=False)
class WhoFlags:
    """Principals, or all but some, and a host; by default every principal from every host."""

    principal: AskedPrincipals = field(factory=list)
    except_principal: Annotated[
        list[str],
        Option(
            "--except-principal",
            metavar="TYPE:NAME",
            help="Any principal except this one; can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    host: AskedHost = None

    def is_everyone(self) -> bool:
        """Return whether no flag names a principal."""
        return not self.principal and not self.except_principal

    def principals(self) -> "Principals":
        """Return the principals in question. Raises ConfigError: both flags, or a malformed principal."""
        from aclog.analysis.regions import everyone_but, only

        if self.principal and self.except_principal:
            raise ConfigError("expected either --principal or --except-principal, not both")
        if self.principal:
            return only(*asked_principals([question_principal(each) for each in self.principal]))
        return everyone_but(*asked_principals(self.except_principal, flag="--except-principal"))


# The flags that name an intent: who, what for, and on which resources.


_INTENT, _INTENT_RESOURCE = "Who, and what for", "Resource"


@frozen(kw_only=True, eq=False, repr=False)
class IntentFlags:
    """A principal, what it is for, and on which resources."""

    principal: Annotated[
        str,
        Option(
            "--principal",
            metavar="TYPE:NAME",
            help="The principal that the rules name; [cyan]'User:*'[/]: the rules for all principals.",
            rich_help_panel=_INTENT,
            show_default=False,
        ),
    ]
    intent: Annotated[
        Intent,
        Option(
            "--intent",
            metavar="INTENT",
            help="What the client does: [cyan]produce[/], [cyan]consume[/], [cyan]transact[/], [cyan]stream[/] or "
            "[cyan]admin[/].",
            rich_help_panel=_INTENT,
            show_default=False,
        ),
    ]
    hosts: Annotated[
        list[str],
        Option(
            "--host",
            metavar="ADDRESS",
            help="The host of the rules; repeatable. [dim]Default: * to grant; any, to revoke[/]",
            rich_help_panel=_INTENT,
        ),
    ] = field(factory=list)
    topics: Annotated[
        list[str],
        Option("--topic", metavar="NAME", help=TOPIC_HELP, rich_help_panel=_INTENT_RESOURCE),
    ] = field(factory=list)
    groups: Annotated[
        list[str],
        Option(
            "--group",
            metavar="NAME",
            help="A consumer group; of a Streams application its id.",
            rich_help_panel=_INTENT_RESOURCE,
        ),
    ] = field(factory=list)
    transactional_ids: Annotated[
        list[str],
        Option(
            "--transactional-id",
            metavar="ID",
            help="A transactional id; of a Streams application its id, if it processes exactly once.",
            rich_help_panel=_INTENT_RESOURCE,
        ),
    ] = field(factory=list)
    input_topics: Annotated[
        list[str],
        Option(
            "--input-topic",
            metavar="NAME",
            help="A topic that a Streams application reads.",
            rich_help_panel=_INTENT_RESOURCE,
        ),
    ] = field(factory=list)
    output_topics: Annotated[
        list[str],
        Option(
            "--output-topic",
            metavar="NAME",
            help="A topic that a Streams application writes.",
            rich_help_panel=_INTENT_RESOURCE,
        ),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        pattern_type_option(_INTENT_RESOURCE, more=" An application id is always literal."),
    ] = None
    topic_prefixes: Annotated[
        list[str],
        Option("--topic-prefix", metavar="NAME", help="All topics with this prefix.", rich_help_panel=_INTENT_RESOURCE),
    ] = field(factory=list)
    group_prefixes: Annotated[
        list[str],
        Option("--group-prefix", metavar="NAME", help="All groups with this prefix.", rich_help_panel=_INTENT_RESOURCE),
    ] = field(factory=list)
    transactional_id_prefixes: Annotated[
        list[str],
        Option(
            "--transactional-id-prefix",
            metavar="ID",
            help="All transactional ids with this prefix.",
            rich_help_panel=_INTENT_RESOURCE,
        ),
    ] = field(factory=list)

    def resources(self) -> "IntentResources":
        """Return the resources that are named.

        Raises:
            ConfigError: a name that is not UTF-8, or has a star where none can be (aclog.authorizer.settings).

        """
        from aclog.planning.granting import IntentResources

        pattern_type = self.resource_pattern_type
        application = PatternType.LITERAL if pattern_type is not None and self.intent is Intent.STREAM else pattern_type
        patterns = [
            *_patterns(ResourceType.TOPIC, self.topics, pattern_type),
            *_patterns(ResourceType.GROUP, self.groups, application),
            *_patterns(ResourceType.TRANSACTIONAL_ID, self.transactional_ids, application),
            *_prefixes(ResourceType.TOPIC, self.topic_prefixes),
            *_prefixes(ResourceType.GROUP, self.group_prefixes),
            *_prefixes(ResourceType.TRANSACTIONAL_ID, self.transactional_id_prefixes),
        ]
        return IntentResources(
            named=tuple(dict.fromkeys(patterns)),
            inputs=tuple(_patterns(ResourceType.TOPIC, self.input_topics, pattern_type)),
            outputs=tuple(_patterns(ResourceType.TOPIC, self.output_topics, pattern_type)),
        )

    def who(self) -> str:
        """Return the principal. Raises ConfigError: it has no colon, or is not UTF-8."""
        principal = typed_text(self.principal.strip())
        if ":" not in principal:
            raise ConfigError(f"--principal {principal!r}: expected TYPE:NAME, such as User:alice")
        return principal

    def rule_hosts(self) -> tuple[str, ...]:
        """Return the hosts of the rules. Raises ConfigError: one is not UTF-8."""
        return tuple(dict.fromkeys(typed_text(host.strip()) for host in self.hosts))


def _patterns(kind: ResourceType, names: list[str], pattern_type: PatternType | None) -> list[ResourcePattern]:
    trimmed = names if kind is ResourceType.TRANSACTIONAL_ID else [name.strip() for name in names]  # as kafka-acls.sh
    return [
        ResourcePattern(resource_type=kind, name=name, pattern_type=pattern_type)
        if pattern_type is not None
        else rule_pattern(kind, name)
        for name in map(typed_text, dict.fromkeys(trimmed))
    ]


def _prefixes(kind: ResourceType, prefixes: list[str]) -> list[ResourcePattern]:
    patterns = _patterns(kind, prefixes, PatternType.PREFIXED)
    for each in patterns:
        if each.name.endswith(WILDCARD) and each.name != WILDCARD:
            raise ConfigError(
                f"{kind.name} {each.name!r}: a prefix is given as it is, without a *: expected {each.name[:-1]!r}"
            )
    return patterns


# The flags that configure the authorizer of a second state; by default it is that of the first.


_SECOND_SETTINGS_PANEL = "Authorizer of the second state (by default as of the first)"
# A column of help has room for 34 characters on a common terminal, and a title for more.
_ALLOW_PANEL = "Second state: --to-allow-everyone-if-no-acl-found"
_DENY_PANEL = "Second state: --no-to-allow-everyone-if-no-acl-found"


@frozen(kw_only=True, eq=False, repr=False)
class SecondSettingsFlags:
    """What differs from the settings of the first state; None: nothing."""

    to_super_users: Annotated[
        str | None,
        Option(
            "--to-super-users",
            metavar="USERS",
            help="Its super users; [cyan]''[/] for no super users.",
            rich_help_panel=_SECOND_SETTINGS_PANEL,
        ),
    ] = None
    # Two flags, as a flag with its opposite would be wider than a terminal.
    to_allow_everyone: Annotated[
        bool,
        Option(
            "--to-allow-everyone-if-no-acl-found",
            metavar="",
            help="Allow access to resources that no ACL matches.",
            rich_help_panel=_ALLOW_PANEL,
        ),
    ] = False
    no_to_allow_everyone: Annotated[
        bool,
        Option(
            "--no-to-allow-everyone-if-no-acl-found",
            metavar="",
            help="Deny access to resources that no ACL matches.",
            rich_help_panel=_DENY_PANEL,
        ),
    ] = False
    to_semantics: Annotated[
        Semantics | None,
        Option(
            "--to-semantics", metavar="kafka|documented", help="Its semantics.", rich_help_panel=_SECOND_SETTINGS_PANEL
        ),
    ] = None
    to_kafka_version: Annotated[
        str | None,
        Option(
            "--to-kafka-version",
            metavar="V",
            help="The Kafka version that decides for it, such as 4.4.0.",
            show_default=False,
            rich_help_panel=_SECOND_SETTINGS_PANEL,
        ),
    ] = None
    to_cidr: Annotated[
        bool | None,
        Option(
            "--to-cidr/--no-to-cidr",
            metavar="",
            help="The same as [cyan]--to-kafka-version 4.4[/], or 4.3.",
            show_default=False,
            rich_help_panel=_SECOND_SETTINGS_PANEL,
        ),
    ] = None

    def is_given(self) -> bool:
        """Return whether any setting is given."""
        named = (self.to_super_users, self.to_semantics, self.to_kafka_version, self.to_cidr)
        return self.to_allow_everyone or self.no_to_allow_everyone or any(flag is not None for flag in named)

    def after(self, first: AuthorizerFlags) -> AuthorizerFlags:
        """Return the settings of the second state. Raises ConfigError: a flag and its opposite."""
        if self.to_allow_everyone and self.no_to_allow_everyone:
            raise ConfigError(
                "--to-allow-everyone-if-no-acl-found and --no-to-allow-everyone-if-no-acl-found: expected one of them"
            )
        flag_generation(self.to_kafka_version, self.to_cidr, prefix="--to-")
        is_named = self.to_kafka_version is not None or self.to_cidr is not None
        allow_everyone = self.to_allow_everyone or (first.allow_everyone and not self.no_to_allow_everyone)
        return AuthorizerFlags(
            super_users=first.super_users if self.to_super_users is None else self.to_super_users,
            allow_everyone=allow_everyone,
            no_allow_everyone=not allow_everyone and (self.no_to_allow_everyone or first.no_allow_everyone),
            semantics=self.to_semantics or first.semantics,
            kafka_version=self.to_kafka_version if is_named else first.kafka_version,
            cidr=self.to_cidr if is_named else first.cidr,
        )


# The flags of a second state, to compare with a first one: another source or moment, or a change of the first.


SECOND_STATE_PANEL = "Second state (one source, or a change of the first state)"


@frozen(kw_only=True, eq=False, repr=False)
class SecondStateFlags:
    """The rules of another source or moment, or those of the first state with some added and removed."""

    second_word: Annotated[
        str | None,
        Argument(
            metavar="SECOND",
            help="The source of the second state, as SOURCE; or one of its flags below.",
            show_default=False,
            autocompletion=complete_sources,
        ),
    ] = None
    to_log: Annotated[
        Place | None,
        Option(
            "--to-log",
            metavar="DIR",
            help="The state of this log.",
            parser=log_place,
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_snapshot: Annotated[
        Path | None,
        Option(
            "--to-snapshot", metavar="FILE", help="The state of this checkpoint.", rich_help_panel=SECOND_STATE_PANEL
        ),
    ] = None
    to_acls: Annotated[
        str | None,
        Option(
            "--to-acls",
            metavar="PATH",
            help="The ACLs of this file or directory, as --acls.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_ref: Annotated[
        str | None,
        Option(
            "--to-ref",
            metavar="GITREF:PATH",
            autocompletion=complete_refs,
            help="The same as of a commit, as --ref.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_acls_format: Annotated[
        AclsFormat | None,
        Option(
            "--to-acls-format",
            metavar="FORMAT",
            help="The format of these files. [dim]Default: that of --acls-format, or auto[/]",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_bootstrap_controller: Annotated[
        str | None,
        Option(
            "--to-bootstrap-controller",
            metavar="HOST:PORT",
            help="The state of this running quorum.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_bootstrap_server: Annotated[
        str | None,
        Option(
            "--to-bootstrap-server",
            metavar="HOST:PORT",
            help="The ACLs of this running cluster, by its admin API.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_context: Annotated[
        str | None,
        Option(
            "--to-context",
            metavar="NAME",
            autocompletion=complete_contexts,
            help="The state of this context, with its super users and other settings.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_command_config: Annotated[
        Path | None,
        Option(
            "--to-command-config",
            metavar="FILE",
            help="Client properties for the two flags above. [dim]Default: those of --command-config[/]",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    to_as_of: Annotated[
        str | None,
        Option(
            "--to-as-of",
            metavar="N|TIME",
            help="With --to-log, its state at this point; alone, that of the first state's log.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    change: Annotated[
        str | None,
        Option(
            "--change",
            metavar="FILE",
            help='Changes of ACLs, as JSON lines: [cyan]{"action":"ADD","rule":{...}}[/], or REMOVE; in order.',
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    add: Annotated[
        str | None,
        Option(
            "--add",
            metavar="FILE|ACL",
            help="ACLs to add: JSON lines, or one ACL such as \"ALLOW User:a READ on TOPIC LITERAL 't' from *\".",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None
    remove: Annotated[
        str | None,
        Option(
            "--remove",
            metavar="FILE|ACL",
            help="ACLs to remove: JSON lines, or one ACL.",
            rich_help_panel=SECOND_STATE_PANEL,
        ),
    ] = None

    def is_given(self) -> bool:
        """Return whether a flag names the second state."""
        return self._is_change() or self._has_source() or self.to_as_of is not None

    def check(self, first: SourceFlags) -> None:
        """Check the flags before anything is read.

        Raises:
            ConfigError: not one source or a change; a flag without the one that it belongs to; stdin read twice.

        """
        if self._is_change() and (self._has_source() or self.to_as_of is not None):
            raise ConfigError("--change, --add and --remove change the first state: expected them without a --to- flag")
        if self.change is not None and (self.add is not None or self.remove is not None):
            raise ConfigError("expected either --change FILE, or --add FILE and --remove FILE")
        if not self.is_given():
            raise ConfigError(
                "no second state is given: --to-log DIR, --to-snapshot FILE, --to-acls PATH, --to-ref GITREF:PATH, "
                "--to-as-of N|TIME, --to-bootstrap-controller HOST:PORT, --to-bootstrap-server HOST:PORT, "
                "--to-context NAME, --change FILE, or --add FILE and --remove FILE"
            )
        if self.to_command_config is not None and self.to_bootstrap_controller is self.to_bootstrap_server is None:
            raise ConfigError("--to-command-config: expected --to-bootstrap-controller or --to-bootstrap-server")
        if self._sources().count(None) < len(self._sources()) - 1:
            raise ConfigError(
                "exactly one second state must be given: --to-log DIR, --to-snapshot FILE, --to-acls PATH, "
                "--to-ref GITREF:PATH, --to-bootstrap-controller HOST:PORT, --to-bootstrap-server HOST:PORT or "
                "--to-context NAME"
            )
        if self.to_acls_format is not None and self.to_acls is self.to_ref is None:
            raise ConfigError("--to-acls-format: expected --to-acls PATH or --to-ref GITREF:PATH")
        check_one_stdin({**first.files(), **self.files()})

    def or_now(self, first: SourceFlags) -> Self:
        """Return these flags; if none names a second state and the first is a log as of a moment, the log's newest."""
        from aclog.snapshots.moments import LATEST

        has_past = first.log is not None or first.bootstrap_controller is not None
        if self.is_given() or not has_past or first.as_of in (None, LATEST):
            return self
        return evolve(self, to_as_of=LATEST)

    def files(self) -> dict[str, str | None]:
        """Return the flags that name a file of ACLs or of changes, which may be stdin, and what is given for them."""
        return {"--to-acls": self.to_acls, "--change": self.change, "--add": self.add, "--remove": self.remove}

    def source(self, first: SourceFlags) -> SourceFlags | None:
        """Return the source of the second state; None if it is the first one, changed or with other settings."""
        if not self._has_source():
            return None if self.to_as_of is None else evolve(first, as_of=self.to_as_of)
        if (context := self._context()) is not None:
            return evolve(context_source(context), as_of=self.to_as_of, timezone=first.timezone)
        return SourceFlags(
            log=self.to_log,
            snapshot=self.to_snapshot,
            acls=self.to_acls,
            ref=self.to_ref,
            acls_format=self._acls_format(first),
            modules=first.modules,
            exclude=first.exclude,
            accept_unread=first.accept_unread,
            var_files=first.var_files,
            variables=first.variables,
            workspace=first.workspace,
            bootstrap_controller=self.to_bootstrap_controller,
            bootstrap_server=self.to_bootstrap_server,
            command_config=self.to_command_config or first.command_config,
            as_of=self.to_as_of,
            timezone=first.timezone,
        )

    def authorizer(self, first: AuthorizerFlags) -> AuthorizerFlags:
        """Return what decides on the second state: the settings of its context, if it is one, else those of the first.

        Raises:
            ConfigError: there is no such context.

        """
        context = self._context()
        if context is None:
            return first
        return context_authorizer(context)

    def changes(self) -> "tuple[RuleChange, ...]":
        """Return the changes of --change, or those of --remove and then those of --add; none if none is given.

        Removals come first, so that an ACL may be in both files.

        Raises:
            ConfigError: a line that is no change, or no ACL; OSError: a file cannot be read.

        """
        from aclog.sources.acl_lines import read_change_of_each, read_changes

        if self.change is not None:
            return tuple(read_changes(self.change))
        removed = read_change_of_each(self.remove, "--remove", added=False) if self.remove is not None else ()
        added = read_change_of_each(self.add, "--add", added=True) if self.add is not None else ()
        return (*removed, *added)

    def file(self) -> str | None:
        """Return the file that the second state comes from, for reports about it; None if it is no file."""
        from aclog.sources.acl_lines import is_rule_line

        path = self.change or self.add or self.remove or self.to_acls or self.to_ref
        return None if path is None or path == STDIN or is_rule_line(path) else path

    def _acls_format(self, first: SourceFlags) -> AclsFormat | None:
        if self.to_acls is self.to_ref is None:
            return None
        return self.to_acls_format or first.acls_format

    def _context(self) -> "Context | None":
        if self.to_context is None:
            return None
        from aclog.sources.contexts import read_context_file

        return read_context_file().context(self.to_context)

    def _is_change(self) -> bool:
        return any(flag is not None for flag in (self.change, self.add, self.remove))

    def _has_source(self) -> bool:
        return any(flag is not None for flag in self._sources())

    def _sources(self) -> tuple[Path | str | None, ...]:
        files = (self.to_log, self.to_snapshot, self.to_acls, self.to_ref)
        return (*files, self.to_bootstrap_controller, self.to_bootstrap_server, self.to_context)
