"""`aclog acls`: kafka-acls.sh, on a log, a checkpoint or a file of rules."""

from typing import Annotated

import typer

from aclog.authorizer.acl import PatternType
from aclog.cli.acls.flags import EntryFlags, ResourceFlags
from aclog.cli.options import (
    AclsFile,
    Actions,
    AllowHosts,
    AllowPrincipals,
    AsOf,
    AuthorizerProperties,
    BootstrapController,
    BootstrapServer,
    ChangeConfig,
    ChangedController,
    ChangedServer,
    ChangedStore,
    Cluster,
    CommandConfig,
    Consumer,
    DelegationTokens,
    DenyHosts,
    DenyPrincipals,
    GrantHosts,
    GrantPrincipals,
    Groups,
    Idempotent,
    ListFormat,
    LogDir,
    Operations,
    Producer,
    ResourcePatternType,
    RevokeHosts,
    RevokePrincipals,
    SnapshotFile,
    Topics,
    TransactionalIds,
    UserPrincipals,
    WritableLog,
)

app = typer.Typer(
    name="acls", help="List, add and remove rules, with the flags of kafka-acls.sh.", no_args_is_help=True
)


@app.command(name="list")
def list_(
    log: LogDir = None,
    snapshot: SnapshotFile = None,
    acls: AclsFile = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    authorizer_properties: AuthorizerProperties = None,
    as_of: AsOf = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: Cluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: ResourcePatternType = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="Only the rules of this principal.", show_default=False),
    ] = None,
    format_: Annotated[
        ListFormat | None,
        typer.Option(
            "--format",
            help="As kafka-acls.sh prints it, as JSON lines, or in columns.",
            show_default="table on a terminal, kafka elsewhere",
        ),
    ] = None,
) -> None:
    """List the rules of some resources or principals, or all of them.

    JSON lines have the keys resourceType, resourceName, patternType, principal,
    host, operation, permissionType and id, and are sorted by all of them in
    this order.

    [bold]Examples[/]

      aclog acls list --log DIR --topic pay.eu --resource-pattern-type match
      aclog acls list --snapshot FILE --principal User:bob --format jsonl
      aclog acls list --authorizer-properties zookeeper.connect=HOST:2181
    """
    from aclog.cli.acls.rule_list import print_rules
    from aclog.sources.choice import LiveFlags, choose_source

    resources = _resources(
        topic, group, cluster, transactional_id, delegation_token, user_principal, resource_pattern_type
    )
    live = LiveFlags(bootstrap_controller, bootstrap_server, command_config, tuple(authorizer_properties or ()))
    print_rules(
        choose_source(log, snapshot, acls, as_of, live=live).image().acls,
        resources,
        principal or (),
        format_,
    )


@app.command()
def add(
    log: WritableLog = None,
    bootstrap_server: ChangedServer = None,
    bootstrap_controller: ChangedController = None,
    command_config: ChangeConfig = None,
    authorizer_properties: ChangedStore = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: Cluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: ResourcePatternType = None,
    allow_principal: AllowPrincipals = None,
    deny_principal: DenyPrincipals = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    grantprincipal: GrantPrincipals = None,
    granthost: GrantHosts = None,
    revokeprincipal: RevokePrincipals = None,
    revokehost: RevokeHosts = None,
    action: Actions = None,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write, even though the log belongs to a Kafka.")
    ] = False,
) -> None:
    """Add rules to a log, a running cluster or a ZooKeeper; those that exist already stay as they are.

    A log that belongs to a Kafka (a meta.properties lies beside it) is written
    with --force only, and only while no Kafka runs on it.

    [bold]Examples[/]

      aclog acls add --log DIR --allow-principal User:a --operation READ --topic t
      aclog acls add --log DIR --allow-principal User:a --consumer --topic t --group g
      aclog acls add --bootstrap-server HOST:9092 --allow-principal User:a --producer --topic t
    """
    from aclog.cli.acls.change import add_rules
    from aclog.cli.acls.targets import target_flags

    resources = _resources(
        topic, group, cluster, transactional_id, delegation_token, user_principal, resource_pattern_type
    )
    entries = _entries(
        [*(operation or ()), *(action or ())],
        [*(allow_principal or ()), *(grantprincipal or ())],
        [*(deny_principal or ()), *(revokeprincipal or ())],
        [*(allow_host or ()), *(granthost or ())],
        [*(deny_host or ()), *(revokehost or ())],
        producer,
        consumer,
        idempotent,
    )
    target = target_flags(log, bootstrap_server, bootstrap_controller, command_config, authorizer_properties or ())
    add_rules(target, resources, entries, force=force)


@app.command()
def remove(
    log: WritableLog = None,
    bootstrap_server: ChangedServer = None,
    bootstrap_controller: ChangedController = None,
    command_config: ChangeConfig = None,
    authorizer_properties: ChangedStore = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: Cluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: ResourcePatternType = None,
    allow_principal: AllowPrincipals = None,
    deny_principal: DenyPrincipals = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    grantprincipal: GrantPrincipals = None,
    granthost: GrantHosts = None,
    revokeprincipal: RevokePrincipals = None,
    revokehost: RevokeHosts = None,
    action: Actions = None,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Do not ask, and write even though the log belongs to a Kafka.")
    ] = False,
) -> None:
    """Remove rules: those of the given principals, or all of the resources if no principal is given.

    Asks before it removes. As in kafka-acls.sh, --operation and hosts count
    only together with a principal.

    [bold]Examples[/]

      aclog acls remove --log DIR --deny-principal User:b --operation READ --topic t
      aclog acls remove --log DIR --topic old. --resource-pattern-type prefixed
    """
    from aclog.cli.acls.change import remove_rules
    from aclog.cli.acls.targets import target_flags

    resources = _resources(
        topic, group, cluster, transactional_id, delegation_token, user_principal, resource_pattern_type
    )
    entries = _entries(
        [*(operation or ()), *(action or ())],
        [*(allow_principal or ()), *(grantprincipal or ())],
        [*(deny_principal or ()), *(revokeprincipal or ())],
        [*(allow_host or ()), *(granthost or ())],
        [*(deny_host or ()), *(revokehost or ())],
        producer,
        consumer,
        idempotent,
    )
    target = target_flags(log, bootstrap_server, bootstrap_controller, command_config, authorizer_properties or ())
    remove_rules(target, resources, entries, force=force)


def _resources(
    topics: Topics,
    groups: Groups,
    cluster: Cluster,
    transactional_ids: TransactionalIds,
    delegation_tokens: DelegationTokens,
    user_principals: UserPrincipals,
    pattern_type: ResourcePatternType,
) -> ResourceFlags:
    return ResourceFlags(
        topics=topics or (),
        groups=groups or (),
        cluster=cluster,
        transactional_ids=transactional_ids or (),
        delegation_tokens=delegation_tokens or (),
        user_principals=user_principals or (),
        pattern_type=pattern_type or PatternType.LITERAL,
    )


def _entries(
    operations: Operations,
    allow_principals: AllowPrincipals,
    deny_principals: DenyPrincipals,
    allow_hosts: AllowHosts,
    deny_hosts: DenyHosts,
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> EntryFlags:
    return EntryFlags(
        operations=operations or (),
        allow_principals=allow_principals or (),
        deny_principals=deny_principals or (),
        allow_hosts=allow_hosts or (),
        deny_hosts=deny_hosts or (),
        producer=producer,
        consumer=consumer,
        idempotent=idempotent,
    )
