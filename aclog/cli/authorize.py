"""`aclog authorize`: decide one request, or many."""

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
    Requests,
    ResourceChoice,
    Topic,
    TransactionalId,
    UserPrincipal,
    one_request,
)
from aclog.metalog.errors import ConfigError

app = typer.Typer()


@app.command()
def authorize(
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
    requests: Requests = None,
    super_users: SuperUsers = "",
    allow_everyone: AllowEveryone = False,
    semantics: SemanticsOption = Semantics.KAFKA,
) -> None:
    """Say ALLOWED or DENIED, and the rule that decided, as Kafka's authorizer names it.

    Exit code 0 if allowed, 1 if denied, 2 for bad input.

    With --requests each line has the keys principal, host, operation,
    resourceType and resourceName, or "kind":"byResourceType" and no
    resourceName, which asks for any resource of the type. One line a request
    comes out, in order: {"decision":"ALLOWED","rule":"..."}; a malformed
    request gives {"decision":"ERROR","error":"..."}, and exit code 2 at the
    end; denied requests count for nothing then.

    [bold]Examples[/]

      aclog authorize --log DIR --principal User:bob --operation READ --topic t
      aclog authorize --snapshot FILE --requests asked.jsonl.gz > answers.jsonl
    """
    from aclog.cli.decisions import AuthorizerFlags, decide_one, decide_requests
    from aclog.sources.choice import LiveFlags, choose_source

    flags = AuthorizerFlags(
        super_users=super_users, allow_everyone=allow_everyone, documented=semantics is Semantics.DOCUMENTED
    )
    choice = ResourceChoice(topic, group, cluster, transactional_id, delegation_token, user_principal)
    live = LiveFlags(bootstrap_controller, bootstrap_server, command_config)
    source = choose_source(log, snapshot, acls, as_of, live=live)
    if requests is None:
        request = one_request(principal, operation, host, choice)
        raise typer.Exit(decide_one(source.image(), flags, request))
    if any(each is not None for each in (principal, operation, host)) or choice.given():
        raise ConfigError("--requests FILE excludes --principal, --operation, --host and the resource flags")
    source.keep_stdin_for(requests)
    raise typer.Exit(decide_requests(source.image(), flags, requests))
