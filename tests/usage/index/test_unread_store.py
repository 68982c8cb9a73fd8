"""What could not be read or decided, in the index: added up over runs, found by window, and unknown in an older one."""

import sqlite3
from contextlib import closing

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.usage.index.database import FILE
from aclog.usage.index.usage_index import Batch, TakenContent, UsageIndex
from aclog.usage.window import EARLIEST, LATEST, OLDER_INDEX, UnreadAccesses, UnreadCounter, UnreadKey, UnreadSpan
from tests.support.builders.index_runs import DAY, PlainUse, plain_rules, run_of, tally_of
from tests.support.runs.profiles import examples

NOW = 100 * DAY
RULES = plain_rules(["a"])
SPANS = st.tuples(
    st.sampled_from([None, "User:a", "User:b"]),
    st.sampled_from([None, "ALLOWED", "DENIED"]),
    st.sampled_from(["NO_HEAD", "NO_HOST"]),
    st.none() | st.integers(0, 9 * DAY),
    st.none() | st.integers(0, 2 * DAY),
    st.sampled_from([None, "kafka-0", "kafka-1"]),
)


def counted(rows) -> UnreadAccesses:
    counter = UnreadCounter()
    for principal, decision, reason, first, length, broker in rows:
        last = None if length is None else (first or 0) + length
        counter.add(principal, decision, reason, UnreadSpan(1, first, last), broker=broker)
    return counter.total


def use(day):
    return PlainUse(time=day * DAY, principal="User:a", host="h", matched=frozenset([0]))


@settings(max_examples=examples(30))
@given(runs=st.lists(st.tuples(st.lists(SPANS, max_size=5), st.booleans()), max_size=4), start=st.integers(0, 9 * DAY))
def test_runs_add_up(tmp_path_factory, runs, start):
    directory = tmp_path_factory.mktemp("index")
    parts = [counted(rows) for rows, _ in runs]
    with UsageIndex.create(directory) as index:
        for part, (_, by_tally) in zip(parts, runs, strict=True):
            # what is undecided comes with the tallies, the rest with the run
            run = evolve(run_of(RULES, []), at=NOW // 1000, unread=UnreadAccesses() if by_tally else part)
            index.take(run, [evolve(tally_of([]), unread=part)] if by_tally else [])
    expected = UnreadAccesses.sum_of(part.until(NOW + DAY) for part in parts)
    with UsageIndex.open(directory) as index:
        assert index.unread(EARLIEST, LATEST) == expected
        assert index.unread(start, start + DAY) == expected.between(start, start + DAY)
        assert not index.unread(NOW + DAY + 1, LATEST)


def test_no_line_is_later_than_its_reading_even_if_a_clock_is_behind(tmp_path):
    with UsageIndex.create(tmp_path / "index") as index:
        run = evolve(
            run_of(RULES, [use(200)]), at=NOW // 1000, unread=counted([(None, None, "NO_HEAD", None, None, None)])
        )
        index.take(run, [tally_of([use(200)])])
        assert index.unread(200 * DAY, 201 * DAY)
        assert not index.unread(201 * DAY + 1, LATEST)


def older(directory, runs):
    """Make an index as an aclog made it that kept nothing of this."""
    with UsageIndex.create(directory) as index:
        for run in runs:
            index.take(run, [tally_of([use(50)])])
    with closing(sqlite3.connect(directory / FILE, isolation_level=None)) as database:
        database.execute("DROP TABLE unread")
        database.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize("writable", [False, True])
def test_what_an_older_index_could_not_read_is_unknown(tmp_path, writable):
    contents = [TakenContent(1, b"x" * 32, "log", 0)]
    older(tmp_path / "index", [evolve(run_of(RULES, [use(50)]), at=NOW // 1000, contents=contents)])
    unknown = {UnreadKey(None, None, OLDER_INDEX, None, None): UnreadSpan(0, None, NOW + DAY)}
    with UsageIndex.open(tmp_path / "index", writable=writable) as index:
        assert index.unread(0, NOW).spans == unknown
        assert not index.unread(NOW + DAY + 1, LATEST)
        assert len(index.lives()) == 1
    with closing(sqlite3.connect(tmp_path / "index" / FILE)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (3 if writable else 1,)
    with UsageIndex.create(tmp_path / "index") as index:  # again, or for the first time
        assert index.unread(0, NOW).spans == unknown


def test_a_node_that_kept_an_older_index_read_no_lines(tmp_path):
    older(tmp_path / "index", [evolve(run_of(RULES, [use(50)]), at=NOW // 1000, batch=Batch("node", 1))])
    for open_ in (UsageIndex.open, UsageIndex.create):
        with open_(tmp_path / "index") as index:
            assert not index.unread(EARLIEST, LATEST)


_BY_DAY = """
CREATE TABLE unread (principal TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL, day INTEGER NOT NULL,
    accesses INTEGER NOT NULL, first INTEGER, last INTEGER,
    PRIMARY KEY (principal, decision, reason, day)) WITHOUT ROWID;
"""


@settings(max_examples=examples(20))
@given(rows=st.lists(SPANS, max_size=8), start=st.integers(0, 9 * DAY))
def test_an_index_by_day_is_read_and_upgraded_without_brokers(tmp_path_factory, rows, start):
    directory = tmp_path_factory.mktemp("index") / "index"
    older(directory, [run_of(RULES, [use(50)])])
    days = {}
    for principal, decision, reason, first, length, _ in rows:
        last = 9 * DAY if length is None else (first or 0) + length
        key = (principal or "", decision or "", reason, -(1 << 31) if first is None else first // DAY)
        days.setdefault(key, []).append((first, last))
    with closing(sqlite3.connect(directory / FILE, isolation_level=None)) as database:
        database.execute(_BY_DAY)
        for key, spans in days.items():
            firsts, lasts = zip(*spans, strict=True)
            span = (len(spans), None if None in firsts else min(firsts), max(lasts))
            database.execute("INSERT INTO unread VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, *span))
        database.execute("PRAGMA user_version = 2")
    with UsageIndex.open(directory) as index:
        before, window = index.unread(EARLIEST, LATEST), index.unread(start, start + DAY)
    assert (before.total, {key.broker for key in before.spans} - {None}) == (len(rows), set())
    with UsageIndex.create(directory) as index:  # which upgrades it
        assert (index.unread(EARLIEST, LATEST), index.unread(start, start + DAY)) == (before, window)
        index.take(run_of(RULES, [use(51)]), [tally_of([use(51)])])
        assert index.unread(EARLIEST, LATEST) == before


def test_an_index_of_a_newer_schema_is_refused(tmp_path):
    UsageIndex.create(tmp_path / "index").close()
    with closing(sqlite3.connect(tmp_path / "index" / FILE, isolation_level=None)) as database:
        database.execute("PRAGMA user_version = 4")
    with pytest.raises(ConfigError, match="schema version 4 is newer than supported \\(3\\): upgrade aclog"):
        UsageIndex.open(tmp_path / "index")
