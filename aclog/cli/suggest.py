"""`aclog suggest`: the least ACLs that keep what was used."""

from aclog.cli.flags.commands import SuggestFlags
from aclog.cli.flags.common import AccessesFlags, AuthorizerFlags, SourceFlags, WindowFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.options import Group

app = Group()


@app.command()
def suggest(
    source: SourceFlags,
    accesses: AccessesFlags,
    window: WindowFlags,
    authorizer: AuthorizerFlags,
    flags: SuggestFlags,
    output: AnswerFlags,
) -> None:
    """Suggest the least rules that keep every access of a log, and give nothing that the rules of now do not give.

    Every access of the window that a rule allows is allowed by the
    suggestion; no request that is denied now is. Both are proved before
    anything is printed. What was used by name stays by name; many names
    become a prefix where that grants little more. DENYs that overrule
    a suggested rule stay. --topics names topics that exist, used or not.

    [bold]Examples[/]

      aclog suggest --accesses /var/log/kafka --log DIR --days 90
      aclog suggest --accesses /var/log/kafka --log DIR --out want.jsonl
      aclog diff --log DIR --to-acls want.jsonl
      aclog suggest --accesses /var/log/kafka --log DIR --principal User:etl --explain
    """
    from aclog.cli.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.usage_report import print_suggestion
    from aclog.ops.policies import settings_of

    log = accesses, window
    print_suggestion(source, log, settings_of(authorizer), flags, output.choose(), configs=authorizer.configs())
