"""`aclog unused`: ACLs that no access needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attrs import field, frozen
from click.exceptions import Exit

from aclog.cli.flags.common import Gap, ReplayFlags, SourceFlags, gap_us, given_accesses, window_end
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.options import Group, Option
from aclog.usage.window import check_days, micros_of

if TYPE_CHECKING:
    from aclog.usage.unused_report import UnusedQuestion

# The flags of `aclog unused` besides the source.


@frozen(kw_only=True)
class UnusedFlags:
    """The index, the window, and what counts as a gap."""

    index: Annotated[
        Path,
        Option("--index", metavar="DIR", help="The index that [cyan]aclog usage-index[/] keeps.", show_default=False),
    ]
    days: Annotated[
        int,
        Option("--days", metavar="N", min=1, help="The length of the window, in whole days (UTC)."),
    ] = 90
    until: Annotated[
        str | None,
        Option("--until", metavar="TIME", help="The end of the window.", show_default="the latest access"),
    ] = None
    gap: Gap = "1d"
    ignore_broker: Annotated[
        list[str],
        Option(
            "--ignore-broker",
            metavar="ID",
            help="A broker that was removed or does not log: its silence is not a gap; [cyan]none[/] means lines "
            "without a broker. Can be repeated.",
        ),
    ] = field(factory=list)
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="FILE",
            help="Write the removal of all removable rules as a change for [cyan]--change[/].",
            show_default=False,
        ),
    ] = None

    def question(self) -> "UnusedQuestion":
        """Return the window, and what counts as a gap. Raises ConfigError: a flag is not valid."""
        from aclog.usage.unused_report import UnusedQuestion

        check_days(self.days)
        until = window_end(self.until)
        end = None if until is None else micros_of(until)
        return UnusedQuestion(days=self.days, gap=gap_us(self.gap), until=end, ignored=self.ignore_broker)


# `aclog unused`: the rules that no access needed, and those of them that can be removed together.


app = Group()


@app.command()
def unused(source: SourceFlags, flags: UnusedFlags, proof: ReplayFlags, output: AnswerFlags) -> None:
    """List the rules that no access matched, those that matched but were never needed, and those that were needed.

    The index records by day which rules accesses matched and needed. A rule is
    "never" used only if it was in force in the whole window and every broker
    logged throughout; otherwise it is not judged, and the report names the
    reason. All removable rules can be removed at once: no access of the window
    would be decided differently, by the rules of its time or by the current ones;
    --accesses proves this over a log. Exit code 1 if there are unused rules, 0 if
    not, 2 for bad input.

    [bold]Examples[/]

      aclog unused --log DIR --index usage --days 90
      aclog unused --log DIR --index usage --days 90 --out change.jsonl
      aclog unused --log DIR --index usage --accesses /var/log/kafka
      aclog diff --log DIR --change change.jsonl
      aclog unused --log DIR --index usage --ignore-broker 3 --format jsonl
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.usage_report import print_unused
    from aclog.ops.unused import prove, unused_acls
    from aclog.usage.index.usage_index import UsageIndex

    how, log = output.choose(), given_accesses(proof)
    question = flags.question()
    with UsageIndex.open(flags.index) as index:
        choice = source.choose()
        report = unused_acls(index, choice, question)
        if log is not None:
            prove(report, choice, log)
        raise Exit(print_unused(report, flags.out, how))
