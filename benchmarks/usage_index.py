"""The index of last use at a million rules: its size, how long a run takes to go in, and a window to come out."""

import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

from aclog.metalog.columns import Bytes, Int64s
from aclog.usage.index.lives import RuleText, SeenRules, always
from aclog.usage.index.tallies import DayRows, DayTally
from aclog.usage.index.usage_index import Run, UsageIndex
from aclog.usage.index.used import LastUse
from aclog.usage.window import HOUR, AccessSets, Coverage
from benchmarks.report import Row

RULES = 1_000_000
FIRST_DAY = 20_000
_DAY = 24 * HOUR
_SETS = 50_000
_WINDOWS = (1, 7, 30, 90, 365, 1_000, 2_500, 3_650)
_RUN_DAYS = 64


def run(scratch: Path, days: int) -> Iterator[Row]:
    """Yield rows for an index of so many days, on each of which another tenth of the rules is used."""
    directory = scratch / "index"
    took = build(directory, days)
    size = sum(each.stat().st_size for each in directory.iterdir())
    what = f"1M rules, {days:,} days, a random tenth used a day"
    yield Row(what=f"{what}: size of the index, per rule and day", ours=size / RULES / days, unit="B")
    yield Row(what=f"{what}: size of the index, per rule used on a day", ours=10 * size / RULES / days, unit="B")
    yield Row(what=f"{what}: taking a day, one transaction for {_RUN_DAYS} days", ours=took / days, unit="s")
    yield Row(what=f"{what}: memory", ours=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, unit="MiB")
    for length in _WINDOWS:
        if length <= days:
            yield from _windows(directory, days, length)


def build(directory: Path, days: int, ids: Bytes | None = None) -> float:
    """Make the index of rules with these ids, (RULES, 16) bytes; return how long `take` took, in s."""
    made_up = np.frombuffer(np.random.default_rng(1).bytes(16 * RULES), np.uint8).reshape(-1, 16)
    keys = made_up if ids is None else ids
    begins, ends = always(RULES)
    rules = SeenRules(
        ids=keys,
        digests=keys[::-1].copy(),
        denies=np.zeros(RULES, np.bool_),
        texts=_texts,
        begins=begins,
        ends=ends,
        is_history=False,
    )
    took = 0.0
    with UsageIndex.create(directory) as index:
        for first in range(FIRST_DAY, FIRST_DAY + days, _RUN_DAYS):
            last = min(first + _RUN_DAYS, FIRST_DAY + days)
            made = [0.0]

            def tallies(first: int = first, last: int = last, made: list[float] = made) -> Iterator[DayTally]:
                """Yield the tallies of days, and note how long it takes to make them up."""
                for day in range(first, last):
                    start = time.perf_counter()
                    tally = _tally(day)
                    made[0] += time.perf_counter() - start
                    yield tally

            run = Run(rules=rules, source="made up", settings={}, at=0, coverage=_coverage(first, last))
            start = time.perf_counter()
            index.take(run, tallies())
            took += time.perf_counter() - start - made[0]
    return took


def _windows(directory: Path, days: int, length: int) -> Iterator[Row]:
    """Open the index anew each time, as a command does."""
    random, took, counted = Random(length), [], []
    for _ in range(5):
        first = FIRST_DAY + random.randint(0, days - length)
        start = time.perf_counter()
        with UsageIndex.open(directory) as index:
            index.lives()
            index.window(first, first + length - 1)
            took.append(time.perf_counter() - start)
            start = time.perf_counter()
            index.used(first, first + length - 1)
            counted.append(time.perf_counter() - start)
    yield Row(what=f"lives and window of {length:,} days: the slowest of 5", ours=max(took), unit="s")
    yield Row(what=f"counts of {length:,} days: the slowest of 5", ours=max(counted), unit="s")


def _tally(day: int) -> DayTally:
    random = np.random.default_rng(day)
    ordinals = np.flatnonzero(random.random(RULES) < 0.1)
    matched = random.geometric(0.01, len(ordinals))
    needed = np.where(random.random(len(ordinals)) < 0.5, matched, 0)
    sets = _sets(random)
    times = day * _DAY + random.integers(0, _DAY, (4, len(ordinals)))
    who = random.integers(0, 5_000, (4, len(ordinals)))
    users = [(f"User:app-{at}", f"10.0.{at >> 8}.{at & 255}") for at in range(5_000)]
    of_day = np.full(len(ordinals), day)
    once = np.ones(len(sets), np.int64)
    return DayTally(
        rules=DayRows(of_day, ordinals, matched, needed),
        last_use=LastUse.of(ordinals, times, np.where(needed > 0, who, np.where([[1], [1], [0], [0]], who, -1)), users),
        sets=sets,
        set_rows=DayRows(np.full(len(sets), day), np.arange(len(sets)), once, once * 0),
        first=day * _DAY,
        last=day * _DAY + _DAY - 1,
        accesses=int(matched.sum()),
    )


def _sets(random: np.random.Generator) -> AccessSets:
    """Return a tenth of the sets, of two neighbours each."""
    chosen = np.flatnonzero(random.random(_SETS) < 0.1)
    members = np.stack((chosen * 20, chosen * 20 + 1), 1).reshape(-1)
    return AccessSets(starts=np.arange(len(chosen) + 1) * 2, members=members, denies=np.zeros(len(members), np.bool_))


def _coverage(first: int, last: int) -> Coverage:
    hours: Int64s = np.arange(first * 24, last * 24)
    times = np.concatenate([hours * HOUR, hours * HOUR + HOUR - 1])
    parts = [Coverage.of_lines(times, np.zeros(len(times), np.int64), (f"{broker}",)) for broker in range(12)]
    return Coverage.sum(parts)


def _texts(ordinals: Sequence[int]) -> list[RuleText]:
    return [
        {
            "resourceType": "TOPIC",
            "resourceName": f"team-{at % 997}.orders.{at}",
            "patternType": "LITERAL",
            "principal": f"User:app-{at % 5_000}",
            "host": "*",
            "operation": "READ",
            "permissionType": "ALLOW",
        }
        for at in ordinals
    ]
