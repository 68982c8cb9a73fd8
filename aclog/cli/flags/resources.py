"""The flags that name resource patterns: those of kafka-acls.sh (org.apache.kafka.tools.AclCommandOptions)."""

from typing import Annotated

import typer
from attrs import field, frozen

from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, PatternType, ResourcePattern, ResourceType
from aclog.authorizer.shell_word import shell_word
from aclog.cli.flags.values import PATTERN_TYPES, completions, named, typed_text

_RESOURCE = "Resource"

CLUSTER = ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


@frozen(kw_only=True)
class ResourceFlags:
    """The resource patterns to list, add to or remove from."""

    topics: Annotated[
        list[str],
        typer.Option(
            "--topic", metavar="NAME", help="A topic; [cyan]'*'[/] is all, no other * is.", rich_help_panel=_RESOURCE
        ),
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

    def warn_of_topics(self) -> None:
        """Warn of each topic that cannot exist: `pii-*` is a name here, as in kafka-acls.sh, and no prefix.

        Raises:
            ConfigError: a name that is not UTF-8.

        """
        from aclog.analysis.regions.topic_names import LONGEST, is_legal_topic
        from aclog.terminal.notices import warn

        is_prefix = self.pattern_type is PatternType.PREFIXED
        for name in dict.fromkeys(typed_text(name).strip() for name in self.topics):
            if name in ("", WILDCARD) or is_legal_topic(f"{name}x" if is_prefix and len(name) < LONGEST else name):
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
