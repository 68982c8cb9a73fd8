"""The usage report: which ACLs an access log needed, and which it did not."""

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.counting import RowCounts, Tally, rules_to_keep
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer, NecessaryAcls
from aclog.usage.decisions.decisions import ERRORS, DecisionCode
from aclog.usage.decisions.intervals import ALWAYS, FOREVER, Rules, change_times
from aclog.usage.rules import WindowRules
from aclog.usage.undecided import undecided
from aclog.usage.unused import Answer, fewest_kept, keep_clauses
from aclog.usage.window import EPOCH, Counts, UnreadAccesses, Window, micros_of

# The usage of each ACL by the accesses of a window, and as a table.


@frozen(eq=False, kw_only=True)
class RuleUsage:
    """The usage of ACLs, by ordinal; times in us since 1970, or null."""

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


def rule_table(rules: Rules, usage: RuleUsage) -> pa.Table:
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
            "answer": _answers(usage),
            "matched": usage.matched,
            "needed": usage.needed,
            "last_matched_at": usage.last_matched.cast(_TIMESTAMP),
            "last_needed_at": usage.last_needed.cast(_TIMESTAMP),
            "last_needed_by": usage.last_needed_by,
            "removable": usage.removable,
            "unread": usage.unread,
        }
    )


_TIMESTAMP = pa.timestamp("us", tz="UTC")


def _times(micros: Int64s, none: Bools) -> Any:
    return pa.array(np.where(none, 0, micros), pa.int64(), mask=none).cast(_TIMESTAMP)


def _answers(usage: RuleUsage) -> Any:
    answers = list(Answer)
    number = np.select(
        [~usage.throughout, usage.needed > 0, usage.concerned, usage.matched > 0],
        [answers.index(each) for each in (Answer.NOT_JUDGED, Answer.NEEDED, Answer.NOT_JUDGED, Answer.NEVER_NEEDED)],
        answers.index(Answer.NEVER_MATCHED),
    )
    return pa.array([answer.value for answer in answers]).take(pa.array(number))


# The usage report: needed and unneeded ACLs, and the most frequent denials.
#
# Its input is distinct accesses, each once per version of the ACLs that made a difference to it, from any counter.


DECISION_CODE: Final = "decision_code"
AT_END: Final = "decision_code_at_end"

_ROWS = 1 << 16
"""How many distinct accesses are tallied at once."""

_TIME: Any = pa.timestamp("us", tz="UTC")


@frozen(eq=False, kw_only=True)
class UsageReport:
    """The usage of ACLs by a log.

    `rules`: a row per ACL, by ordinal: RULE_COLUMNS; in_force_from and in_force_to (null if unbounded); `answer`; the
    counts of accesses `matched` and `needed`; last_matched_at, last_needed_at, last_needed_by; `removable`: all
    removable ACLs can be removed together without changing a decision on any access in the window, neither by the ACLs
    of its own time nor by those at the end of the window; `unread`: how many accesses that could not be read or decided
    may have needed it.
    `denied`: the most denied accesses: REQUEST_COLUMNS, `count`, `first_at`, `last_at`, and the `rule` and `rule_id` of
    the last denial.
    `holes`: the days of the window without any access, in the column `day`.
    """

    rules: pa.Table
    denied: pa.Table
    holes: pa.Table
    counts: Counts
    window: Window
    has_times: bool
    """Whether intervals are known; if not, all ACLs count as in force in the whole window."""
    unread: UnreadAccesses
    """Accesses that may lie in the window and could not be read or decided; not those of super users."""

    def without_proof(self) -> "UsageReport":
        """Return the report without claims that require all premises of decisions to be known.

        A resource may be open to everyone without its last ACL, so no ACL is removable, and a DENY may be needed.
        """
        rules = self.rules
        columns = (rules.column(name).to_pylist() for name in ("permissionType", "answer"))
        answers = [
            Answer.NOT_JUDGED.value if (permission, answer) == ("DENY", Answer.NEVER_NEEDED) else answer
            for permission, answer in zip(*columns, strict=True)
        ]
        for name, values in (("answer", pa.array(answers, pa.string())), ("removable", pa.array([False] * len(rules)))):
            rules = rules.set_column(rules.schema.get_field_index(name), name, values)
        return evolve(self, rules=rules)


