"""`aclog unused`: ACLs that no access needs."""

from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from attrs import field, frozen
from click.exceptions import Exit

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.settings import SUPER_USERS_CONFIG
from aclog.cli.answers import rule_text
from aclog.cli.flags.common import (
    AccessesFlags,
    Gap,
    Output,
    ReplayFlags,
    SourceFlags,
    gap_us,
    given_accesses,
    window_end,
)
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.images import RULE_COLUMNS
from aclog.cli.options import Group, Option
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import plural, printable
from aclog.ops.policies import read_premises
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import tracked
from aclog.terminal.output import note, say, time_text
from aclog.usage.index.used import EVENTS, LastUse, Used
from aclog.usage.unused import ANSWERS, Answer, Silence, StateRules, Unjudged, Unused
from aclog.usage.window import check_days, micros_of, unread_text

if TYPE_CHECKING:
    from aclog.usage.unused_report import UnusedQuestion, UnusedReport

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
    raise Exit(print_unused(source, flags, given_accesses(proof), output.choose()))


# A row for each rule: what it is, the answer, how often and when it was used, and why it is not judged.


def _time_text(timestamp: int | None) -> str:
    return "" if timestamp is None else time_text(timestamp)


UNUSED_COLUMNS = (
    Column(key="answer"),
    *RULE_COLUMNS,
    Column(key="matched"),
    Column(key="needed"),
    Column(key="removable"),
    Column(key="daysMatched", spare=True),
    Column(key="daysNeeded", spare=True),
    Column(key="firstMatched.timestamp", spare=True, text=_time_text),
    Column(key="lastMatched.timestamp", spare=True, text=_time_text),
    Column(key="firstNeeded.timestamp", spare=True, text=_time_text),
    Column(key="lastNeeded.timestamp", spare=True, text=_time_text),
    Column(key="lastNeeded.principal", cut=True, spare=True),
    Column(key="lastNeeded.host", spare=True),
    Column(key="reason", flows=True),
)
"""Of a rule."""
UNREAD_COLUMN = Column(key="unread", spare=True)
"""If there is anything that could not be read or decided."""

_KEYS = ("firstMatched", "lastMatched", "firstNeeded", "lastNeeded")
"""Of EVENTS."""
_BLOCK = 1 << 14
"""Rules whose uses are read together."""


def unused_rows(report: "UnusedReport") -> Iterator[Row]:
    """Yield the rows, in the order of `acls list`."""
    result, used = report.unused, report.used
    last_use = report.last_use(np.arange(len(result.rules)))  # all at once: names are in another order than lives
    numbered = result.rules.in_text_order()
    while block := list(islice(numbered, _BLOCK)):
        lives = result.lives.number[[number for number, _ in block]]
        counts = _counts(used, lives)
        uses = zip(*(_uses(last_use, lives, event) for event in range(len(EVENTS))), strict=True)
        for (number, rule), count, use in zip(block, counts, uses, strict=True):
            row: dict[str, Any] = {
                **rule.to_dict(),
                "answer": ANSWERS[result.judgement.answer[number]].value,
                "matched": count[0],
                "needed": count[1],
                "removable": bool(result.removable[number]),
                **({"unread": int(result.unread_counts[number])} if result.unread else {}),
                "daysMatched": count[2],
                "daysNeeded": count[3],
                **dict(zip(_KEYS, use, strict=True)),
            }
            yield {**row, "reason": unjudged_text(result, number) or None}


def _counts(used: Used, lives: Int64s) -> list[tuple[int, int, int, int]]:
    """Return matched, needed, and the days of both, of each life; zeros for -1."""
    columns = (used.matched, used.needed, used.days_matched, used.days_needed)
    if not len(used):
        return [(0, 0, 0, 0)] * len(lives)
    at = np.minimum(np.searchsorted(used.numbers, lives), len(used) - 1)
    present = used.numbers[at] == lives
    return list(zip(*(np.where(present, column[at], 0).tolist() for column in columns), strict=True))


