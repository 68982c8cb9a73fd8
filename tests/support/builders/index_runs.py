"""Runs for the index of last use, from plain accesses, without judging anything."""

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import evolve, frozen

from aclog.usage.index.lives import STILL, UNKNOWN, RuleText, SeenRules
from aclog.usage.index.tallies import DayRows, DayTally
from aclog.usage.index.usage_index import Run
from aclog.usage.index.used import LastUse
from aclog.usage.window import AccessSets, Coverage

DAY = 86_400_000_000
_KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")


@frozen(kw_only=True)
class PlainUse:
    """An access, and the rules (by ordinal) that matched it and that it needed."""

    time: int
    principal: str
    host: str
    matched: frozenset[int]
    needed: frozenset[int] = frozenset()
    set_of: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Denies and allows."""

    @property
    def day(self) -> int:
        """The day since 1970."""
        return self.time // DAY


def plain_rules(names: Sequence[str], *, ids: bool = False) -> SeenRules:
    """Return rules without times; a name stands for a rule, and for its id."""

    def texts(ordinals: Sequence[int]) -> list[RuleText]:
        """Return what tells the rules apart."""
        return [dict.fromkeys(_KEYS, names[at]) for at in ordinals]

    keys = np.frombuffer(b"".join(name.encode().rjust(16) for name in names), np.uint8).reshape(-1, 16)
    return SeenRules(
        ids=keys[:, ::-1].copy() if ids else None,
        digests=keys,
        denies=np.zeros(len(names), np.bool_),
        texts=texts,
        begins=np.full(len(names), UNKNOWN),
        ends=np.full(len(names), STILL),
        is_history=False,
    )


def history(
    rules: SeenRules, begins: Sequence[int], ends: Sequence[int], *, known_from: int | None = None
) -> SeenRules:
    """Return the same rules with a log's times."""
    return evolve(
        rules,
        begins=np.array(begins, np.int64),
        ends=np.array(ends, np.int64),
        is_history=True,
        known_from=known_from,
    )


def tally_of(uses: Iterable[PlainUse]) -> DayTally:
    """Tally accesses, one row each: the index has to add them up."""
    all_uses = list(uses)
    if not all_uses:
        return DayTally.nothing()
    rows = [(use.day, rule, rule in use.matched, rule in use.needed) for use in all_uses for rule in _rules(use)]
    sets = list(dict.fromkeys(use.set_of for use in all_uses if use.set_of is not None))
    set_rows = [(use.day, sets.index(use.set_of), 1, 0) for use in all_uses if use.set_of is not None]
    events = [(use, rule) for use in all_uses for rule in _rules(use)]
    users = [(use.principal, use.host) for use, _ in events]
    who = [
        [at if rule in (use.matched if event < 2 else use.needed) else -1 for at, (use, rule) in enumerate(events)]
        for event in range(4)
    ]
    times = np.array([[use.time for use, _ in events]] * 4, np.int64).reshape(4, len(events))
    return DayTally(
        rules=_day_rows(rows),
        last_use=LastUse.of(
            np.array([rule for _, rule in events], np.int64), times, np.array(who, np.int64).reshape(4, -1), users
        ),
        sets=AccessSets.of(sets),
        set_rows=_day_rows(set_rows),
        first=min(use.time for use in all_uses),
        last=max(use.time for use in all_uses),
        accesses=len(all_uses),
    )


def run_of(rules: SeenRules, uses: Iterable[PlainUse], **more: object) -> Run:
    """Return the run of these accesses, whose lines name no broker."""
    times = np.array([use.time for use in uses], np.int64)
    covered = Coverage.of_lines(times, np.zeros(len(times), np.int64), (None,))
    run = Run(rules=rules, source="rules", settings={}, at=0, coverage=covered)
    return evolve(run, **more) if more else run


def _rules(use: PlainUse) -> list[int]:
    return sorted(use.matched | use.needed)


def _day_rows(rows: Sequence[tuple[int, int, int, int]]) -> DayRows:
    columns = np.array(rows, np.int64).reshape(-1, 4)
    return DayRows(*(columns[:, at] for at in range(4)))
