"""`aclog accesses usage`: ACLs that an access log needs, and those that it does not."""

from typing import Annotated

from aclog.cli.flags.accesses import AccessesFlags, JudgedWindowFlags, window_end
from aclog.cli.flags.common import AuthorizerFlags, OutputFlags, check_one_stdin, format_option, stdin_among
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group
from aclog.terminal.columns import ROW_FORMATS, OutputFormat

app = Group()


@app.command()
def usage(
    source: SourceFlags,
    accesses: AccessesFlags,
    window: JudgedWindowFlags,
    authorizer: AuthorizerFlags,
    output: OutputFlags,
    format_: Annotated[
        OutputFormat | None,
        format_option(OutputFormat.TEXT, *ROW_FORMATS, default="text", help="A summary, or a row for each ACL."),
    ] = None,
) -> None:
    """Report which ACLs were needed by the accesses of a log, and which could be removed.

    An ACL is NEVER_MATCHED, NEVER_NEEDED (every access is decided the same
    without it), NEEDED, or NOT_JUDGED: it was not in force for the entire window,
    or accesses that it may have allowed could not be read. All removable ACLs can
    be removed together. With --log, each access is judged by the ACLs of its own
    time, and by the present ones. Without --days, the window has 90 days; if all
    ACLs are younger, it is the longest in which an ACL can be judged.

    [bold]Examples[/]

      aclog accesses usage --accesses /var/log/kafka --log DIR --days 90
      aclog accesses usage --accesses 'logs/kafka-authorizer.log*' --acls acls.jsonl --format jsonl
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.usage_report import report_usage
    from aclog.ops.policies import settings_of
    from aclog.ops.usage import use_of_acls

    how, settings = output.choose(format_, pipe=OutputFormat.TEXT), settings_of(authorizer)
    check_one_stdin({**source.files(), **stdin_among(accesses.accesses)})
    until, log = window_end(window.until), accesses.open()
    report_usage(use_of_acls(log, source.choose(), settings, window.days, until, authorizer.configs()), how)
    log.note_assumed_zone()
