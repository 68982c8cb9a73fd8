"""`aclog usage-index`.

Adds what is new in an access log to an index; and the access log of a command: its files, its times and gaps as
text.
"""

from pathlib import Path
from typing import Annotated

from aclog.cli.flags.common import (
    AccessesFlags,
    AuthorizerFlags,
    SourceFlags,
    check_one_stdin,
    stdin_among,
)
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.options import Group, Option

app = Group()


@app.command(name="usage-index")
def usage_index(
    source: SourceFlags,
    accesses: AccessesFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    index: Annotated[
        Path,
        Option("--index", metavar="DIR", help="The index; a new or empty directory becomes one.", show_default=False),
    ],
) -> None:
    """Add new access-log entries to the last-used index, which `aclog unused` reads for any window of days.

    Entries are identified by the content of the files: a file that was rotated,
    compressed or copied counts once, and only the new part of a file that has
    grown is read. A run is atomic. With --log, each access is judged by the ACLs
    of its own time. Exit code 0, also without new entries.

    [bold]Examples[/]

      aclog usage-index --accesses /var/log/kafka --log DIR --index usage
      aclog usage-index --accesses 'logs/kafka-authorizer.log*' --acls acls.jsonl --index usage
      aclog unused --log DIR --index usage --days 90
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.index_update import update_index
    from aclog.ops.policies import settings_of

    check_one_stdin({**source.files(), **stdin_among(accesses.accesses)})
    update_index(source, accesses, settings_of(authorizer), index, output.choose(), configs=authorizer.configs())
