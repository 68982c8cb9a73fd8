"""Simulation: the accesses of a log whose decisions change with other ACLs."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, ResourceType
from aclog.authorizer.index.layout import Int32s
from aclog.authorizer.settings import Settings, controllers_decide
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import frozen
from aclog.usage.accesses.access_batch import TIME_TYPE
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.access_columns import ParsedColumns, parse_columns
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import ALLOWED, REQUEST_COLUMNS, DecisionCode
from aclog.usage.decisions.intervals import ALWAYS, FOREVER, Rules
from aclog.usage.undecided import undecided
from aclog.usage.window import UnreadAccesses

# Simulation: the distinct accesses of a log whose decisions other ACLs, or other settings, would change.


_DECISIONS: Final = ("ALLOWED", "DENIED", "ERROR")


class Change(StrEnum):
    """How the decision on an access changes."""

    GAINED = "GAINED"
    """Denied before, allowed after."""
    LOST = "LOST"
    """Allowed before, denied after."""
    BROKEN = "BROKEN"
    """Decided before, an error after."""
    MENDED = "MENDED"
    """An error before, decided after."""


@frozen(eq=False, kw_only=True)
class Simulation:
    """The accesses whose decision changes, and the number of the others."""

    flips: pa.Table
    """A row for each distinct access whose decision changes: `change`; the five of the access; `count`, `first_at`,
    `last_at` (null without times); decision_before, rule_before, rule_id_before, and the same after."""
    same: int
    """The other accesses, repeated ones included."""
    unread: UnreadAccesses
    """Accesses that could not be read or decided, and may change: they are in neither."""
    states: tuple[Rules, Rules]
    """The ACLs before and after."""

    def by_controllers(self) -> Self:
        """Return the same of a change of controllers alone: what brokers decide is the same."""
        kinds = [ResourceType[str(name)] for name in self.flips.column("resourceType").to_pylist()]
        operations = [AclOperation[str(name)] for name in self.flips.column("operation").to_pylist()]
        decided = np.array(list(map(controllers_decide, kinds, operations)), np.bool_)
        others = int(np.asarray(self.flips.column("count"))[~decided].sum())
        return evolve(self, flips=self.flips.take(np.flatnonzero(decided)), same=self.same + others)


def simulate(
    counted: pa.Table,
    before: tuple[Rules, Settings],
    after: tuple[Rules, Settings],
    unread: UnreadAccesses | None = None,
) -> Simulation:
    """Decide distinct accesses (COUNTED, one row each) by two states; `unread` are the unread ones of the log."""
    parsed = parse_columns([counted.column(name) for name in REQUEST_COLUMNS])
    return simulation_of(counted, Decided.of(parsed, *before), Decided.of(parsed, *after), unread)


@frozen(eq=False, kw_only=True)
class Decided:
    """The decisions on accesses by one state."""

    rules: Rules
    settings: Settings
    codes: Int32s
    """Of each access."""

    @classmethod
    def of(
        cls, accesses: ParsedColumns, rules: Rules, settings: Settings, authorizer: BulkAuthorizer | None = None
    ) -> Self:
        """Decide distinct accesses by the last version of the ACLs. `authorizer`: one of these, if there is one."""
        codes = (authorizer or BulkAuthorizer.of(rules.intervals, settings)).decide_once(accesses)
        return cls(rules=rules, settings=settings, codes=codes)

    def decisions(self) -> Int64s:
        """Return the position in _DECISIONS of each decision."""
        place = np.full(len(self.codes), _DECISIONS.index("ERROR"), np.int64)
        place[self.codes >= DecisionCode.SUPER_USER] = _DECISIONS.index("DENIED")
        place[_allowed(self.rules, self.codes)] = _DECISIONS.index("ALLOWED")
        return place


def simulation_of(
    counted: pa.Table, first: Decided, second: Decided, unread: UnreadAccesses | None = None
) -> Simulation:
    """Compare the decisions on distinct accesses (COUNTED, one row each) by two states."""
    before, after = (first.rules, first.settings), (second.rules, second.settings)
    was, now = first.decisions(), second.decisions()
    # by decision, not by ACL: an access that another ACL decides the same way is unchanged
    codes = [first.codes, second.codes]
    by_unknown = np.logical_or(*(each == DecisionCode.UNKNOWN_KAFKA for each in codes))
    flipped = np.flatnonzero((was != now) & ~by_unknown)
    counts = np.asarray(counted.column("count"))
    rows = counted.take(pa.array(flipped, pa.int64()))
    changes = [_change(*pair) for pair in zip(was[flipped], now[flipped], strict=True)]
    columns: dict[str, Any] = {"change": pa.array(changes, pa.string())}
    columns |= {name: rows.column(name) for name in (*REQUEST_COLUMNS, "count")}
    timed = pc.less_equal(rows.column("first"), rows.column("last"))
    for name in ("first", "last"):
        columns[f"{name}_at"] = pc.if_else(timed, rows.column(name), pa.scalar(None, pa.int64())).cast(TIME_TYPE)
    for side, (rules, _), own in zip(("before", "after"), (before, after), codes, strict=True):
        texts = rules.texts_of(own[flipped])
        columns |= {f"{name}_{side}": text for name, text in zip(("decision", "rule", "rule_id"), texts, strict=True)}
    undecidable = np.where(by_unknown, np.int32(DecisionCode.UNKNOWN_KAFKA), codes[0])
    unknown = may_flip(undecided(counted, undecidable), before, after)
    return Simulation(
        flips=pa.table(columns),
        same=int(counts.sum() - counts[flipped].sum()) - unknown.total,
        unread=UnreadAccesses.sum_of((unknown, may_flip(unread or UnreadAccesses(), before, after))),
        states=(before[0], after[0]),
    )


def may_flip(unread: UnreadAccesses, before: tuple[Rules, Settings], after: tuple[Rules, Settings]) -> UnreadAccesses:
    """Return those to which an ACL may apply that only one state has: all others are decided the same."""
    (old, settings), (new, other) = before, after
    remaining = unread.but_of(settings.super_users & other.super_users)
    if not remaining or settings != other or old.intervals.kafka != new.intervals.kafka:
        return remaining
    changed = _rule_rows(old) ^ _rule_rows(new)
    who = {row[ACL_FIELDS.index("principal")] for row in changed}
    if not who or (not settings.allow_everyone and all(":" in name and name != WILDCARD_PRINCIPAL for name in who)):
        return remaining.of_principals(who) if who else UnreadAccesses()
    return remaining


def _rule_rows(rules: Rules) -> set[tuple[str, ...]]:
    columns: list[Any] = [rules.table.column(name).to_pylist() for name in ACL_FIELDS]
    return set(zip(*columns, strict=True))


def _change(before: int, after: int) -> str:
    was, now = _DECISIONS[before], _DECISIONS[after]
    if now == "ERROR":
        return Change.BROKEN
    if was == "ERROR":
        return Change.MENDED
    return Change.GAINED if now == "ALLOWED" else Change.LOST


# The proof of a removal: every access of a log is decided again without the removed ACLs.


RuleRow = tuple[str | None, ...]
"""The seven fields of an ACL, and its id or None: the values of `StandardAclWithId.to_dict`."""


@frozen(eq=False, kw_only=True)
class Replay:
    """The result of a replay."""

    decided: int
    """The number of accesses, including repeated ones."""
    flipped: pa.Table
    """The accesses of the log (COUNTED) that are decided differently; empty if the removal is sound."""
    codes: Int32s
    """The decision code of each access by all ACLs at the end of the log."""


def replay(
    accesses: pa.Table, rules: Rules, removed: Sequence[RuleRow], settings: Settings, *, own_time: bool
) -> Replay:
    """Decide accesses (COUNTED) with all ACLs and without the removed ones, and compare.

    By the ACLs in force at the time of each access, with `own_time`, and by the last ones. An access on which Kafka's
    authorizer throws with all ACLs is excluded.
    """
    without = _without(rules, _is_removed(rules, removed))
    columns = [accesses.column(name).combine_chunks() for name in REQUEST_COLUMNS]
    times = [None, np.asarray(accesses.column("first"))] if own_time else [None]
    decided, flips = np.zeros(len(accesses), np.bool_), np.zeros(len(accesses), np.bool_)
    codes = []
    for at in times:
        before, after = (BulkAuthorizer.of(each.intervals, settings).decide(columns, at) for each in (rules, without))
        is_decided = before >= DecisionCode.SUPER_USER
        decided |= is_decided
        flips |= is_decided & (_allowed(rules, before) != _allowed(without, after))
        codes.append(before)
    count = np.asarray(accesses.column("count"))
    return Replay(decided=int(count[decided].sum()), flipped=accesses.take(np.flatnonzero(flips)), codes=codes[0])


def _without(rules: Rules, removed: Bools) -> Rules:
    remaining, intervals = np.flatnonzero(~removed), rules.intervals
    table = rules.table.take(remaining)
    for name, times, missing in (
        ("visible_from", intervals.visible_from[remaining], ALWAYS),
        ("visible_to", intervals.visible_to[remaining], FOREVER),
    ):
        table = table.append_column(name, pa.array(times, mask=times == missing))
    known_from = None if intervals.known_from == ALWAYS else intervals.known_from
    return Rules.of_table(table, known_from=known_from).with_kafka(intervals.kafka)


def _is_removed(rules: Rules, removed: Sequence[RuleRow]) -> Bools:
    removed_rows = set(removed)
    rows = zip(*(rules.table.column(name).to_pylist() for name in rules.table.schema.names), strict=True)
    named = np.fromiter((row in removed_rows for row in rows), np.bool_, len(rules.table))
    is_removed: Bools = named & (rules.intervals.visible_to == FOREVER)
    return is_removed


def _allowed(rules: Rules, codes: Int32s) -> Bools:
    """Return which accesses are allowed, by their decision codes."""
    allows = np.asarray(rules.table.column("permissionType").to_numpy()) == "ALLOW"
    by_rule = np.zeros(len(codes), np.bool_)
    by_rule[codes >= 0] = allows[codes[codes >= 0]]
    return by_rule | np.isin(codes, list(ALLOWED))
