"""`aclog accesses denied`: denied requests of an access log, and the ACLs that would allow them."""

from pathlib import Path
from typing import Annotated

from attrs import field
from click.exceptions import Exit

from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import AuthorizerFlags, check_one_stdin, stdin_among
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.metalog.values import frozen

# The flags besides the source and the log.


@frozen(kw_only=True)
class DeniedFlags:
    """Whose denials, and the rules that would allow them."""

    principal: Annotated[
        list[str],
        Option(
            "--principal",
            metavar="TYPE:NAME",
            help="Only requests of this principal, a User without TYPE; can be repeated.",
            show_default="all",
        ),
    ] = field(factory=list)
    any_host: Annotated[
        bool,
        Option("--any-host", help="Allow every host in the rules, not only the hosts of denied requests."),
    ] = False
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="FILE",
            help="Write the proposed rules as a change for [cyan]--change[/].",
            show_default=False,
        ),
    ] = None


app = Group()


@app.command()
def denied(
    source: SourceFlags,
    accesses: AccessesFlags,
    flags: DeniedFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """List denied requests of an access log by intent (produce, consume, ...), and the minimal ACLs to allow them.

    Each access is decided by the rules of the source as they are now. A DESCRIBE
    and the READ or WRITE after it count as one attempt. A request that a DENY
    rule blocks is listed without a proposal. The proposed rules allow the denied
    requests on these resources and from these hosts, and only what Kafka derives
    from them. Exit code 1 if a request is denied, or could not be read or
    decided; 0 if not, 2 for bad input.

    [bold]Examples[/]

      aclog accesses denied --accesses /var/log/kafka --log DIR
      aclog accesses denied --accesses /var/log/kafka --log DIR --principal User:bob
      aclog accesses denied --accesses /var/log/kafka --log DIR --out change.jsonl
      aclog diff --log DIR --change change.jsonl
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.usage_report import print_denied
    from aclog.ops.policies import settings_of
    from aclog.ops.usage import denied_requests

    settings, how = settings_of(authorizer), output.choose()
    check_one_stdin({**source.files(), **stdin_among(accesses.accesses)})
    log, choice = accesses.open(), source.choose()
    requests = denied_requests(
        log, choice, settings, principals=flags.principal, any_host=flags.any_host, configs=authorizer.configs()
    )
    code = print_denied(requests, flags.out, how)
    log.note_assumed_zone()
    raise Exit(code)
