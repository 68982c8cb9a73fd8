"""`aclog accesses unused`: ACLs that no access needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from attrs import field
from click.exceptions import Exit

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import Action
from aclog.cli.flags.accesses import Gap, ReplayFlags, gap_us, given_accesses, window_end
from aclog.cli.flags.common import Output, check_one_stdin, stdin_among
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.images import RULE_COLUMNS
from aclog.cli.options import Group, Option
from aclog.cli.transfer.output import safe_order, write_change_file
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import noun, printable
from aclog.metalog.values import frozen
from aclog.ops.tables import rule_text
from aclog.ops.unused import brokers_text, silence_text, time_of, unused_objects, why_unjudged
from aclog.sources.acl_lines import change_line
from aclog.terminal.columns import Column
from aclog.terminal.notices import tracked
from aclog.terminal.output import note, optional_time_text, say
from aclog.usage.index.used import EVENTS
from aclog.usage.unused import Answer, Unused
from aclog.usage.window import check_days, micros_of, unread_text

if TYPE_CHECKING:
    from aclog.usage.unused_report import UnusedQuestion, UnusedReport

# The flags of `aclog accesses unused` besides the source.


@frozen(kw_only=True)
class UnusedFlags:
    """The index, the window, and what counts as a gap."""

    index: Annotated[
        str,
        Option(
            "--index",
            metavar="DIR",
            help="The index that the command [cyan]aclog accesses index[/] writes; or s3://BUCKET/PREFIX or abfss://...",
            show_default=False,
            if_missing="`aclog accesses usage --days N` needs an access log only; `aclog accesses index` makes one",
        ),
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


# `aclog accesses unused`: the rules that no access needed, and those of them that can be removed together.


app = Group()


@app.command()
def unused(source: SourceFlags, flags: UnusedFlags, proof: ReplayFlags, output: AnswerFlags) -> None:
    """Report for each ACL whether no access matched it, it made no difference, or it was needed.

    The index records by day which rules accesses matched and needed. A rule is
    reported as never used only if it was in force in the whole window and every
    broker logged throughout; otherwise it is not judged, and the report names the
    reason. All removable rules can be removed at once: no access of the window
    would be decided differently, by the rules of its time or by the current ones;
    --accesses proves this over a log. Exit code 1 if there are unused rules, 0 if
    not, 2 for bad input.

    [bold]Examples[/]

      aclog accesses unused --log DIR --index usage --days 90
      aclog accesses unused --log DIR --index usage --days 90 --out change.jsonl
      aclog accesses unused --log DIR --index usage --accesses /var/log/kafka
      aclog diff --log DIR --change change.jsonl
      aclog accesses unused --log DIR --index usage --ignore-broker 3 --format jsonl
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.ops.unused import prove, unused_acls
    from aclog.usage.index.stored import reading_index

    check_one_stdin({**source.files(), **stdin_among(proof.accesses)})
    how, log = output.choose(), given_accesses(proof)
    question = flags.question()
    with reading_index(flags.index) as index:
        choice = source.choose()
        report = unused_acls(index, choice, question)
        if log is not None:
            prove(report, choice, log)
        raise Exit(print_unused(report, flags.out, how))


# The report of `aclog accesses unused`: a row for each rule, with the answer, its uses, and why it is not judged.


UNREAD_COLUMN = Column(key="unread", spare=True)
"""If there is anything that could not be read or decided."""


UNUSED_COLUMNS = (
    Column(key="answer"),
    *RULE_COLUMNS,
    Column(key="matched"),
    Column(key="needed"),
    Column(key="removable"),
    Column(key="daysMatched", spare=True),
    Column(key="daysNeeded", spare=True),
    Column(key="firstMatched.timestamp", spare=True, text=optional_time_text),
    Column(key="lastMatched.timestamp", spare=True, text=optional_time_text),
    Column(key="firstNeeded.timestamp", spare=True, text=optional_time_text),
    Column(key="lastNeeded.timestamp", spare=True, text=optional_time_text),
    Column(key="lastNeeded.principal", cut=True, spare=True),
    Column(key="lastNeeded.host", spare=True),
    Column(key="reason", flows=True),
)
"""Of a rule."""


# The answers for people: each apart, some of its rules, and how many more there are.


_MAX_RULES = 10
"""Rules of each answer, and gaps."""
_SORTED = 1_000
"""Up to so many rules of an answer, those that are shown are the first by name."""
_LOOKED_UP = 20_000
"""Up to so many needed rules, those that are shown are the ones whose last need is longest ago."""
_LAST_NEEDED = EVENTS.index("last needed")

_HEADS = {
    Answer.NEVER_MATCHED: "never matched: no access matched the ACL",
    Answer.NEVER_NEEDED: "matched, never needed: each access would have been decided the same without the ACL",
    Answer.NEEDED: "needed",
    Answer.NOT_JUDGED: "not judged",
}


