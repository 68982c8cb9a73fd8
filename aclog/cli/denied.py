"""`aclog denied`: denied requests of an access log, and the ACLs that would allow them."""

from click.exceptions import Exit

from aclog.cli.flags.commands import DeniedFlags
from aclog.cli.flags.common import AccessesFlags, AuthorizerFlags, SourceFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.options import Group

app = Group()


@app.command()
def denied(
    source: SourceFlags,
    accesses: AccessesFlags,
    flags: DeniedFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """List denied requests of an access log, grouped by intent, with the minimal ACLs that would allow them.

    Each access is decided by the rules of the source as they are now. A DESCRIBE
    and the READ or WRITE after it count as one attempt. A request that a DENY
    rule blocks is listed without a proposal. The proposed rules allow the denied
    requests on these resources and from these hosts, and only what Kafka derives
    from them. Exit code 1 if a request is denied, or could not be read or
    decided; 0 if not, 2 for bad input.

    [bold]Examples[/]

      aclog denied --accesses /var/log/kafka --log DIR
      aclog denied --accesses /var/log/kafka --log DIR --principal User:bob
      aclog denied --accesses /var/log/kafka --log DIR --out change.jsonl
      aclog diff --log DIR --change change.jsonl
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.usage_report import print_denied
    from aclog.ops.policies import settings_of
    from aclog.ops.usage import AccessLog, denied_requests

    settings, how = settings_of(authorizer), output.choose()
    log, choice = AccessLog.of(accesses, explain=accesses.explain_unread), source.choose()
    requests = denied_requests(
        log, choice, settings, principals=flags.principal, any_host=flags.any_host, configs=authorizer.configs()
    )
    raise Exit(print_denied(requests, flags.out, how))
