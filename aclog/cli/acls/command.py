"""`aclog acls`: kafka-acls.sh, on a log, a checkpoint, a file of ACLs or a running cluster."""

from typing import Annotated

import typer

from aclog.cli.acls.flags import AclSourceFlags, RuleFlags
from aclog.cli.acls.kip_11_flags import Kip11Flags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.output import OutputFlags, format_option
from aclog.cli.flags.resources import ResourceFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.from_context.marks import writes_to_source
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

app = typer.Typer(
    name="acls",
    help="List, add, remove and copy ACLs, with the flags of kafka-acls.sh, and tell when they changed.",
    no_args_is_help=True,
)


@app.command(name="list")
@with_flags
def list_(
    source: AclSourceFlags,
    resources: ResourceFlags,
    output: OutputFlags,
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="Only the ACLs of this principal.", show_default=False),
    ] = None,
    format_: Annotated[
        OutputFormat | None,
        format_option(OutputFormat.KAFKA, *ROW_FORMATS, default="table on a terminal, kafka otherwise"),
    ] = None,
    origins: Annotated[
        bool,
        typer.Option(
            "--origins",
            metavar="",
            help="Add the [cyan]file[/] and [cyan]line[/] of each ACL. A table has them if the source knows.",
        ),
    ] = False,
) -> None:
    """List the ACLs of some resources or principals, or all of them.

    JSON lines have the keys resourceType, resourceName, patternType, principal,
    host, operation, permissionType and id, and are sorted by these keys in this
    order. Names are as they are, as in kafka-acls.sh: 'pii-*' is no prefix
    here.

    [bold]Examples[/]

      aclog acls list --log DIR --topic pay.eu --resource-pattern-type match
      aclog acls list --snapshot FILE --principal User:bob --format jsonl
      aclog acls list --authorizer-properties zookeeper.connect=HOST:2181
    """
    from aclog.cli.acls.rule_list import ListedAcls, print_acls
    from aclog.snapshots.deciding_kafka import deciding_kafka

    how = output.choose(format_, pipe=OutputFormat.KAFKA, terminal=OutputFormat.TABLE)
    resources.warn_of_topics()
    chosen = source.choose()
    image = chosen.image()
    listed = ListedAcls(
        acls=image.acls, kafka=deciding_kafka(image, None), origins=chosen.origins, with_origins=origins
    )
    print_acls(listed, resources, principal or (), how)


@app.command()
@with_flags
def history(
    source: SourceFlags,
    output: OutputFlags,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="N|TIME",
            help="Only changes after the state that [cyan]--as-of[/] would show for this: [cyan]'yesterday 18:00'[/].",
            show_default="the log's beginning",
        ),
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="Only ACLs of this principal.", show_default=False),
    ] = None,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """List when each ACL was added or removed, in the order of the log.

    What happened in an aborted transaction is left out. --as-of ends the
    list at that state.

    [bold]Examples[/]

      aclog acls history --log DIR --since 'yesterday 18:00'
      aclog acls history --log DIR --principal User:bob --format csv
    """
    from aclog.cli.acls.history_list import Span, print_history
    from aclog.terminal.moment import take_moment

    how = output.choose(format_, pipe=OutputFormat.TABLE)
    chosen = source.choose()
    moment = None if since is None else take_moment(since)
    print_history(chosen, Span(since=moment, principals=principal or ()), how)


@app.command()
@with_flags
@writes_to_source()
def add(
    target: TargetFlags,
    resources: ResourceFlags,
    rules: RuleFlags,
    aliases: Kip11Flags,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False,
) -> None:
    """Add ACLs to a log, a running cluster or a ZooKeeper; existing ones are left unchanged.

    A log that belongs to a Kafka node (its directory has a meta.properties) is
    written only with --force, and only while no Kafka runs on it.

    [bold]Examples[/]

      aclog acls add --log DIR --allow-principal User:a --operation READ --topic t
      aclog acls add --log DIR --allow-principal User:a --consumer --topic t --group g
      aclog acls add --bootstrap-server HOST:9092 --allow-principal User:a --producer --topic t
    """
    from aclog.cli.acls.change import add_acls
    from aclog.cli.acls.targets import choose_target

    resources.warn_of_topics()
    add_acls(choose_target(target), resources, aliases.added_to(rules), force=force)


@app.command()
@with_flags
@writes_to_source()
def remove(
    target: TargetFlags,
    resources: ResourceFlags,
    rules: RuleFlags,
    aliases: Kip11Flags,
    force: Annotated[
        bool,
        typer.Option("--force", metavar="", help="Do not ask, and write even if the log belongs to a Kafka node."),
    ] = False,
) -> None:
    """Remove the ACLs of the given principals, or all ACLs of the resources if no principal is given.

    Asks for confirmation. As in kafka-acls.sh, --operation and hosts are
    ignored without a principal.

    [bold]Examples[/]

      aclog acls remove --log DIR --deny-principal User:b --operation READ --topic t
      aclog acls remove --log DIR --topic old. --resource-pattern-type prefixed
    """
    from aclog.cli.acls.change import remove_acls
    from aclog.cli.acls.targets import choose_target

    resources.warn_of_topics()
    remove_acls(choose_target(target), resources, aliases.added_to(rules), force=force)


@app.command()
@with_flags
@writes_to_source()
def copy(
    target: TargetFlags,
    from_principal: Annotated[
        str,
        typer.Option("--from-principal", metavar="TYPE:NAME", help="Whose ACLs are copied.", show_default=False),
    ],
    to_principal: Annotated[
        list[str],
        typer.Option(
            "--to-principal", metavar="TYPE:NAME", help="Who gets the same; can be repeated.", show_default=False
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False,
) -> None:
    """Give a principal the ACLs of another one, those that deny included; existing ones are left unchanged.

    What ACLs of everyone (User:*) allow is not copied: the new principal
    has it already.

    [bold]Examples[/]

      aclog acls copy --log DIR --from-principal User:a --to-principal User:b
      aclog acls copy --bootstrap-server HOST:9092 --from-principal User:a --to-principal User:b
    """
    from aclog.cli.acls.change import copy_acls
    from aclog.cli.acls.targets import choose_target

    copy_acls(choose_target(target), from_principal, to_principal, force=force)