@frozen(eq=False, kw_only=True)
class Judged:
    """The ACLs and settings by which the accesses of a window are evaluated."""

    rules: Rules
    settings: Settings
    window: Window
    own_time: bool
    """Whether each access is evaluated by the ACLs of its own time; otherwise by those of the last version."""

    @property
    def known_from(self) -> int | None:
        """The time from which accesses can be evaluated, in us since 1970; None: always."""
        begin = self.rules.intervals.known_from
        return begin * 1000 if self.own_time and begin > ALWAYS else None

    @property
    def has_times(self) -> bool:
        """Whether the intervals of ACLs are known."""
        intervals = self.rules.intervals
        return len(change_times(intervals)) > 0 or intervals.known_from > ALWAYS

    def assessed(self, unread: UnreadAccesses) -> WindowRules:
        """Return which ACLs are assessed; `unread` are the unread accesses of the window."""
        window_rules = WindowRules.of(self.rules.intervals, self.window, own_time=self.own_time)
        if not unread:
            return window_rules
        who: Any = self.rules.table.column("principal").to_pylist()
        denies = np.asarray(self.rules.table.column("permissionType").to_numpy()) != "ALLOW"
        by_presence = self.settings.allow_everyone
        return window_rules.but_for(
            unread.concerned(who, denies, by_presence=by_presence), unread.counts(who, denies, by_presence=by_presence)
        )

    def unread(self, unread: UnreadAccesses) -> UnreadAccesses:
        """Return those of a log's unread accesses that may lie in the window and are not of super users."""
        start, until = micros_of(self.window.start), micros_of(self.window.until)
        return unread.between(start, until).but_of(self.settings.super_users)


def report(
    counted: pa.Table,
    judged: Judged,
    rows: RowCounts,
    days: Collection[int],
    *,
    top: int,
    unread: UnreadAccesses,
) -> UsageReport:
    """Return the report on the distinct accesses of the window (COUNTED, one row per access and version).

    `rows`, `days` and `unread` are those of the whole log (LogCounter); `top` is the number of denied accesses to name.
    """
    decided = with_codes(counted, judged)
    unknown = UnreadAccesses.sum_of((unread, undecided(decided, np.asarray(decided.column(DECISION_CODE)))))
    unknown = judged.unread(unknown)
    return UsageReport(
        rules=rule_table(judged.rules, _usage(decided, judged, judged.assessed(unknown))),
        denied=most_denied(decided, judged.rules, top),
        holes=days_without_access(judged.window, days),
        counts=counts_of(rows, _rows_by_code(decided)),
        window=judged.window,
        has_times=judged.has_times,
        unread=unknown,
    )


def with_codes(counted: pa.Table, judged: Judged) -> pa.Table:
    """Add the columns `decision_code`, and `decision_code_at_end` by the ACLs at the end of the window."""
    authorizer = BulkAuthorizer.of(judged.rules.intervals, judged.settings)
    columns = [counted.column(name) for name in REQUEST_COLUMNS]
    # its first time is sufficient: COUNTED has a row per version that makes a difference
    codes = authorizer.decide(columns, np.asarray(counted.column("first")) if judged.own_time else None)
    at_end = codes
    if judged.own_time:
        at_end = authorizer.decide(columns, np.full(len(counted), micros_of(judged.window.until)))
        # the decision by the ACLs at the end counts as well, so the deciding Kafka must also be known then
        codes[at_end == DecisionCode.UNKNOWN_KAFKA] = DecisionCode.UNKNOWN_KAFKA
    return counted.append_column(DECISION_CODE, pa.array(codes)).append_column(AT_END, pa.array(at_end))


def _usage(decided: pa.Table, judged: Judged, assessed: WindowRules) -> RuleUsage:
    tally = Tally(NecessaryAcls.of(judged.rules.intervals, judged.settings), assessed, with_sets=True)
    by_acls = decided.filter(pa.array(np.asarray(decided.column(DECISION_CODE)) >= DecisionCode.DEFAULT_ALLOW))
    for start in range(0, len(by_acls), _ROWS):
        tally.add(by_acls.slice(start, _ROWS))
    rows = tally.rules()
    worth = worth_of(rows, tally.window)
    if tally.acls.presence_counts:
        # with allow.everyone, ACLs that do not match also affect decisions: only groups include them
        keep = rules_to_keep(tally.take_groups().column("group").combine_chunks(), worth).tolist()
    else:
        may_go = assessed.throughout & ~assessed.concerned & (worth < np.iinfo(np.int64).max)
        clauses = keep_clauses(tally.matched_sets(), present=np.ones_like(may_go), may_go=may_go)
        keep = sorted(fewest_kept(clauses, lambda ordinal: int(worth[ordinal])))
    return usage_of(rows, keep, tally.window)


