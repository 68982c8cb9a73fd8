"""The usage of each ACL by the accesses of a window, and as a table."""

from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.answer import Answer
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER
from aclog.usage.decisions.rules import Rules


@frozen(eq=False, kw_only=True)
class RuleUsage:
    """The usage of ACLs, by ordinal; times in us since 1970, null if there is none."""

    throughout: Bools
    """In force in the whole window; the others are not assessed."""
    matched: Int64s
    needed: Int64s
    last_matched: Any
    last_needed: Any
    last_needed_by: Any
    removable: Bools
    unread: Int64s
    """Accesses that could not be read or decided and may have needed the ACL."""
    concerned: Bools
    """Whether there may be any: their number may be unknown."""


def rule_table(rules: Rules, found: RuleUsage) -> pa.Table:
    """Return a row for each ACL, by ordinal."""
    intervals = rules.intervals
    times = {
        "in_force_from": _times(intervals.visible_from * 1000, intervals.visible_from == ALWAYS),
        "in_force_to": _times(intervals.visible_to * 1000, intervals.visible_to == FOREVER),
    }
    return pa.table(
        {
            **{name: rules.table.column(name) for name in rules.table.schema.names},
            **times,
            "answer": _answers(found),
            "matched": found.matched,
            "needed": found.needed,
            "last_matched_at": found.last_matched.cast(_TIMESTAMP),
            "last_needed_at": found.last_needed.cast(_TIMESTAMP),
            "last_needed_by": found.last_needed_by,
            "removable": found.removable,
            "unread": found.unread,
        }
    )


_TIMESTAMP = pa.timestamp("us", tz="UTC")


def _times(micros: Int64s, none: Bools) -> Any:
    return pa.array(np.where(none, 0, micros), pa.int64(), mask=none).cast(_TIMESTAMP)


def _answers(found: RuleUsage) -> Any:
    answers = list(Answer)
    number = np.select(
        [~found.throughout, found.needed > 0, found.concerned, found.matched > 0],
        [answers.index(each) for each in (Answer.NOT_JUDGED, Answer.NEEDED, Answer.NOT_JUDGED, Answer.NEVER_NEEDED)],
        answers.index(Answer.NEVER_MATCHED),
    )
    return pa.array([answer.value for answer in answers]).take(pa.array(number))
