"""`aclog accesses`: which rules the accesses of a log use."""

from aclog.cli.app import LazyCommand, LazyGroup
from aclog.cli.listing import ACCESSES, Line

app = LazyGroup(
    name="accesses",
    commands=[LazyCommand(name, Line(line), module=module) for name, (module, line) in ACCESSES.items()],
    help="""Which rules the accesses of a log use: usage, unused rules, denials, suggestions, what-if, coverage.

    An access log is a kafka-authorizer.log, or events in a table or a topic. The
    commands decide its accesses again, so that each names the rules that matter.

    [bold]Examples[/]

      aclog accesses usage DIR --accesses /var/log/kafka
      aclog accesses index DIR --accesses /var/log/kafka --index usage
      aclog accesses unused DIR --index usage --days 90
      aclog accesses denied DIR --accesses /var/log/kafka
    """,
    epilog="`usage` needs an access log only; `unused` needs an index, which `index` keeps.",
)
