"""`aclog accesses simulate`: accesses of a log that other ACLs would decide differently."""

from typing import Annotated

from click.exceptions import Exit

from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import AuthorizerFlags, OutputFlags, format_option, stdin_among
from aclog.cli.flags.many_requests import SecondSettingsFlags, SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group
from aclog.terminal.columns import ROW_FORMATS, OutputFormat

app = Group()


@app.command()
def simulate(
    source: SourceFlags,
    target: SecondStateFlags,
    accesses: AccessesFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: OutputFlags,
    format_: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT, *ROW_FORMATS, default="text", help="A summary, or a row for each access that changes."
        ),
    ] = None,
) -> None:
    """Show which logged accesses would be decided differently by a second set of rules.

    GAINED: denied before, allowed after; LOST: the reverse. BROKEN: decided before,
    after the change Kafka's authorizer throws, such as for an ACL whose principal
    has no colon; MENDED: the reverse. SAME: no difference. NOT_JUDGED: the access
    could not be read or decided, so its decision may differ. `aclog diff` covers all requests, not only those in a
    log. Exit code 0 if all are the same, 1 if not, 2 for bad input.

    [bold]Examples[/]

      aclog accesses simulate --accesses /var/log/kafka --log DIR --change removals.jsonl
      aclog accesses simulate --accesses accesses.parquet --acls old.jsonl --to-acls new.jsonl
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.diff_report import SideFlags
    from aclog.cli.usage_report import report_simulation
    from aclog.ops.usage import simulate as simulate_accesses

    how = output.choose(format_, pipe=OutputFormat.TEXT)
    sides = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    sides.check(stdin_among(accesses.accesses))
    raise Exit(
        report_simulation(
            simulate_accesses(accesses.open(), sides.states()),
            how,
        )
    )
