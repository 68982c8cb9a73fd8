"""`aclog acls`: kafka-acls.sh, on a log, a checkpoint, a file or a running server."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Self, TypeAlias

from attrs import asdict, evolve, field

from aclog.authorizer.acl import (
    NO_ORIGINS,
    AclBindingFilter,
    Origins,
    ResourcePattern,
    StandardAclWithId,
    code_name,
    origin_text,
    parse_name,
    place_object,
    resource_of,
    rule_fields,
    rule_json,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index.queries import rules_of
from aclog.cli.app import writes_to_source
from aclog.cli.flags import source
from aclog.cli.flags.common import OPERATIONS, Output, OutputFlags, completions, format_option, group_from
from aclog.cli.flags.question import ResourceFlags, parse_principal, question_principal
from aclog.cli.flags.source import SourceFlags
from aclog.cli.flags.target import ZOOKEEPER_HELP, RuleFlags, TargetFlags, TargetWord, entry_of, resource_filter
from aclog.cli.images import ORIGIN_COLUMNS, PLACE, RULE_COLUMNS, RangeWatch
from aclog.cli.options import Group, Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import ROW_FORMATS, OutputFormat, Row
from aclog.terminal.notices import tracked
from aclog.terminal.output import print_lines, value_formatter
from aclog.terminal.tables import print_rows

if TYPE_CHECKING:
    from aclog.sources.choice import ChosenSource

# Where `acls list` reads.


@frozen(kw_only=True)
class AclSourceFlags:
    """The state source of `acls list`: SourceFlags, and the ZooKeeper of an older Kafka."""

    source_word: source.SourceWord = None
    log: source.LogDir = None
    snapshot: source.SnapshotFile = None
    acls: source.AclsPath = None
    ref: source.GitRef = None
    acls_format: source.AclsFormatFlag = None
    modules: source.Modules = field(factory=list)
    exclude: source.Exclude = field(factory=list)
    accept_unread: source.AcceptUnread = field(factory=list)
    var_files: source.VarFiles = field(factory=list)
    variables: source.Vars = field(factory=list)
    workspace: source.Workspace = None
    topics_file: source.TopicsFile = None
    bootstrap_controller: source.BootstrapController = None
    bootstrap_server: source.BootstrapServer = None
    command_config: source.CommandConfig = None
    authorizer_properties: Annotated[
        list[str],
        Option(
            "--authorizer-properties",
            metavar="KEY=VALUE",
            help=ZOOKEEPER_HELP,
            rich_help_panel=source.SOURCE_PANEL,
        ),
    ] = field(factory=list)
    as_of: source.AsOf = None
    timezone: source.Timezone = None

    def choose(self) -> "ChosenSource":
        """Return the source that is given. Raises as SourceFlags.choose."""
        from aclog.sources.choice import choose_source

        named = group_from(SourceFlags, asdict(self, recurse=False)).selection()
        return choose_source(evolve(named, authorizer_properties=self.authorizer_properties))


# The flags of KIP-11's first version, other names of those of kafka-acls.sh; each takes a list with commas.


_PANEL = "Aliases from KIP-11, which take lists: A,B"


@frozen(kw_only=True)
class Kip11Flags:
    """What the five flags of KIP-11 were given, lists not yet split."""

    grant_principals: Annotated[
        list[str],
        Option("--grantprincipal", metavar="TYPE:NAME,...", help="--allow-principal.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    grant_hosts: Annotated[
        list[str], Option("--granthost", metavar="ADDRESS,...", help="--allow-host.", rich_help_panel=_PANEL)
    ] = field(factory=list)
    revoke_principals: Annotated[
        list[str],
        Option("--revokeprincipal", metavar="TYPE:NAME,...", help="--deny-principal.", rich_help_panel=_PANEL),
    ] = field(factory=list)
    revoke_hosts: Annotated[
        list[str], Option("--revokehost", metavar="ADDRESS,...", help="--deny-host.", rich_help_panel=_PANEL)
    ] = field(factory=list)
    actions: Annotated[
        list[str],
        Option(
            "--action",
            autocompletion=completions(OPERATIONS),
            metavar="NAME,...",
            help="--operation.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)

    def added_to(self, rules: RuleFlags) -> RuleFlags:
        """Return the flags of kafka-acls.sh with these values as well.

        Raises:
            ConfigError: an empty entry of a list, an operation that Kafka does not have, or an entry that is no
                principal, such as half of a name with a comma.

        """
        allowed = _principals("--grantprincipal", self.grant_principals, "--allow-principal")
        denied = _principals("--revokeprincipal", self.revoke_principals, "--deny-principal")
        return evolve(
            rules,
            allow_principals=[*rules.allow_principals, *allowed],
            deny_principals=[*rules.deny_principals, *denied],
            allow_hosts=[*rules.allow_hosts, *_split("--granthost", self.grant_hosts)],
            deny_hosts=[*rules.deny_hosts, *_split("--revokehost", self.revoke_hosts)],
            operations=[*rules.operations, *_operations(self.actions)],
        )


def _split(flag: str, lists: list[str]) -> list[str]:
    entries = [entry.strip() for text in lists for entry in text.split(",")]
    if not all(entries):
        raise ConfigError(f"{flag} {','.join(lists)!r}: an empty entry: expected a list such as A,B")
    return entries


def _principals(flag: str, lists: list[str], released: str) -> list[str]:
    entries = _split(flag, lists)
    for entry in entries:
        kind, colon, _ = entry.partition(":")
        # A certificate's name has commas: "User:CN=bob,OU=urn:x" must not become two rules that match no principal.
        if not colon or "=" in kind:
            raise ConfigError(
                f"{flag} {','.join(lists)!r}: {entry!r} is no principal: expected TYPE:NAME[,TYPE:NAME]*; a name "
                f"with a comma needs {released}"
            )
    return entries


def _operations(lists: list[str]) -> list[AclOperation]:
    entries = _split("--action", lists)
    try:
        return [parse_name(OPERATIONS, entry) for entry in entries]
    except ConfigError as error:
        raise ConfigError(f"--action {','.join(lists)!r}: {error}") from None


# `aclog acls`: kafka-acls.sh, on a log, a checkpoint, a file of ACLs or a running cluster.


app = Group(
    name="acls",
    help="List, add, remove and copy ACLs, with the flags of kafka-acls.sh, and show their changes.",
    no_args_is_help=True,
)


@app.command(name="list")
def list_(
    source: AclSourceFlags,
    resources: ResourceFlags,
    output: OutputFlags,
    principal: Annotated[
        list[str] | None,
        Option("--principal", metavar="TYPE:NAME", help="Only the ACLs of this principal.", show_default=False),
    ] = None,
    format_: Annotated[
        OutputFormat | None,
        format_option(OutputFormat.KAFKA, *ROW_FORMATS, default="table on a terminal, kafka otherwise"),
    ] = None,
    origins: Annotated[
        bool,
        Option(
            "--origins",
            metavar="",
            help="Add the [cyan]file[/] and [cyan]line[/] of each ACL. A table has them if the source has them.",
        ),
    ] = False,
) -> None:
    """List the ACLs of some resources or principals, or all ACLs.

    JSON lines have the keys resourceType, resourceName, patternType, principal,
    host, operation, permissionType and id, and are sorted by these keys in this
    order. Names are literal, as in kafka-acls.sh: 'pii-*' is not a prefix here.

    [bold]Examples[/]

      aclog acls list --log DIR --topic pay.eu --resource-pattern-type match
      aclog acls list --snapshot FILE --principal User:bob --format jsonl
      aclog acls list --authorizer-properties zookeeper.connect=HOST:2181
    """
    from aclog.snapshots.deciding_kafka import deciding_kafka

    how = output.choose(format_, pipe=OutputFormat.KAFKA, terminal=OutputFormat.TABLE)
    resources.warn_of_topics()
    choice, filters = source.choose(), AclFilters.of(resources, principal or ())
    choice.restrict(filters.all())
    image = choice.image()
    listed = ListedAcls(
        acls=image.acls,
        kafka=deciding_kafka(image, None),
        origins=choice.origins,
        with_origins=origins,
        is_whole=not choice.is_restricted,
    )
    print_acls(listed, filters, how)
    if choice.is_live:
        choice.note_without_authorizer()


@app.command()
def history(
    source: SourceFlags,
    resources: ResourceFlags,
    output: OutputFlags,
    since: Annotated[
        str | None,
        Option(
            "--since",
            metavar="N|TIME",
            help="Only changes after the state that [cyan]--as-of[/] would show for this: [cyan]'yesterday 18:00'[/], "
            "[cyan]90d[/], [cyan]1h[/].",
            show_default="the log's beginning",
        ),
    ] = None,
    principal: Annotated[
        list[str] | None,
        Option("--principal", metavar="TYPE:NAME", help="Only ACLs of this principal.", show_default=False),
    ] = None,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """List when each ACL was added or removed, in the order of the log.

    Changes in an aborted transaction are left out. --as-of ends the list at that
    state. Resources are selected as by acls list: --resource-pattern-type match
    lists the changes of all ACLs that affect a topic.

    [bold]Examples[/]

      aclog acls history --log DIR --since 'yesterday 18:00'
      aclog acls history --log DIR --topic pay.eu --resource-pattern-type match
      aclog acls history --log DIR --principal User:bob --format csv
    """
    from aclog.cli.acl_history import Span, print_history
    from aclog.snapshots.moments import since_text
    from aclog.terminal.moment import take_moment

    how = output.choose(format_, pipe=OutputFormat.TABLE)
    resources.warn_of_topics()
    choice, filters = source.choose(), AclFilters.of(resources, principal or ())
    moment = None if since is None else take_moment(since_text(since), of_state=True)
    print_history(choice, Span(since=moment, filters=filters.all()), how)


@app.command()
@writes_to_source()
def add(
    target: TargetFlags,
    resources: ResourceFlags,
    rules: RuleFlags,
    aliases: Kip11Flags,
    force: Annotated[
        bool, Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False,
    source_word: TargetWord = None,
) -> None:
    """Add ACLs to a log, a running cluster or a ZooKeeper; existing ones are left unchanged.

    A log that belongs to a Kafka node (its directory has a meta.properties) is
    written only with --force, and only while no Kafka runs on it.

    [bold]Examples[/]

      aclog acls add --log DIR --allow-principal User:a --operation READ --topic t
      aclog acls add --log DIR --allow-principal User:a --consumer --topic t --group g
      aclog acls add HOST:9092 --allow-principal User:a --producer --topic t
    """
    from aclog.cli.acl_changes import add_acls, choose_target

    del source_word  # the value of a flag of the target since before this call
    resources.warn_of_topics()
    add_acls(choose_target(target), resources, aliases.added_to(rules), force=force)


@app.command()
@writes_to_source()
def remove(
    target: TargetFlags,
    resources: ResourceFlags,
    rules: RuleFlags,
    aliases: Kip11Flags,
    force: Annotated[
        bool,
        Option("--force", metavar="", help="Write without confirmation, and even if the log belongs to a Kafka node."),
    ] = False,
    source_word: TargetWord = None,
) -> None:
    """Remove the ACLs of the given principals, or all ACLs of the resources if no principal is given.

    The command asks for confirmation. As in kafka-acls.sh, --operation and
    hosts are ignored without a principal.

    [bold]Examples[/]

      aclog acls remove --log DIR --deny-principal User:b --operation READ --topic t
      aclog acls remove --log DIR --topic old. --resource-pattern-type prefixed
    """
    from aclog.cli.acl_changes import choose_target, remove_acls

    del source_word  # the value of a flag of the target since before this call
    resources.warn_of_topics()
    remove_acls(choose_target(target), resources, aliases.added_to(rules), force=force)


@app.command()
@writes_to_source()
def copy(
    target: TargetFlags,
    from_principal: Annotated[
        str,
        Option(
            "--from-principal", metavar="TYPE:NAME", help="The principal whose ACLs are copied.", show_default=False
        ),
    ],
    to_principal: Annotated[
        list[str],
        Option(
            "--to-principal",
            metavar="TYPE:NAME",
            help="The principal that receives them; can be repeated.",
            show_default=False,
        ),
    ],
    force: Annotated[
        bool, Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False,
    source_word: TargetWord = None,
) -> None:
    """Copy the ACLs of a principal to another one, DENY rules included; existing ones are left unchanged.

    ALLOW rules for all principals (User:*) are not copied: they apply to the new
    principal already.

    [bold]Examples[/]

      aclog acls copy --log DIR --from-principal User:a --to-principal User:b
      aclog acls copy --bootstrap-server HOST:9092 --from-principal User:a --to-principal User:b
    """
    from aclog.cli.acl_changes import choose_target, copy_acls

    del source_word  # the value of a flag of the target since before this call
    copy_acls(choose_target(target), from_principal, to_principal, force=force)


# The ACLs of a state in the formats of `acls list`.


# ACLs in the output format of kafka-acls.sh: its bytes in a pipe, escaped on a terminal.


def listed(rules: Iterable[StandardAclWithId]) -> Iterator[str]:
    """Yield a paragraph for each resource, without the last line end; the ACLs must be grouped by resource."""
    show = value_formatter()
    for pattern, group in groupby((rule.acl for rule in rules), key=resource_of):
        entries = "\n".join(f"\t{show(entry_of(acl))}" for acl in group)
        yield f"Current ACLs for resource `{show(pattern)}`:\n{entries}\n"


# The ACLs of a state in the formats of `acls list`.


Watch: TypeAlias = Callable[[Iterable[StandardAclWithId]], Iterator[StandardAclWithId]]
"""Passes ACLs on, and counts those that deserve a warning."""


@frozen(eq=False, kw_only=True, repr=False)
class ListedAcls:
    """The ACLs of a state, and where they stand."""

    acls: AclsImage
    kafka: DecidingKafka
    """What decides on them."""
    origins: Origins
    with_origins: bool
    """Whether every format has the origins."""
    is_whole: bool = True
    """Whether no ACL is missing, so that those near to an empty selection can be named."""


@frozen(kw_only=True)
class AclFilters:
    """The selected resources, or all; and the selected principals, if not all."""

    patterns: Sequence[ResourcePattern]
    principals: Sequence[str]

    @classmethod
    def of(cls, resources: ResourceFlags, principals: Iterable[str]) -> Self:
        """Return those that the flags select. Raises ConfigError: an empty principal."""
        named = (parse_principal(question_principal(each)) for each in principals)
        return cls(patterns=resources.patterns(), principals=list(dict.fromkeys(named)))

    @property
    def resources(self) -> list[AclBindingFilter]:
        """The filters of the resources."""
        return [resource_filter(pattern) for pattern in self.patterns] or [AclBindingFilter()]

    def of_principal(self, principal: str) -> list[AclBindingFilter]:
        """Return the filters of one of the principals."""
        return [evolve(each, principal=principal) for each in self.resources]

    def all(self) -> Sequence[AclBindingFilter]:
        """Return the filters of all selected ACLs."""
        by_principal = [each for principal in self.principals for each in self.of_principal(principal)]
        return by_principal or self.resources


def print_acls(listed: ListedAcls, filters: AclFilters, output: Output) -> None:
    """Print the selected ACLs; warn about those with a CIDR range as host.

    Raises:
        ConfigError: a chosen column does not exist.

    """
    ranges = RangeWatch(listed.origins)
    watch = partial(ranges.watch, kafka=listed.kafka)
    if _print_many(listed, filters, output):
        odd = listed.acls.odd_rules(lambda acl: "/" in acl.host)
        ranges.watch_all(sorted(odd, key=rule_fields), listed.kafka)
        ranges.report()
        return
    if output.form is OutputFormat.KAFKA:
        print_lines(_kafka_lines(listed.acls, filters, watch))
    else:
        rules = tracked(_sorted(listed.acls, filters.all()), "listing", "ACLs", streams=True)
        _print_rows(listed, watch(rules), output)
    ranges.report()
    if ranges.is_empty and listed.is_whole and output.form in (OutputFormat.KAFKA, OutputFormat.TABLE):
        from aclog.ops.near import nothing_listed
        from aclog.terminal.output import note_each

        note_each(nothing_listed(listed.acls, filters.patterns, filters.principals))


def _print_many(listed: ListedAcls, filters: AclFilters, output: Output) -> bool:
    """Print all ACLs without their origins, made in columns; return False, having printed nothing, if these are few."""
    if listed.origins is not NO_ORIGINS or listed.with_origins or list(filters.all()) != [AclBindingFilter()]:
        return False
    columns = listed.acls.columns(AclBindingFilter()) if len(listed.acls) >= _MANY else None
    if columns is None:
        return False
    from aclog.authorizer.index.rule_lines import sorted_lines, sorted_objects, sorted_paragraphs

    if output.form is OutputFormat.KAFKA or (output.form is OutputFormat.JSONL and not output.columns):
        is_kafka = output.form is OutputFormat.KAFKA
        lines = sorted_paragraphs(columns, value_formatter()) if is_kafka else sorted_lines(columns)
        if lines is not None:
            print_lines(tracked(lines, "listing", "resources" if is_kafka else "ACLs", streams=True))
        return lines is not None
    rows = sorted_objects(columns)
    if rows is not None:
        print_rows(RULE_COLUMNS, tracked(rows, "listing", "ACLs", streams=True), output.form, keys=output.columns)
    return rows is not None


_MANY = 1_000
"""ACLs from which on columns are faster than objects, numpy's import included."""


