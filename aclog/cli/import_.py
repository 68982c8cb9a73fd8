"""`aclog import`: an export, or ACLs as JSON lines, into a log."""

from typing import Annotated

from aclog.cli.app import writes_to_source
from aclog.cli.flags.common import KeepOddRules, TargetLog
from aclog.cli.options import Argument, Group, Option

app = Group()


@app.command(name="import")
@writes_to_source()
def import_(
    file: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="An export (Avro or JSON lines), or ACLs as JSON lines; - is stdin, gzip is detected.",
            show_default=False,
        ),
    ],
    log: TargetLog,
    history: Annotated[
        bool, Option("--history", metavar="", help="FILE is a history: replay its changes with their timestamps.")
    ] = False,
    force: Annotated[
        bool, Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False,
    keep_odd_rules: KeepOddRules = False,
) -> None:
    """Write ACLs, credentials, tokens and features into a log, atomically; a new directory becomes a new log.

    Ids are kept. ACLs that the log already has are left unchanged, and ACLs
    without an id receive one. An ACL that CreateAcls would reject is refused, and
    nothing is written: a log with such an ACL can make a Kafka node fail.

    [bold]Examples[/]

      aclog import state.avro --log new-log
      aclog acls list --log OLD --format jsonl | aclog import - --log NEW
    """
    from aclog.cli.images import WrittenRules
    from aclog.cli.transfer.transfer import import_history, import_state

    (import_history if history else import_state)(
        file, log, force=force, rules=WrittenRules(keep_odd_rules=keep_odd_rules)
    )
