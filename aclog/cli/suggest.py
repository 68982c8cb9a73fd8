"""`aclog accesses suggest`: the least ACLs that keep what was used."""

from aclog.cli.flags.accesses import AccessesFlags, WindowFlags
from aclog.cli.flags.commands import SuggestFlags
from aclog.cli.flags.common import AuthorizerFlags, check_one_stdin, stdin_among
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
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
    """Suggest the minimal rules that keep each allowed access of a log, and grant nothing beyond the current rules.

    The suggestion allows every access of the window that a current rule allows,
    and no request that is denied now. Both are proved before anything is printed.
    Names stay literal, except that many names of one principal become a prefix
    where this grants little more. DENY rules that restrict a suggested rule stay.
    --topics names the topics that exist, used or not.

    [bold]Examples[/]

      aclog accesses suggest --accesses /var/log/kafka --log DIR --days 90
      aclog accesses suggest --accesses /var/log/kafka --log DIR --out want.jsonl
      aclog diff --log DIR --to-acls want.jsonl
      aclog accesses suggest --accesses /var/log/kafka --log DIR --principal User:etl --explain
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.usage_report import print_suggestion
    from aclog.ops.policies import settings_of
    from aclog.ops.usage import suggest_least

    settings, how, topics = settings_of(authorizer), output.choose(), source.topics()
    options = flags.options(window, topics)
    check_one_stdin({**source.files(), **stdin_among(accesses.accesses)})
    log, choice = (
        accesses.open(),
        source.choose(topics=topics),
    )
    print_suggestion(suggest_least(log, choice, settings, options, authorizer.configs()), flags, how)