def _kafka_lines(acls: AclsImage, filters: AclFilters, watch: Watch) -> Iterator[str]:
    if not filters.principals:
        yield from listed(watch(_sorted(acls, filters.resources)))
    for principal in filters.principals:  # kafka-acls.sh prints a section for each
        yield f"ACLs for principal `{value_formatter()(principal)}`"
        yield from listed(watch(_sorted(acls, filters.of_principal(principal))))


def _print_rows(listed: ListedAcls, rules: Iterable[StandardAclWithId], output: Output) -> None:
    origins = listed.origins
    if output.form is OutputFormat.JSONL and not output.columns:  # as fast as a million ACLs need
        from aclog.shell.tree import located_json

        is_located = listed.with_origins or origins is not NO_ORIGINS
        print_lines(map(partial(located_json, origins=origins) if is_located else rule_json, rules))
    elif output.form is OutputFormat.TABLE and origins is not NO_ORIGINS:
        print_rows((*RULE_COLUMNS, PLACE), _placed(rules, origins), output.form, keys=output.columns)
    elif listed.with_origins:
        rows = ({**rule.to_dict(), **place_object(rule.acl, origins)} for rule in rules)
        print_rows((*RULE_COLUMNS, *ORIGIN_COLUMNS), rows, output.form, keys=output.columns)
    else:
        print_rows(RULE_COLUMNS, (rule.to_dict() for rule in rules), output.form, keys=output.columns)


