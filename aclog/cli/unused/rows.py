"""A row for each rule: what it is, the answer, how often and when it was used, and why it is not judged."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from aclog.cli.rule_columns import RULE_COLUMNS
from aclog.cli.unused.wording import unjudged_text
from aclog.terminal.columns import Column, Row
from aclog.terminal.timestamps import time_text
from aclog.usage.index.last_use import EVENTS, Use
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

_KEYS = ("firstMatched", "lastMatched", "firstNeeded", "lastNeeded")
"""Of EVENTS."""
_BLOCK = 1 << 14
"""Rules whose uses are read together."""


def unused_rows(report: UnusedReport) -> Iterator[Row]:
    """Yield the rows, in the order of `acls list`."""
    found, used = report.unused, report.used
    judgement, numbers = found.judgement, found.lives.number
    numbered = found.rules.in_text_order()
    while block := list(islice(numbered, _BLOCK)):
        last_use = report.last_use([number for number, _ in block])
        for number, rule in block:
            life = int(numbers[number])
            at = int(np.searchsorted(used.numbers, life)) if life >= 0 else len(used)
            known = at < len(used) and used.numbers[at] == life
            counts = (used.matched, used.needed, used.days_matched, used.days_needed)
            matched, needed, days_matched, days_needed = (int(each[at]) if known else 0 for each in counts)
            row: dict[str, Any] = {
                **rule.to_dict(),
                "answer": ANSWERS[judgement.answer[number]].value,
                "matched": matched,
                "needed": needed,
                "removable": bool(found.removable[number]),
                "daysMatched": days_matched,
                "daysNeeded": days_needed,
            }
            for event, key in zip(range(len(EVENTS)), _KEYS, strict=True):
                use = None if life < 0 else last_use.use(life, event)
                row[key] = None if use is None else _use_object(use)
            yield {**row, "reason": unjudged_text(found, number) or None}


def _use_object(use: Use) -> dict[str, Any]:
    return {"timestamp": use.time // 1000, "principal": use.principal, "host": use.host}
