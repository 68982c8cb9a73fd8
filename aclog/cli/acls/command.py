"""`aclog acls`: kafka-acls.sh, on a log, a checkpoint, a file of ACLs or a running cluster."""

from typing import Annotated

import typer

from aclog.cli.acls.flags import AclSourceFlags, ResourceFlags, RuleFlags, TargetFlags
from aclog.cli.acls.kip_11_flags import Kip11Flags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.output import OutputFlags, format_option
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

app = typer.Typer(name="acls", help="List, add and remove ACLs, with the flags of kafka-acls.sh.", no_args_is_help=True)


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
    order.

    [bold]Examples[/]

      aclog acls list --log DIR --topic pay.eu --resource-pattern-type match
      aclog acls list --snapshot FILE --principal User:bob --format jsonl
      aclog acls list --authorizer-properties zookeeper.connect=HOST:2181
    """
    from aclog.cli.acls.rule_list import ListedAcls, print_acls

    how = output.choose(format_, pipe=OutputFormat.KAFKA, terminal=OutputFormat.TABLE)
    chosen = source.choose()
    acls = chosen.image().acls
    listed = ListedAcls(acls=acls, origins=chosen.origins, with_origins=origins)
    print_acls(listed, resources, principal or (), how)


@app.command()
@with_flags
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

    add_acls(choose_target(target), resources, aliases.added_to(rules), force=force)


@app.command()
@with_flags
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

    remove_acls(choose_target(target), resources, aliases.added_to(rules), force=force)
