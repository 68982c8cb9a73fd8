"""A row for each rule: what it is, the answer, how often and when it was used, and why it is not judged."""

from collections.abc import Iterator
from itertools import islice, repeat
from typing import Any

import numpy as np

from aclog.cli.rule_columns import RULE_COLUMNS
from aclog.cli.unused_wording import unjudged_text
from aclog.metalog.vectors import Int64s
from aclog.terminal.columns import Column, Row
from aclog.terminal.timestamps import time_text
from aclog.usage.index.last_use import EVENTS, LastUse
from aclog.usage.index.used import Used
from aclog.usage.unused.judgement import ANSWERS
from aclog.usage.unused_report import UnusedReport


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


def unused_rows(report: UnusedReport) -> Iterator[Row]:
    """Yield the rows, in the order of `acls list`."""
    found, used = report.unused, report.used
    last_use = report.last_use(np.arange(len(found.rules)))  # all at once: names are in another order than lives
    numbered = found.rules.in_text_order()
    while block := list(islice(numbered, _BLOCK)):
        lives = found.lives.number[[number for number, _ in block]]
        counts = _counts(used, lives)
        uses = zip(*(_uses(last_use, lives, event) for event in range(len(EVENTS))), strict=True)
        for (number, rule), count, use in zip(block, counts, uses, strict=True):
            row: dict[str, Any] = {
                **rule.to_dict(),
                "answer": ANSWERS[found.judgement.answer[number]].value,
                "matched": count[0],
                "needed": count[1],
                "removable": bool(found.removable[number]),
                **({"unread": int(found.unread_counts[number])} if found.unread else {}),
                "daysMatched": count[2],
                "daysNeeded": count[3],
                **dict(zip(_KEYS, use, strict=True)),
            }
            yield {**row, "reason": unjudged_text(found, number) or None}


def _counts(used: Used, lives: Int64s) -> list[tuple[int, int, int, int]]:
    """Return matched, needed, and the days of both, of each life; zeros for -1."""
    columns = (used.matched, used.needed, used.days_matched, used.days_needed)
    if not len(used):
        return [(0, 0, 0, 0)] * len(lives)
    at = np.minimum(np.searchsorted(used.numbers, lives), len(used) - 1)
    known = used.numbers[at] == lives
    return list(zip(*(np.where(known, column[at], 0).tolist() for column in columns), strict=True))


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
