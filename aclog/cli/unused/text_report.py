"""The answers for people: each apart, some of its rules, and how many more there are."""

from collections.abc import Iterator

import numpy as np

from aclog.authorizer.acl import StandardAclWithId
from aclog.cli.region_columns import rule_text
from aclog.cli.unused_wording import silence_text, time_of, unjudged_text, unread_text
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.answer import Answer
from aclog.usage.index.last_use import EVENTS
from aclog.usage.unused.unused import Unused
from aclog.usage.unused_report import UnusedReport

_SHOWN = 10
"""Rules of each answer, and holes."""
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


def text_lines(report: UnusedReport) -> Iterator[str]:
    """Yield the lines."""
    found = report.unused
    brokers = ", ".join("unnamed" if each is None else each for each in report.expected) or "none"
    yield f"{time_of(found.window.start)} to {time_of(found.window.until)}; brokers: {brokers}"
    for silence in found.silences[:_SHOWN]:
        yield f"hole: {silence_text(silence)}"
    yield from _more(len(found.silences), "holes")
    if found.unread:
        yield f"not judged: {unread_text(found.unread)}"
    yield ""
    yield f"{'ACLs':>9}  {'can go':>9}  answer"
    for answer in Answer:
        chosen = found.judgement.is_(answer)
        yield f"{int(chosen.sum()):>9,}  {int(found.removable[chosen].sum()):>9,}  {_HEADS[answer].split(':')[0]}"
    if found.removable.any():
        yield "All that can go can go together: no access of the window would be decided otherwise."
    for answer in Answer:
        chosen = found.judgement.is_(answer)
        if chosen.any():
            yield ""
            yield f"{_HEADS[answer]}:"
            yield from _lines_of(report, answer, chosen)
            yield from _more(int(chosen.sum()), "ACLs")


def _lines_of(report: UnusedReport, answer: Answer, chosen: Bools) -> Iterator[str]:
    found = report.unused
    if answer is Answer.NEEDED:
        yield from _needed(report, np.flatnonzero(chosen))
        return
    for number, rule in _first(found, chosen):
        if answer is Answer.NOT_JUDGED:
            yield f"  {_text(rule)}: {unjudged_text(found, number)}"
        elif found.removable[number]:
            yield f"  {_text(rule)}"
        else:
            yield f"  {_text(rule)}: stays: what goes would leave an access without it"


def _needed(report: UnusedReport, numbers: Int64s) -> Iterator[str]:
    numbers = numbers if len(numbers) <= _LOOKED_UP else numbers[:_SHOWN]
    lives = report.unused.lives.number[numbers]
    last_use = report.index.last_use(np.sort(lives))
    uses = sorted(
        (use, number)
        for number, life in zip(numbers.tolist(), lives.tolist(), strict=True)
        if (use := last_use.use(life, _LAST_NEEDED)) is not None
    )
    for use, number in uses[:_SHOWN]:
        rule = report.unused.rules.rule(number)
        yield f"  {_text(rule)}: last at {time_of(use.time)} by {use.principal} from {use.host}"


def _first(found: Unused, chosen: Bools) -> list[tuple[int, StandardAclWithId]]:
    """Return some rules: if there are not too many to be sorted, the first."""
    numbers = np.flatnonzero(chosen)
    few = numbers[: _SORTED if len(numbers) <= _SORTED else _SHOWN].tolist()
    rules = sorted(((number, found.rules.rule(number)) for number in few), key=lambda each: _order(each[1]))
    return rules[:_SHOWN]


def _order(rule: StandardAclWithId) -> tuple[str, ...]:
    return tuple(str(value) for value in rule.to_dict().values())


def _text(rule: StandardAclWithId) -> str:
    return rule_text(rule.to_dict())


def _more(count: int, what: str) -> Iterator[str]:
    if count > _SHOWN:
        yield f"  ... and {count - _SHOWN:,} more {what}: --format jsonl"