def usage_of(rows: pa.Table, keep: Any, window: WindowRules) -> RuleUsage:
    """Return the usage of each ACL from tallies (TALLY), which are added up by ACL already.

    `keep` has the ordinals of ACLs that represent a group of which one must stay (rules_to_keep).
    """
    matched, needed = (_by_ordinal(rows, name, window) for name in ("matched", "needed"))
    removable = window.throughout & ~window.concerned & (needed == 0)
    removable[keep] = False
    row = np.full(len(window.throughout), -1, np.int64)
    row[np.asarray(rows.column("ordinal"))] = np.arange(len(rows))
    rows_of: Any = pa.array(row, mask=row < 0)
    last_matched, last_needed, by = (
        rows.column(name).combine_chunks().take(rows_of) for name in ("last_matched", "last_needed", "last_needed_by")
    )
    return RuleUsage(
        throughout=window.throughout,
        matched=matched,
        needed=needed,
        last_matched=last_matched,
        last_needed=last_needed,
        last_needed_by=by,
        removable=removable,
        unread=window.unread,
        concerned=window.concerned,
    )


def worth_of(rows: pa.Table, window: WindowRules) -> Int64s:
    """Return by ordinal how much an ACL is worth keeping for a group, from the same tallies as `usage_of`.

    Each group keeps the ACL that matched most accesses, but prefers a needed one: it stays anyway, and fewer ACLs are
    kept
    if it also represents its other groups.
    """
    needed = _by_ordinal(rows, "needed", window)
    return np.where(needed > 0, np.iinfo(np.int64).max, _by_ordinal(rows, "matched", window))


def _by_ordinal(rows: pa.Table, name: str, window: WindowRules) -> Int64s:
    numbers = np.zeros(len(window.throughout), np.int64)
    numbers[np.asarray(rows.column("ordinal"))] = rows.column(name)
    return numbers


def counts_of(rows: RowCounts, by_code: Mapping[int, int]) -> Counts:
    """Return the counts of all rows of a log; `by_code` has those in the window, by decision code."""
    return Counts(
        total=rows.total,
        without_time=rows.without_time,
        outside=rows.outside,
        before_log=rows.before_log,
        super_users=by_code.get(int(DecisionCode.SUPER_USER), 0),
        errors={text: by_code[int(code)] for code, text in ERRORS.items() if int(code) in by_code},
        decided=sum(count for code, count in by_code.items() if code >= DecisionCode.DEFAULT_ALLOW),
    )


def _rows_by_code(decided: pa.Table) -> dict[int, int]:
    codes = np.asarray(decided.column(DECISION_CODE))
    kinds, of = np.unique(np.maximum(codes, np.iinfo(np.int32).min), return_inverse=True)
    sums = np.zeros(len(kinds), np.int64)
    np.add.at(sums, of, np.asarray(decided.column("count")))
    return dict(zip(kinds.tolist(), sums.tolist(), strict=True))


def most_denied(decided: pa.Table, rules: Rules, top: int) -> pa.Table:
    """Return the most denied of distinct accesses (COUNTED with `decision_code`), at most `top`; ties by columns."""
    texts = rules.texts
    first = int(min(DecisionCode))
    denied = np.asarray(texts.table.column("decision")) == "DENIED"
    rows = decided.filter(pa.array(denied[np.asarray(decided.column(DECISION_CODE)) - first]))
    # the latest denial determines the ACL
    rows = rows.sort_by([("last", "ascending")])
    by = rows.group_by(list(REQUEST_COLUMNS), use_threads=False).aggregate(
        [("count", "sum"), ("first", "min"), ("last", "max"), (DECISION_CODE, "last")]
    )
    order: Any = [("count_sum", "descending"), *((name, "ascending") for name in REQUEST_COLUMNS)]
    most = by.sort_by(order).slice(0, top)
    named = texts.of_codes(most.column(f"{DECISION_CODE}_last").combine_chunks())
    return pa.table(
        {
            **{name: most.column(name) for name in REQUEST_COLUMNS},
            "count": most.column("count_sum"),
            "first_at": most.column("first_min").cast(_TIME),
            "last_at": most.column("last_max").cast(_TIME),
            "rule": named[1],
            "rule_id": named[2],
        }
    )


def days_without_access(window: Window, days: Collection[int]) -> pa.Table:
    """Return the days (UTC) of the window that are not among these (since 1970), in the column `day`."""
    with_access = frozenset(days)
    holes: list[date] = [day for day in window.days if (day - EPOCH.date()) // timedelta(days=1) not in with_access]
    return pa.table({"day": pa.array(holes, pa.date32())})
