"""`aclog explain`: why a request is allowed or denied."""

import typer

from aclog.cli.options import (
    AclsFile,
    AllowEveryone,
    AsOf,
    BootstrapController,
    BootstrapServer,
    CommandConfig,
    LogDir,
    Semantics,
    SemanticsOption,
    SnapshotFile,
    SuperUsers,
)
from aclog.cli.request_options import (
    DelegationToken,
    Group,
    Host,
    OnCluster,
    Operation,
    Principal,
    ResourceChoice,
    Topic,
    TransactionalId,
    UserPrincipal,
    one_request,
)

app = typer.Typer()


@app.command()
def explain(
    log: LogDir = None,
    snapshot: SnapshotFile = None,
    acls: AclsFile = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    as_of: AsOf = None,
    principal: Principal = None,
    operation: Operation = None,
    host: Host = None,
    topic: Topic = None,
    group: Group = None,
    cluster: OnCluster = False,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    super_users: SuperUsers = "",
    allow_everyone: AllowEveryone = False,
    semantics: SemanticsOption = Semantics.KAFKA,
) -> None:
    """Show every rule that took part in a decision, which one decided, and what would have to change.

    [bold]Example[/]

      aclog explain --log DIR --principal User:bob --operation WRITE --topic pay
    """
    from aclog.cli.decisions import AuthorizerFlags, explain_one
    from aclog.sources.choice import LiveFlags, choose_source

    flags = AuthorizerFlags(
        super_users=super_users, allow_everyone=allow_everyone, documented=semantics is Semantics.DOCUMENTED
    )
    choice = ResourceChoice(topic, group, cluster, transactional_id, delegation_token, user_principal)
    request = one_request(principal, operation, host, choice)
    live = LiveFlags(bootstrap_controller, bootstrap_server, command_config)
    chosen = choose_source(log, snapshot, acls, as_of, live=live)
    explain_one(chosen.image(), flags, request, chosen.source.writable_log)
