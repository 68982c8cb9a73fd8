"""`aclog unused`: which rules nobody needs, and which of them can go together."""

import typer

from aclog.cli.flags.accesses import ReplayFlags, given_accesses
from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.unused.flags import UnusedFlags

app = typer.Typer()


@app.command()
@with_flags
def unused(source: SourceFlags, flags: UnusedFlags, proof: ReplayFlags, output: AnswerFlags) -> None:
    """List the rules that no access matched, those that matched but were never needed, and those that were needed.

    The index knows by day what accesses matched and needed. "Never" is said of
    a rule only if it was in force in the whole window, and every broker was
    heard all the while; else it is not judged, and the report says why. What
    can go can go together: no access of the window would be decided
    otherwise, by the rules of its time or of now; --accesses proves it over
    a log. Exit code 1 if there are unused rules, 0 if not, 2 for bad input.

    [bold]Examples[/]

      aclog unused --log DIR --index usage --days 90
      aclog unused --log DIR --index usage --days 90 --out change.jsonl
      aclog unused --log DIR --index usage --accesses /var/log/kafka
      aclog diff --log DIR --change change.jsonl
      aclog unused --log DIR --index usage --ignore-broker 3 --format jsonl
    """
    from aclog.cli.unused.report import print_unused

    raise typer.Exit(print_unused(source, flags, given_accesses(proof), output.choose()))
