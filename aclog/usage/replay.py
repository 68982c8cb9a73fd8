"""The proof of a removal: every access of a log is decided again without the rules that go."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decision_codes import ALLOWED, DecisionCode
from aclog.usage.decisions.rules import Rules

RuleRow = tuple[str | None, ...]
"""The seven fields of a rule, and its id or None: the values of `StandardAclWithId.to_dict`."""


@frozen(eq=False, kw_only=True)
class Replay:
    """What came of it."""

    decided: int
    """Accesses, as often as they stand in the log."""
    flipped: pa.Table
    """The rows of the log's accesses (COUNTED) that are decided otherwise; none if the removal is sound."""


def replay(accesses: pa.Table, rules: Rules, gone: Sequence[RuleRow], settings: Settings, *, own_time: bool) -> Replay:
    """Decide accesses (COUNTED) with all rules and without those that are gone, and compare.

    By the rules in force at the time of each access, if `own_time`, and by the last ones. An access that Kafka's
    authorizer throws on, with all rules, is left out.
    """
    without = _without(rules, _is_gone(rules, gone))
    columns = [accesses.column(name).combine_chunks() for name in REQUEST_COLUMNS]
    times = [None, np.asarray(accesses.column("first"))] if own_time else [None]
    decided, flips = np.zeros(len(accesses), np.bool_), np.zeros(len(accesses), np.bool_)
    for at in times:
        before, is_decided = _allowed(rules, settings, columns, at)
        after, _ = _allowed(without, settings, columns, at)
        decided |= is_decided
        flips |= is_decided & (before != after)
    count = np.asarray(accesses.column("count"))
    return Replay(decided=int(count[decided].sum()), flipped=accesses.take(np.flatnonzero(flips)))


def _without(rules: Rules, gone: Bools) -> Rules:
    left, intervals = np.flatnonzero(~gone), rules.intervals
    table = rules.table.take(left)
    for name, times, missing in (
        ("visible_from", intervals.visible_from[left], ALWAYS),
        ("visible_to", intervals.visible_to[left], FOREVER),
    ):
        table = table.append_column(name, pa.array(times, mask=times == missing))
    known_from = None if intervals.known_from == ALWAYS else intervals.known_from
    return Rules.of_table(table, known_from=known_from).with_kafka(intervals.kafka)


def _is_gone(rules: Rules, gone: Sequence[RuleRow]) -> Bools:
    wanted = set(gone)
    rows = zip(*(rules.table.column(name).to_pylist() for name in rules.table.schema.names), strict=True)
    named = np.fromiter((row in wanted for row in rows), np.bool_, len(rules.table))
    found: Bools = named & (rules.intervals.visible_to == FOREVER)
    return found


def _allowed(rules: Rules, settings: Settings, columns: Sequence[Any], times: Int64s | None) -> tuple[Bools, Bools]:
    """Return which accesses are allowed, and which are decided at all."""
    codes = BulkAuthorizer.of(rules.intervals, settings).decide(columns, times)
    allows = np.asarray(rules.table.column("permissionType").to_numpy()) == "ALLOW"
    by_rule = np.zeros(len(codes), np.bool_)
    by_rule[codes >= 0] = allows[codes[codes >= 0]]
    return by_rule | np.isin(codes, list(ALLOWED)), codes >= DecisionCode.SUPER_USER
