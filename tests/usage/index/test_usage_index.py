"""The index of last use against plain sums over all accesses."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.usage.index.usage_index import Batch, TakenContent, UsageIndex
from tests.support.builders.index_runs import DAY, PlainUse, plain_rules, run_of, tally_of
from tests.support.runs.profiles import examples

FIRST = 20_000
RULES = 6


@st.composite
def uses(draw: st.DrawFn) -> PlainUse:
    """Return an access within 600 days, in one of a few hours."""
    matched = draw(st.frozensets(st.integers(0, RULES - 1), max_size=3))
    needed = draw(st.frozensets(st.integers(0, RULES - 1), max_size=1))
    members = sorted(matched)
    denies, allows = tuple(members[:1]), tuple(members[1:])
    return PlainUse(
        time=(FIRST + draw(st.sampled_from((0, 1, 15, 16, 17, 255, 256, 300, 599)))) * DAY + draw(st.integers(0, 3)),
        principal=f"User:{draw(st.sampled_from('ab'))}",
        host=draw(st.sampled_from(("h1", "h2"))),
        matched=matched,
        needed=needed,
        set_of=(denies, allows) if len(members) > 1 else None,
    )


@settings(max_examples=examples(30), deadline=None)
@given(
    runs=st.lists(st.lists(uses(), min_size=1, max_size=12), min_size=1, max_size=4),
    window=st.tuples(st.integers(-2, 601), st.integers(-2, 601)),
)
def test_says_of_a_window_what_all_its_accesses_say(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[PlainUse]], window: tuple[int, int]
) -> None:
    first, last = (FIRST + day for day in sorted(window))
    rules = plain_rules([f"r{at}" for at in range(RULES)])
    with UsageIndex.create(tmp_path_factory.mktemp("index") / "x") as index:
        for accesses in runs:
            half = len(accesses) // 2
            assert index.take(run_of(rules, accesses), map(tally_of, (accesses[:half], accesses[half:])))
        inside = [use for accesses in runs for use in accesses if first <= use.day <= last]
        found = index.window(first, last)
        assert set(found.matched) == {rule for use in inside for rule in use.matched}
        assert set(found.needed) == {rule for use in inside for rule in use.needed}
        sets = index.sets(found.sets)
        assert {
            tuple(zip(sets.members[start:end].tolist(), sets.denies[start:end].tolist(), strict=True))
            for start, end in zip(sets.starts[:-1], sets.starts[1:], strict=True)
        } == {
            tuple([(each, False) for each in use.set_of[1]] + [(each, True) for each in use.set_of[0]])
            for use in inside
            if use.set_of is not None
        }
        used = index.used(first, last)
        for at, number in enumerate(used.numbers.tolist()):
            for column, days, field in (
                (used.matched, used.days_matched, "matched"),
                (used.needed, used.days_needed, "needed"),
            ):
                mine = [use for use in inside if number in getattr(use, field)]
                assert column[at] == len(mine)
                assert days[at] == len({use.day for use in mine})
        assert set(used.numbers.tolist()) == set(found.matched) | set(found.needed)
        _check_all_time(index, [use for accesses in runs for use in accesses])


def _check_all_time(index: UsageIndex, accesses: list[PlainUse]) -> None:
    last_use = index.last_use(np.arange(RULES))
    for rule in range(RULES):
        days = index.days_of(rule)
        for kind, field in enumerate(("matched", "needed")):
            mine = sorted((u.time, u.principal, u.host) for u in accesses if rule in getattr(u, field))
            assert set(days[kind]) == {time // DAY for time, *_ in mine}
            for event, edge in ((2 * kind, 0), (2 * kind + 1, -1)):
                assert last_use.use(rule, event) == (mine[edge] if mine else None)
    hours: dict[int, list[int]] = defaultdict(list)
    for use in accesses:
        hours[use.time // (DAY // 24)].append(use.time)
    covered = index.coverage()
    assert covered.brokers == (None,)
    assert [
        (int(hour), int(rows), int(first), int(last))
        for hour, rows, first, last in zip(covered.hour, covered.rows, covered.first, covered.last, strict=True)
    ] == [(hour, len(times), min(times), max(times)) for hour, times in sorted(hours.items())]


def _use(day: int, *matched: int) -> PlainUse:
    return PlainUse(time=(FIRST + day) * DAY, principal="User:a", host="h", matched=frozenset(matched))


def test_takes_a_batch_of_a_stream_once(tmp_path: Path) -> None:
    rules, accesses = plain_rules(["a"]), [_use(0, 0)]
    with UsageIndex.create(tmp_path / "x") as index:
        for number, taken in ((1, True), (1, False), (3, True), (2, False)):
            run = evolve(run_of(rules, accesses), batch=Batch("query", number))
            assert index.take(run, [tally_of(accesses)]) is taken
        assert index.used(FIRST, FIRST).matched.tolist() == [2]


def test_refuses_contents_that_another_run_has_taken_meanwhile(tmp_path: Path) -> None:
    rules, accesses = plain_rules(["a"]), [_use(0, 0)]
    content = TakenContent(10, b"d" * 32, "/a.log", 0)
    with UsageIndex.create(tmp_path / "x") as index:
        runs = [
            evolve(run_of(rules, accesses), contents=[content], contents_version=index.contents_version)
            for _ in range(2)
        ]
        index.take(runs[0], [tally_of(accesses)])
        with pytest.raises(ConfigError, match="another run has added files meanwhile"):
            index.take(runs[1], [tally_of(accesses)])
        assert index.known_contents() == {(10, b"d" * 32)}
        assert index.used(FIRST, FIRST).matched.tolist() == [1]


def test_refuses_the_rules_of_another_cluster(tmp_path: Path) -> None:
    rules, accesses = plain_rules(["a"]), [_use(0, 0)]
    with UsageIndex.create(tmp_path / "x") as index:
        for cluster in (None, "one", None, "one"):
            assert index.take(evolve(run_of(rules, accesses), cluster_id=cluster), [tally_of(accesses)])
        with pytest.raises(ConfigError, match="an index of cluster one, but these rules are of cluster two"):
            index.take(evolve(run_of(rules, accesses), cluster_id="two"), [tally_of(accesses)])
        assert index.cluster_id == "one"
        assert index.used(FIRST, FIRST).matched.tolist() == [4]


def test_a_reader_sees_one_state_while_others_write(tmp_path: Path) -> None:
    rules, accesses = plain_rules(["a"]), [_use(0, 0)]
    with UsageIndex.create(tmp_path / "x") as index:
        index.take(run_of(rules, accesses), [tally_of(accesses)])
        with UsageIndex.open(tmp_path / "x") as reader:
            assert len(reader.runs()) == 1
            index.take(run_of(rules, accesses), [tally_of(accesses)])
            assert reader.used(FIRST, FIRST).matched.tolist() == [1]
            assert len(reader.runs()) == 1
        with UsageIndex.open(tmp_path / "x") as reader:
            assert reader.used(FIRST, FIRST).matched.tolist() == [2]


def test_two_writers_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    UsageIndex.create(tmp_path / "x").close()

    def write(name: str) -> None:
        """Take runs of an own rule and of a shared one, as another process would."""
        accesses = [_use(0, 0, 1)]
        with UsageIndex.open(tmp_path / "x", writable=True) as index:
            for _ in range(8):
                rules = evolve(plain_rules([name, "shared"]), is_whole=False)
                index.take(run_of(rules, accesses), [tally_of(accesses)])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("one", "two")))
    with UsageIndex.open(tmp_path / "x") as index:
        texts = [text["resourceName"] for text in index.texts(range(len(index.lives())))]
        used = index.used(FIRST, FIRST)
    assert dict(zip(texts, used.matched.tolist(), strict=True)) == {"one": 8, "two": 8, "shared": 16}
