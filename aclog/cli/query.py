"""`aclog query`: SQL on the ACLs, changes, accesses and findings of a source."""

from typing import TYPE_CHECKING, Annotated

from attrs import field

from aclog.cli.flags.accesses import ACCESSES_PANEL, AccessesFormat, AccessesTimezone, given_accesses
from aclog.cli.flags.common import AuthorizerFlags, OutputFlags, format_option
from aclog.cli.flags.repository import choice_of_lint, settings_of_lint
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Argument, Group, Option
from aclog.metalog.values import frozen
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat

if TYPE_CHECKING:
    from aclog.ops.lint import Linted

app = Group()


@frozen(kw_only=True)
class QueryFlags:
    """The statement, and what the table of accesses is read from."""

    sql: Annotated[
        str,
        Argument(
            metavar="SQL",
            help="One SELECT on the tables acls, changes, accesses and findings.",
            show_default=False,
        ),
    ]
    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="The access log of the table accesses, in any form that [cyan]aclog accesses usage[/] reads; can be "
            "repeated.",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    memory_limit: Annotated[
        str,
        Option(
            "--memory-limit",
            metavar="SIZE",
            help="The most memory that DuckDB takes for the tables and the query: rows in transit are not in it.",
        ),
    ] = "2GB"

    @property
    def workers(self) -> int | None:
        """The default number of processes that read the accesses."""
        return None


@app.command()
def query(
    flags: QueryFlags,
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    output: OutputFlags,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """Run one SELECT of DuckDB's SQL on the tables of a source: acls, changes, accesses and findings.

    A table is read if its name occurs in the statement. changes needs a log,
    accesses needs --accesses, findings is what `aclog lint` finds. The columns
    have the keys of JSON; times are in UTC. In changes, endOffset is the first
    --as-of that includes the change; firstSeen is true if the ACL was in the
    checkpoint at the beginning of the log, so that the time when it was added is
    unknown. The statement reaches no file and no network, and changes nothing.
    Requires the extra `query`.

    [bold]Examples[/]

      aclog query "SELECT principal, count(*) n FROM acls GROUP BY ALL" DIR
      aclog query "FROM changes WHERE change = 'REMOVED'" DIR --format csv
      aclog query "FROM findings ORDER BY severity" kafka/
    """
    from aclog.ops.extras import need_query_extra

    need_query_extra()
    from aclog.ops.lint import lint_source
    from aclog.ops.query import QueriedSource, run_query

    how = output.choose(format_, pipe=OutputFormat.TABLE)
    topics = source.topics()
    choice = source.choose(topics=topics)

    def linted() -> "Linted":
        settings = settings_of_lint(authorizer)
        lint_choice, names = choice_of_lint(source, settings, choice, topics)
        return lint_source(lint_choice, settings, topics=names)

    accesses = given_accesses(flags)
    log = None if accesses is None else accesses.open()
    queried = QueriedSource(
        choice=choice,
        image=choice.image(),
        linted=linted,
        accesses=None if log is None else log.accesses,
    )
    result = run_query(flags.sql, queried.tables(), memory=flags.memory_limit)
    how.print_rows([Column(key=name, title=name) for name in result.columns], result.rows)
