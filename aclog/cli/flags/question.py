"""The flags of one request, the resources that it names, and how the answer is printed."""

from typing import Annotated, TypeAlias

from attrs import field

from aclog.analysis.intents import Intent, needs_of, requests_of
from aclog.authorizer.acl import ResourcePattern, shell_word
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    ResourceType,
    is_legal_topic,
)
from aclog.authorizer.settings import asked_pattern
from aclog.cli.flags.common import (
    GROUP_HELP,
    OPERATIONS,
    PATTERN_TYPES,
    TOPIC_HELP,
    Columns,
    NoPager,
    Output,
    OutputFlags,
    completions,
    format_option,
    named,
    pattern_type_option,
    typed_text,
)
from aclog.cli.options import Option
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import frozen
from aclog.terminal.columns import ROW_FORMATS, OutputFormat

# The flags that name resource patterns: those of kafka-acls.sh (org.apache.kafka.tools.AclCommandOptions).


_RESOURCE = "Resource"

CLUSTER = ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


@frozen(kw_only=True, eq=False, repr=False)
class ResourceFlags:
    """The resource patterns to list, add to or remove from."""

    topics: Annotated[
        list[str],
        Option(
            "--topic",
            metavar="NAME",
            help="A topic; [cyan]'*'[/] means all topics, and no other * is special.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)
    groups: Annotated[
        list[str], Option("--group", metavar="NAME", help="A consumer group.", rich_help_panel=_RESOURCE)
    ] = field(factory=list)
    cluster: Annotated[bool, Option("--cluster", metavar="", help="The cluster.", rich_help_panel=_RESOURCE)] = False
    transactional_ids: Annotated[
        list[str],
        Option("--transactional-id", metavar="ID", help="A transactional id.", rich_help_panel=_RESOURCE),
    ] = field(factory=list)
    delegation_tokens: Annotated[
        list[str],
        Option("--delegation-token", metavar="ID", help="A delegation token's id.", rich_help_panel=_RESOURCE),
    ] = field(factory=list)
    user_principals: Annotated[
        list[str],
        Option(
            "--user-principal",
            metavar="PRINCIPAL",
            help="A user as the resource, for CREATE_TOKENS and DESCRIBE_TOKENS.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        Option(
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

    def warn_of_topics(self) -> None:
        """Warn of each topic that cannot exist: `pii-*` is a name here, as in kafka-acls.sh, and no prefix.

        Raises:
            ConfigError: a name that is not UTF-8.

        """
        from aclog.terminal.output import warn

        is_prefix = self.pattern_type is PatternType.PREFIXED
        for name in dict.fromkeys(typed_text(name).strip() for name in self.topics):
            if name in ("", WILDCARD) or is_legal_topic(name, is_prefix=is_prefix):
                continue
            prefix = name.removesuffix(WILDCARD)
            form = f"--topic {shell_word(prefix)}" if prefix != name and shell_word(prefix) else "--topic PREFIX"
            warn(
                f"--topic {name!r}: no topic can have such a name, which is compared as it is, as by kafka-acls.sh: "
                f"for all topics that begin so: {form} --resource-pattern-type prefixed"
            )

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


# The flags of one request, and the request they make.


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
    """Whether `host` was given, or is the default."""


@frozen(kw_only=True, eq=False, repr=False)
class RequestFlags:
    """The principal, operation, host and resource of one request."""

    principal: Annotated[
        str | None,
        Option("--principal", metavar="TYPE:NAME", help="The principal.", rich_help_panel=PANEL),
    ] = None
    operation: Annotated[
        AclOperation | None,
        Option(
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
        Option(
            "--host",
            metavar="ADDRESS",
            help="The client's IP address, in any textual form. [dim]Default: 127.0.0.1[/]",
            rich_help_panel=PANEL,
        ),
    ] = None
    # The resource flags are lists so that a flag given twice is an error; one option would keep the last one silently.
    topics: Annotated[list[str], Option("--topic", metavar="NAME", help=TOPIC_HELP, rich_help_panel=PANEL)] = field(
        factory=list
    )
    groups: Annotated[list[str], Option("--group", metavar="NAME", help=GROUP_HELP, rich_help_panel=PANEL)] = field(
        factory=list
    )
    cluster: Annotated[bool, Option("--cluster", metavar="", help="On the cluster.", rich_help_panel=PANEL)] = False
    transactional_ids: Annotated[
        list[str],
        Option("--transactional-id", metavar="ID", help="On this transactional id.", rich_help_panel=PANEL),
    ] = field(factory=list)
    delegation_tokens: Annotated[
        list[str],
        Option("--delegation-token", metavar="ID", help="On this delegation token.", rich_help_panel=PANEL),
    ] = field(factory=list)
    user_principals: Annotated[
        list[str],
        Option("--user-principal", metavar="PRINCIPAL", help="On this user.", rich_help_panel=PANEL),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        pattern_type_option(PANEL),
    ] = None

    def is_given(self) -> bool:
        """Return whether any of the flags is given."""
        named = (self.principal, self.operation, self.host, self.resource_pattern_type)
        return any(flag is not None for flag in named) or bool(self._resources())

    def request(self, *, instead: str = "") -> Request:
        """Return the request that the flags make; `instead`: the flag that a command takes in their place.

        Raises:
            ConfigError: no principal, no operation, not exactly one resource, or a name that is not UTF-8 or has a star
                where none can be (aclog.authorizer.settings).

        """
        if self.principal is None or self.operation is None:
            raise ConfigError(f"--principal and --operation must be given{f', or {instead}' if instead else ''}")
        resources = self._patterns()
        if len(resources) != 1:
            raise ConfigError(
                "exactly one resource must be given: --topic, --group, --cluster, --transactional-id, "
                "--delegation-token or --user-principal"
            )
        return self._request(question_principal(self.principal), self.operation, resources[0])

    def requests(self, intent: Intent) -> tuple[Request, ...]:
        """Return the requests of a client with an intent, on the named resources: instead of one operation.

        Raises:
            ConfigError: no principal, an operation, a type of resource that the intent needs and that is not named or
                has no use for, or a name as in `request`.

        """
        if self.principal is None or self.operation is not None:
            raise ConfigError("with --intent, expected --principal, and no --operation")
        resources = self._patterns()
        needs = needs_of(intent, resources)
        for need in needs:
            if not need.every and not any(each in resources for each in need.patterns):
                flag = need.resource_type.name.lower().replace("_", "-")
                raise ConfigError(f"--intent {intent}: expected --{flag} as well: a client with this intent needs one")
        requests = dict.fromkeys(requests_of(needs, resources))
        principal = question_principal(self.principal)
        return tuple(self._request(principal, *each) for each in requests)

    def _request(self, principal: str, operation: AclOperation, resource: ResourcePattern) -> Request:
        return Request(
            principal=principal,
            operation=operation,
            host=_LOCALHOST if self.host is None else self.host,
            resource_type=resource.resource_type,
            name=resource.name,
            pattern_type=resource.pattern_type,
            host_given=self.host is not None,
        )

    def _patterns(self) -> list[ResourcePattern]:
        return [
            asked_pattern(kind, typed_text(name), self.resource_pattern_type)
            for kind, name in dict.fromkeys(self._resources())
        ]

    def _resources(self) -> list[tuple[ResourceType, str]]:
        names = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.CLUSTER: [CLUSTER_NAME] if self.cluster else [],
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.delegation_tokens,
            ResourceType.USER: self.user_principals,
        }
        return [(kind, name) for kind, values in names.items() for name in values]


# The principals of a question.


def parse_principal(text: str) -> str:
    """Return a principal as `Type:name`, trimmed (SecurityUtils.parseKafkaPrincipal).

    Raises:
        ConfigError: no colon, or not UTF-8.

    """
    principal = typed_text(text.strip())
    if ":" not in principal:
        raise ConfigError(f"expected a string in format principalType:principalName but got {principal}")
    return principal


def question_principal(text: str) -> str:
    """Return the value of `--principal` of a read-only question; a name without a type is a User, with a note.

    Commands that write, or whose result is a proof, take `Type:name` only: there a typo must not pass.

    Raises:
        ConfigError: not UTF-8.

    """
    name = typed_text(text)
    if ":" in name or not name.strip() or name.startswith("-"):  # a flag whose value was left out, probably
        return name
    from aclog.terminal.output import note

    principal = f"User:{name.strip()}"
    note(printable(f"--principal {text}: taken as {principal}"))
    return principal


def asked_principals(principals: list[str], *, flag: str = "--principal") -> tuple[str, ...]:
    """Return the values of a flag. Raises ConfigError: one has no colon, is `User:*`, or is not UTF-8."""
    for principal in principals:
        if ":" not in principal:
            raise ConfigError(f"{flag} {principal!r}: expected TYPE:NAME, such as User:alice")
        if principal == "User:*":
            raise ConfigError(f"{flag} User:*: no client has that name: omit the flag for all principals")
    return tuple(typed_text(principal) for principal in principals)


def question_resource(kind: ResourceType, name: str, pattern: PatternType | None) -> ResourcePattern:
    """Return the resource that a question names. Raises ConfigError: the name is empty, or not UTF-8."""
    if not name and pattern is not PatternType.PREFIXED:
        raise ConfigError(f"a {kind.name} with an empty name: expected a name, or '*' for every name")
    return asked_pattern(kind, typed_text(name), pattern)


# The flags that select how an answer about many requests is printed.


ANSWER_FORMATS = (OutputFormat.TEXT, *ROW_FORMATS)

AnswerFormat: TypeAlias = Annotated[
    OutputFormat | None,
    format_option(*ANSWER_FORMATS, default="text", help="Lines for people, a table, or rows for programs."),
]


@frozen(kw_only=True, eq=False, repr=False)
class AnswerFlags:
    """How an answer is printed: in lines for people, or as rows."""

    format: AnswerFormat = None
    columns: Columns = None
    no_pager: NoPager = False

    def choose(self, *, is_live: bool = False, json: bool = False) -> Output:
        """Return how to print; `json`: as JSON lines if no format is given. Raises as OutputFlags.choose."""
        flags = OutputFlags(columns=self.columns, no_pager=self.no_pager)
        form = OutputFormat.JSONL if json and self.format is None else self.format
        return flags.choose(form, pipe=OutputFormat.TEXT, is_live=is_live)
