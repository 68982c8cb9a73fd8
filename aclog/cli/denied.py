"""`aclog denied`: denied requests of an access log, and the ACLs that would allow them."""

from click.exceptions import Exit

from aclog.cli.flags.commands import DeniedFlags
from aclog.cli.flags.common import AccessesFlags, AuthorizerFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
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
    """List who is refused what in an access log, by what it was for, with the least rules that would allow it.

    Every access of the log is decided by the rules of the source, as they
    are now. A DESCRIBE and the READ or WRITE that follows it are one attempt.
    Where a DENY is in the way, it is named, and no rule is proposed. Rules
    allow what was refused, on that resource and from these hosts, and nothing
    else but what Kafka takes them to imply. Exit code 1 if anything is
    refused, or may be that could not be read or decided; 0 if not, 2 for bad
    input.

    [bold]Examples[/]

      aclog denied --accesses /var/log/kafka --log DIR
      aclog denied --accesses /var/log/kafka --log DIR --principal User:bob
      aclog denied --accesses /var/log/kafka --log DIR --out change.jsonl
      aclog diff --log DIR --change change.jsonl
    """
    from aclog.cli.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.denied_report import print_denied
    from aclog.ops.policies import settings_of

    log = (accesses, settings_of(authorizer))
    raise Exit(print_denied(source, *log, flags, output.choose(), configs=authorizer.configs()))
