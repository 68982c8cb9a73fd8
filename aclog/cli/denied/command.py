"""`aclog denied`: who is refused what in an access log, and the least rules that would allow it."""

import typer

from aclog.cli.denied.flags import DeniedFlags
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.source import SourceFlags

app = typer.Typer()


@app.command()
@with_flags
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
    from aclog.cli.usage_extra import need_usage_extra

    need_usage_extra()
    from aclog.cli.denied.report import print_denied
    from aclog.cli.policies import settings_of

    log = (accesses, settings_of(authorizer))
    raise typer.Exit(print_denied(source, *log, flags, output.choose(), given=authorizer.given()))