def _uses(last_use: LastUse, lives: Int64s, event: int) -> Iterator[dict[str, Any] | None]:
    """Yield an event of each life, None if it has not had it."""
    if not len(last_use.numbers):
        yield from repeat(None, len(lives))
        return
    at = np.minimum(np.searchsorted(last_use.numbers, lives), len(last_use.numbers) - 1)
    who = np.where(last_use.numbers[at] == lives, last_use.who[event, at], -1)
    for user, time in zip(who.tolist(), last_use.times[event, at].tolist(), strict=True):
        if user < 0:
            yield None
        else:
            principal, host = last_use.users[user]
            yield {"timestamp": time // 1000, "principal": principal, "host": host}


# The answers for people: each apart, some of its rules, and how many more there are.


_MAX_RULES = 10
"""Rules of each answer, and gaps."""
_SORTED = 1_000
"""Up to so many rules of an answer, those that are shown are the first by name."""
_LOOKED_UP = 20_000
"""Up to so many needed rules, those that are shown are the ones whose last need is longest ago."""
_LAST_NEEDED = EVENTS.index("last needed")

_HEADS = {
    Answer.NEVER_MATCHED: "never matched: no access was about what it covers",
    Answer.NEVER_NEEDED: "matched, never needed: each access would have been decided the same without it",
    Answer.NEEDED: "needed",
    Answer.NOT_JUDGED: "not judged",
}


def text_lines(report: "UnusedReport") -> Iterator[str]:
    """Yield the lines."""
    result = report.unused
    brokers = ", ".join("unnamed" if each is None else each for each in report.expected) or "none"
    yield f"{time_of(result.window.start)} to {time_of(result.window.until)}; brokers: {brokers}"
    for silence in result.silences[:_MAX_RULES]:
        yield f"gap: {silence_text(silence)}"
    yield from _more(len(result.silences), "gaps")
    if result.unread:
        yield f"not judged: {unread_text(result.unread)}"
    yield ""
    yield f"{'ACLs':>9}  {'can go':>9}  answer"
    for answer in Answer:
        mask = result.judgement.is_(answer)
        yield f"{int(mask.sum()):>9,}  {int(result.removable[mask].sum()):>9,}  {_HEADS[answer].split(':')[0]}"
    if result.removable.any():
        yield "All that can go can go together: no access of the window would be decided otherwise."
    for answer in Answer:
        mask = result.judgement.is_(answer)
        if mask.any():
            yield ""
            yield f"{_HEADS[answer]}:"
            yield from _lines_of(report, answer, mask)
            yield from _more(int(mask.sum()), "ACLs")


def _lines_of(report: "UnusedReport", answer: Answer, mask: Bools) -> Iterator[str]:
    result = report.unused
    if answer is Answer.NEEDED:
        yield from _needed(report, np.flatnonzero(mask))
        return
    for number, rule in _first(result, mask):
        if answer is Answer.NOT_JUDGED:
            yield f"  {_text(rule)}: {unjudged_text(result, number)}"
        elif result.removable[number]:
            yield f"  {_text(rule)}"
        else:
            yield f"  {_text(rule)}: stays: what goes would leave an access without it"


def _needed(report: "UnusedReport", numbers: Int64s) -> Iterator[str]:
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
        yield f"  ... and {count - _MAX_RULES:,} more {what}: --format jsonl"


# Finds the rules of a source that no access needed, and writes the removal of those that can be removed.


NONE, UNUSED = 0, 1
"""Exit codes."""


def print_unused(source: SourceFlags, flags: UnusedFlags, proof: AccessesFlags | None, output: Output) -> int:
    """Print the answers about the rules of a source; return the exit code. `proof`: a log to prove them over.

    Raises:
        ConfigError: flags that are not valid, an index that is damaged, of another cluster, or empty; or what can go
            would change a decision.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    from aclog.cli.extras import need_usage_extra

    need_usage_extra()
    from aclog.usage.index.usage_index import UsageIndex
    from aclog.usage.unused_report import UnusedReport

    question = _question(flags)
    with UsageIndex.open(flags.index) as index:
        choice = source.choose()
        if source.log is not None:
            from aclog.sources.logs import cluster_id_of

            index.check_cluster(cluster_id_of(source.log))
        report = UnusedReport.of(index, StateRules.of(choice.image().acls), question)
        unknown = read_premises(choice, index.settled_properties()).without({SUPER_USERS_CONFIG})
        if unknown:
            note(f"no ACL counts as removable: make the index anew, by aclog usage-index with {unknown.settled_by()}")
            report = report.without_removals()
        if proof is not None:
            from aclog.cli.extras import need_usage_extra
            from aclog.ops.usage import prove

            prove(report, choice, proof)
        if flags.out is not None:
            _write_change(flags.out, report)
        if output.is_rows:
            rows = tracked(unused_rows(report), "listing", "ACLs", len(report.unused.rules), streams=True)
            more = (UNREAD_COLUMN,) if report.unused.unread else ()
            output.print_rows((*UNUSED_COLUMNS[:-1], *more, UNUSED_COLUMNS[-1]), rows)
        else:
            for line in text_lines(report):
                say(printable(line))
    return UNUSED if report.unused.judgement.unused.any() else NONE


def _question(flags: UnusedFlags) -> "UnusedQuestion":
    check_days(flags.days)
    until = window_end(flags.until)
    end = None if until is None else micros_of(until)
    from aclog.usage.unused_report import UnusedQuestion

    return UnusedQuestion(days=flags.days, gap=gap_us(flags.gap), until=end, ignored=flags.ignore_broker)


def _write_change(path: Path, report: "UnusedReport") -> None:
    from aclog.authorizer.acls_image import Action
    from aclog.cli.transfer.output import safe_order, write_change_file
    from aclog.sources.acl_lines import change_line

    numbered = tracked(report.unused.rules.in_text_order(report.unused.removable), "writing the change", "ACLs")
    rules = [rule for _, rule in numbered]
    rules.sort(key=lambda rule: safe_order(rule.acl, added=False))
    state = write_change_file(path, (change_line(Action.REMOVE, rule.to_dict()) for rule in rules), "--out")
    note(f"{path}: {state}: {len(rules):,} removals, for --change")


# Times, silences and reasons in words.


def time_of(micros: int) -> str:
    """Return a time in us since 1970 as ISO 8601."""
    return time_text(micros // 1000)


def silence_text(silence: Silence) -> str:
    """Return which broker logged nothing, and when."""
    who = "no line that names no broker" if silence.broker is None else f"broker {silence.broker}: no line"
    if silence.since is None and silence.to is None:
        return f"{who} at all"
    if silence.since is None:
        return f"{who} before {time_of(silence.to or 0)}"
    return f"{who} after {time_of(silence.since)}" + ("" if silence.to is None else f" until {time_of(silence.to)}")


def unread_of_rule(count: int) -> str:
    """Return why a rule is not judged that so many accesses may have needed."""
    if not count:
        return "what an older aclog could not read of the log is not known: make a new index of it"
    return f"{count:,} accesses that may need it could not be read or decided"


def unjudged_text(result: Unused, number: int) -> str:
    """Return why a rule is not judged; nothing for one that is."""
    why = Unjudged(int(result.judgement.unjudged[number]))
    if why is Unjudged.NOT_INDEXED:
        return "the index has not seen it in force: update it with these rules"
    if why is Unjudged.YOUNG:
        return f"known since {time_of(int(result.lives.begin[number]))}: younger than the window"
    if why is Unjudged.SILENCE:
        others = len(result.silences) - 1
        more = f", and {plural(others, 'more gap')}" if others else ""
        return silence_text(result.silences[0]) + more
    if why is Unjudged.UNREAD:
        return unread_of_rule(int(result.unread_counts[number]))
    return ""
