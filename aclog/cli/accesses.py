"""`aclog accesses`: which rules the accesses of a log use."""

from aclog.cli.app import LazyCommand, LazyGroup
from aclog.cli.listing import ACCESSES, Line

app = LazyGroup(
    name="accesses",
    commands=[LazyCommand(name, Line(line), module=module) for name, (module, line) in ACCESSES.items()],
    help="""Compare the ACLs with the requests in an access log: use, denials, suggestions, what-if, coverage.

    An access log is a kafka-authorizer.log, or events in a table or a topic. The
    commands decide its accesses again, so that each names the rules that matter.

    [bold]Examples[/]

      aclog accesses usage DIR --accesses /var/log/kafka
      aclog accesses index DIR --accesses /var/log/kafka --index accesses-index
      aclog accesses unused DIR --index accesses-index --days 90
      aclog accesses denied DIR --accesses /var/log/kafka
    """,
    epilog="DIR has the ACLs: a log directory, such as a copy of __cluster_metadata-0. `usage` also needs an access "
    "log; `unused` an index, which `index` writes.",
)
