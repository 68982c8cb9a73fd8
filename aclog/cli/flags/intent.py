"""The flags that name an intent: who, what for, and on which resources."""

from typing import TYPE_CHECKING, Annotated

import typer
from attrs import field, frozen

from aclog.analysis.answers.intents import Intent
from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern, ResourceType
from aclog.authorizer.name_notation import rule_pattern
from aclog.cli.flags.values import TOPIC_HELP, pattern_type_option, typed_text
from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from aclog.planning.granting.needs import IntentResources

_INTENT, _RESOURCE = "Who, and what for", "Resource"


@frozen(kw_only=True)
class IntentFlags:
    """A principal, what it is for, and on which resources."""

    principal: Annotated[
        str,
        typer.Option(
            "--principal",
            metavar="TYPE:NAME",
            help="Whose rules change; [cyan]'User:*'[/] is everyone.",
            rich_help_panel=_INTENT,
            show_default=False,
        ),
    ]
    intent: Annotated[
        Intent,
        typer.Option(
            "--intent",
            metavar="INTENT",
            help="All that a client needs to [cyan]produce[/], [cyan]consume[/], [cyan]transact[/], [cyan]stream[/] or "
            "[cyan]admin[/].",
            rich_help_panel=_INTENT,
            show_default=False,
        ),
    ]
    hosts: Annotated[
        list[str],
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The host of the rules; can be repeated. [dim]Default: * to grant, any to revoke[/]",
            rich_help_panel=_INTENT,
        ),
    ] = field(factory=list)
    topics: Annotated[
        list[str],
        typer.Option("--topic", metavar="NAME", help=TOPIC_HELP, rich_help_panel=_RESOURCE),
    ] = field(factory=list)
    groups: Annotated[
        list[str],
        typer.Option(
            "--group",
            metavar="NAME",
            help="A consumer group; of a Streams application its id.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)
    transactional_ids: Annotated[
        list[str],
        typer.Option(
            "--transactional-id",
            metavar="ID",
            help="A transactional id; of a Streams application its id, if it processes exactly once.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)
    input_topics: Annotated[
        list[str],
        typer.Option(
            "--input-topic", metavar="NAME", help="A topic that a Streams application reads.", rich_help_panel=_RESOURCE
        ),
    ] = field(factory=list)
    output_topics: Annotated[
        list[str],
        typer.Option(
            "--output-topic",
            metavar="NAME",
            help="A topic that a Streams application writes.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)
    resource_pattern_type: Annotated[
        PatternType | None,
        pattern_type_option(_RESOURCE, more=" An application id is always literal."),
    ] = None
    topic_prefixes: Annotated[
        list[str],
        typer.Option(
            "--topic-prefix", metavar="NAME", help="All topics that begin with this.", rich_help_panel=_RESOURCE
        ),
    ] = field(factory=list)
    group_prefixes: Annotated[
        list[str],
        typer.Option(
            "--group-prefix", metavar="NAME", help="All groups that begin with this.", rich_help_panel=_RESOURCE
        ),
    ] = field(factory=list)
    transactional_id_prefixes: Annotated[
        list[str],
        typer.Option(
            "--transactional-id-prefix",
            metavar="ID",
            help="All transactional ids that begin with this.",
            rich_help_panel=_RESOURCE,
        ),
    ] = field(factory=list)

    def resources(self) -> "IntentResources":
        """Return the resources that are named.

        Raises:
            ConfigError: a name that is not UTF-8, or has a star where none can be (aclog.authorizer.name_notation).

        """
        from aclog.planning.granting.needs import IntentResources

        given = self.resource_pattern_type
        application = PatternType.LITERAL if given is not None and self.intent is Intent.STREAM else given
        found = [
            *_patterns(ResourceType.TOPIC, self.topics, given),
            *_patterns(ResourceType.GROUP, self.groups, application),
            *_patterns(ResourceType.TRANSACTIONAL_ID, self.transactional_ids, application),
            *_prefixes(ResourceType.TOPIC, self.topic_prefixes),
            *_prefixes(ResourceType.GROUP, self.group_prefixes),
            *_prefixes(ResourceType.TRANSACTIONAL_ID, self.transactional_id_prefixes),
        ]
        return IntentResources(
            named=tuple(dict.fromkeys(found)),
            inputs=tuple(_patterns(ResourceType.TOPIC, self.input_topics, given)),
            outputs=tuple(_patterns(ResourceType.TOPIC, self.output_topics, given)),
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
    found = _patterns(kind, prefixes, PatternType.PREFIXED)
    for each in found:
        if each.name.endswith(WILDCARD) and each.name != WILDCARD:
            raise ConfigError(
                f"{kind.name} {each.name!r}: a prefix is given as it is, without a *: expected {each.name[:-1]!r}"
            )
    return found