def _sorted(acls: AclsImage, filters: Iterable[AclBindingFilter]) -> Iterable[StandardAclWithId]:
    """Return the ACLs that match any of the filters, each once, in the order of their JSON lines."""
    filters = list(filters)
    if filters == [AclBindingFilter()]:
        return _in_text_order(acls)
    rules = dict.fromkeys(rule for each in filters for rule in acls.matching(each))
    return sorted(rules, key=rule_fields)


def _in_text_order(acls: AclsImage) -> Iterator[StandardAclWithId]:
    """Yield all ACLs sorted by rule_fields, resource by resource, so that they are never all in memory."""
    named = ((code_name(ResourceType, kind), each.name, each) for kind, each in acls.index.resources())
    for _, group in groupby(sorted(named, key=_TYPE_AND_NAME), key=_TYPE_AND_NAME):
        rules = [rule for *_, each in group for rule in rules_of(acls.index, each)]
        yield from sorted(rules, key=rule_fields) if len(rules) > 1 else rules


_TYPE_AND_NAME = itemgetter(0, 1)


def _placed(rules: Iterable[StandardAclWithId], origins: Origins) -> Iterator[Row]:
    for rule in rules:
        places = ", ".join(map(origin_text, origins.of(rule.acl)))
        yield {**rule.to_dict(), PLACE.key: places}
