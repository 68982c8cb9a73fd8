"""`aclog coverage`: which brokers and hours an access log holds, and where it has holes."""

import typer

from aclog.cli.coverage.flags import CoverageFlags
from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.groups import with_flags

app = typer.Typer()


@app.command()
@with_flags
def coverage(flags: CoverageFlags, output: AnswerFlags) -> None:
    """Show when each broker logged anything, in an access log or in an index of last use, and where it has holes.

    What happened in a hole, nobody knows: no rule is called unused for a
    window with one. A broker is expected to log from the first line of any
    broker to the last. What could not be read or decided is counted by
    principal, since rules that it may need are not judged either. Exit code 1
    if there are holes, or such accesses.

    [bold]Examples[/]

      aclog coverage --accesses /var/log/kafka
      aclog coverage --index usage --gap 6h --format jsonl
    """
    from aclog.cli.coverage.report import print_coverage

    raise typer.Exit(print_coverage(flags, output.choose()))