def unused_lines(report: "UnusedReport") -> Iterator[str]:
    """Yield the lines."""
    result = report.unused
    yield f"window: {time_of(result.window.start)} to {time_of(result.window.until)}; {brokers_text(report)}"
    for silence in result.silences[:_MAX_RULES]:
        yield f"gap: {silence_text(silence)}"
    yield from _more(len(result.silences), "gap")
    if result.silences:
        yield "with a gap in the window, no ACL is reported as unused"
    if result.unread:
        yield f"not judged: {unread_text(result.unread)}"
    yield ""
    yield f"{'ACLs':>9}  {'removable':>9}  verdict"
    for answer in Answer:
        mask = result.judgement.is_(answer)
        yield f"{int(mask.sum()):>9,}  {int(result.removable[mask].sum()):>9,}  {_HEADS[answer].split(':')[0]}"
    if result.removable.any():
        yield "All removable ACLs can be removed together: no access of the window would be decided differently."
    for answer in Answer:
        mask = result.judgement.is_(answer)
        if mask.any():
            yield ""
            yield f"{_HEADS[answer]}:"
            yield from _lines_of(report, answer, mask)
            yield from _more(int(mask.sum()), "ACL")


def _lines_of(report: "UnusedReport", answer: Answer, mask: Bools) -> Iterator[str]:
    result = report.unused
    if answer is Answer.NEEDED:
        yield from _needed(report, np.flatnonzero(mask))
        return
    too = " as well" if result.removable.any() else ""
    for number, rule in _first(result, mask):
        if answer is Answer.NOT_JUDGED:
            yield f"  {_text(rule)}: {why_unjudged(result, number)}"
        elif result.removable[number]:
            yield f"  {_text(rule)}"
        else:
            yield f"  {_text(rule)}: kept, since removing it{too} could change a decision"


def _needed(report: "UnusedReport", numbers: Int64s) -> Iterator[str]:
    # To sort them by their last need, the index looks each up: of very many, any few are shown.
    numbers = numbers if len(numbers) <= _LOOKED_UP else numbers[:_MAX_RULES]
    lives = report.unused.lives.number[numbers]
    last_use = report.index.last_use(np.sort(lives))
    uses = sorted(
        (use, number)
        for number, life in zip(numbers.tolist(), lives.tolist(), strict=True)
        if (use := last_use.use(life, _LAST_NEEDED)) is not None
    )
    for use, number in uses[:_MAX_RULES]:
        rule = report.unused.rules.rule(number)
        yield f"  {_text(rule)}: last at {time_of(use.time)} by {use.principal} from {use.host}"


def _first(result: Unused, mask: Bools) -> list[tuple[int, StandardAclWithId]]:
    """Return some rules: if there are not too many to be sorted, the first."""
    numbers = np.flatnonzero(mask)
    few = numbers[: _SORTED if len(numbers) <= _SORTED else _MAX_RULES].tolist()
    rules = sorted(((number, result.rules.rule(number)) for number in few), key=lambda each: _order(each[1]))
    return rules[:_MAX_RULES]


def _order(rule: StandardAclWithId) -> tuple[str, ...]:
    return tuple(str(value) for value in rule.to_dict().values())


def _text(rule: StandardAclWithId) -> str:
    return rule_text(rule.to_dict())


def _more(count: int, what: str) -> Iterator[str]:
    if count > _MAX_RULES:
        yield f"  ... and {count - _MAX_RULES:,} more {noun(count - _MAX_RULES, what)}: --format jsonl"


def print_unused(report: "UnusedReport", out: Path | None, output: Output) -> int:
    """Print the answers about the rules of a source; write the removal of all removable ones to `out`.

    Returns the exit code: 1 if there are unused rules.

    Raises:
        ConfigError: `out` names a file with other content. OSError: it cannot be written.

    """
    if out is not None:
        _write_removals(out, report)
    if output.is_rows:
        rows = tracked(unused_objects(report), "listing", "ACLs", len(report.unused.rules), streams=True)
        more = (UNREAD_COLUMN,) if report.unused.unread else ()
        output.print_rows((*UNUSED_COLUMNS[:-1], *more, UNUSED_COLUMNS[-1]), rows)
    else:
        for line in unused_lines(report):
            say(printable(line))
    return int(report.unused.judgement.unused.any())


def _write_removals(path: Path, report: "UnusedReport") -> None:
    numbered = tracked(report.unused.rules.in_text_order(report.unused.removable), "writing the change", "ACLs")
    rules = [rule for _, rule in numbered]
    # DENY last, so that nothing opens between two removals.
    rules.sort(key=lambda rule: safe_order(rule.acl, added=False))
    state = write_change_file(path, (change_line(Action.REMOVE, rule.to_dict()) for rule in rules), "--out")
    note(f"{path}: {state}: {len(rules):,} removals, for --change")
