"""Which rule of a run is which life: with ids and without, from logs and from states, over runs that differ."""

from collections.abc import Iterator
from cProfile import Profile
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.columns import Bytes
from aclog.usage.index.lives import STILL, UNKNOWN, SeenRules, latest_rows
from aclog.usage.index.tallies import DayRows, Kind, UsedWriter, bitmaps, days_of, used
from aclog.usage.index.usage_index import UsageIndex
from tests.support.builders.index_runs import DAY, PlainUse, history, plain_rules, run_of, tally_of

FIRST = 20_000 * DAY


@pytest.fixture
def index(tmp_path: Path) -> Iterator[UsageIndex]:
    """Return an index to write."""
    with UsageIndex.create(tmp_path / "x") as opened:
        yield opened


def take(index: UsageIndex, rules: SeenRules, first: int, last: int) -> None:
    """Take a run over these days, in which each rule matches once a day."""
    uses = [
        PlainUse(time=FIRST + day * DAY, principal="User:a", host="h", matched=frozenset(range(len(rules))))
        for day in range(first, last + 1)
    ]
    index.take(run_of(rules, uses), [tally_of(uses)])


def lives(index: UsageIndex) -> list[tuple[str, int, int | None, int]]:
    """Return of each life its name, its first and last day, None if it is open, and on how many days it matched."""
    found = index.lives()
    names = [text["resourceName"] for text in index.texts(range(len(found)))]
    matched = dict.fromkeys(range(len(found)), 0)
    days = index.used(0, 40_000)
    matched |= dict(zip(days.numbers.tolist(), days.days_matched.tolist(), strict=True))
    return [
        (name, (begin - FIRST) // DAY, None if end == STILL else (end - FIRST) // DAY, matched[at])
        for at, (name, begin, end) in enumerate(zip(names, found.begins.tolist(), found.ends.tolist(), strict=True))
    ]


def test_a_text_that_went_and_came_back_is_another_life(index: UsageIndex) -> None:
    take(index, plain_rules(["a", "b"]), 0, 4)
    take(index, plain_rules(["a"]), 5, 9)
    take(index, plain_rules(["b", "a"]), 10, 14)
    assert lives(index) == [("a", 0, None, 15), ("b", 0, 4, 5), ("b", 10, None, 5)]


def test_an_id_that_a_run_did_not_see_is_the_same_life(index: UsageIndex) -> None:
    take(index, plain_rules(["a", "b"], ids=True), 0, 4)
    take(index, plain_rules(["a"], ids=True), 5, 9)
    assert lives(index)[1] == ("b", 0, 4, 5)
    take(index, plain_rules(["b", "a"], ids=True), 10, 14)
    assert lives(index) == [("a", 0, None, 15), ("b", 0, None, 10)]
    assert index.lives().judged_since.tolist() == [UNKNOWN, FIRST + 9 * DAY + 1]


def test_older_accesses_by_the_same_state_make_a_life_longer(index: UsageIndex) -> None:
    take(index, plain_rules(["a"]), 10, 14)
    take(index, plain_rules(["a"]), 0, 4)
    assert lives(index) == [("a", 0, None, 10)]


def test_a_log_says_when_lives_began_and_ended(index: UsageIndex) -> None:
    rules = plain_rules(["a", "b", "b"], ids=True)
    begins = [FIRST - 9 * DAY, FIRST, FIRST + 3 * DAY]
    take(index, history(rules, begins, [STILL, FIRST + 2 * DAY, STILL]), 0, 4)
    expected = [("a", -9, None, 5), ("b", 0, 2, 5), ("b", 3, None, 5)]
    assert lives(index) == expected
    # the log once more, longer; and an older copy of it, which does not know the last life yet
    take(index, history(rules, begins, [STILL, FIRST + 2 * DAY, FIRST + 5 * DAY]), 5, 5)
    take(index, history(plain_rules(["a", "b"], ids=True), begins[:2], [STILL, STILL]), 1, 1)
    assert [each[:3] for each in lives(index)] == [("a", -9, None), ("b", 0, 2), ("b", 3, 5)]


def test_a_log_tells_what_a_state_did_not(index: UsageIndex) -> None:
    rules = plain_rules(["a", "b"], ids=True)
    take(index, rules, 0, 4)
    take(index, history(rules, [FIRST - DAY, FIRST - 2 * DAY], [STILL, FIRST + 5 * DAY]), 5, 9)
    assert lives(index) == [("a", -1, None, 10), ("b", -2, 5, 10)]


def test_a_log_that_begins_at_a_checkpoint_forgets_nothing(index: UsageIndex) -> None:
    rules = plain_rules(["a", "b"], ids=True)
    take(index, history(plain_rules(["a"], ids=True), [FIRST - DAY], [STILL]), 0, 4)
    known = FIRST + 6 * DAY
    take(index, history(rules, [UNKNOWN, UNKNOWN], [STILL, STILL], known_from=known), 5, 9)
    assert lives(index) == [("a", -1, None, 10), ("b", 6, None, 5)]


def test_accesses_before_the_checkpoint_of_a_log_are_not_judged(index: UsageIndex) -> None:
    rules = plain_rules(["a", "b"], ids=True)
    take(index, history(rules, [FIRST - DAY] * 2, [STILL, STILL], known_from=FIRST - DAY), 0, 4)
    assert index.lives().judged_since.tolist() == [UNKNOWN] * 2
    # of the days from 5 to 9, only those from 8 on were evaluated
    known = FIRST + 8 * DAY
    take(index, history(rules, [UNKNOWN] * 2, [STILL, STILL], known_from=known), 5, 9)
    assert index.lives().judged_since.tolist() == [known] * 2
    # a later run, whose accesses are all younger than its log, leaves that as it is
    take(index, history(rules, [UNKNOWN] * 2, [STILL, STILL], known_from=FIRST + 10 * DAY), 10, 14)
    assert index.lives().judged_since.tolist() == [known] * 2
    # an ACL that was not in one state and returns
    take(index, plain_rules(["a"], ids=True), 15, 19)
    take(index, history(rules, [UNKNOWN] * 2, [STILL, STILL], known_from=FIRST + 22 * DAY), 20, 24)
    assert index.lives().judged_since.tolist() == [FIRST + 22 * DAY] * 2


def test_a_source_without_ids_continues_lives_with_ids(index: UsageIndex) -> None:
    take(index, history(plain_rules(["a"], ids=True), [FIRST - DAY], [STILL]), 0, 4)
    take(index, plain_rules(["a"]), 5, 9)
    take(index, history(plain_rules(["a"], ids=True), [FIRST - DAY], [STILL]), 10, 14)
    assert lives(index) == [("a", -1, None, 15)]


def test_some_rules_of_a_state_end_no_others(index: UsageIndex) -> None:
    take(index, plain_rules(["a", "b"]), 0, 4)
    take(index, evolve(plain_rules(["c"]), is_whole=False), 5, 9)
    assert lives(index) == [("a", 0, None, 5), ("b", 0, None, 5), ("c", 5, None, 5)]


@given(st.lists(st.integers(0, 5), max_size=20), st.lists(st.integers(0, 6), max_size=9))
def test_latest_rows_finds_the_last_of_each_key(keys: list[int], wanted: list[int]) -> None:
    # keys that only differ in their second half, or in their first
    values = [(1, 1), (1, 2), (1, 255), (2, 1), (200, 1), (200, 2), (3, 3)]

    def array(numbers: list[int]) -> Bytes:
        """Return 16 bytes for each number."""
        rows = [[*[0] * 7, values[each][0], *[0] * 7, values[each][1]] for each in numbers]
        return np.array(rows, np.uint8).reshape(-1, 16)

    eligible = np.array([each != 4 for each in keys], np.bool_)
    found = latest_rows(array(keys), eligible, array(wanted))
    places = [[at for at, key in enumerate(keys) if key == each and key != 4] for each in wanted]
    assert found.tolist() == [at[-1] if at else -1 for at in places]
    times, wanted_times = (np.array([at % 3 for at in range(len(each))], np.int64) for each in (keys, wanted))
    found = latest_rows(array(keys), eligible, array(wanted), times=times, target_times=wanted_times)
    of_time = [[at for at in each if at % 3 == number % 3] for number, each in enumerate(places)]
    assert found.tolist() == [at[-1] if at else -1 for at in of_time]


def test_rows_of_ids_whose_first_half_is_the_same_take_as_many_calls() -> None:
    # ids of Kafka are random; those of a source of rules may be numbers
    def calls(count: int) -> int:
        """Return how many functions are called for so many ids."""
        keys = np.arange(count, dtype=">u8").view(np.uint8).reshape(-1, 8)
        ids = np.concatenate((np.zeros_like(keys), keys), axis=1)
        profile = Profile()
        profile.runcall(latest_rows, ids, np.ones(count, np.bool_), ids)
        return sum(each.callcount for each in profile.getstats())

    assert calls(1_000) == calls(10)


def test_numbers_beyond_one_container_add_up(index: UsageIndex) -> None:
    numbers = np.array([0, 65_535, 65_536, 200_000])
    with index.database.writing() as database:
        for _ in range(2):
            writer = UsedWriter(database, Kind.LIVES)
            for day in range(300):
                writer.add(DayRows(np.full(4, day), numbers, np.arange(1, 5), np.array([0, 1, 1, 0])))
            writer.flush()
        for first, last in ((0, 299), (5, 270), (17, 17)):
            length = last - first + 1
            found = used(database, first, last)
            assert found.numbers.tolist() == numbers.tolist()
            assert found.matched.tolist() == [2 * length * each for each in range(1, 5)]
            assert found.needed.tolist() == [0, 2 * length, 2 * length, 0]
            assert found.days_matched.tolist() == [length] * 4
            assert found.days_needed.tolist() == [0, length, length, 0]
            assert [list(each) for each in bitmaps(database, Kind.LIVES, first, last)] == [
                numbers.tolist(),
                numbers[1:3].tolist(),
            ]
        assert [len(each) for each in days_of(database, 65_536)] == [300, 300]
