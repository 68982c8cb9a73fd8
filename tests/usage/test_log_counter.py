"""The counts of a log's rows agree with a loop over them, whatever the batches and the memory limit."""

from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.usage import counting
from aclog.usage.counting import COUNTED_BY_DAY, AccessCounter, LogCounter, RowCounts, SeenAccesses
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import DAY, Window, micros_of
from tests.support.runs.profiles import examples

END = datetime(1970, 1, 3, 12, tzinfo=UTC)
WINDOW = Window.ending(END, 3)
"""It begins before 1970: days are counted down there, too."""

TEXTS = st.sampled_from(["User:a", "User:b", None])
TIMES = st.one_of(st.none(), st.integers(-3 * DAY, 4 * DAY))
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["orders", "pay"]), TIMES), max_size=40)
SCHEMA = pa.schema([*((name, pa.string()) for name in REQUEST_COLUMNS), ("timestamp", pa.timestamp("us", tz="UTC"))])


def batch_of(rows) -> pa.RecordBatch:
    texts = [(principal, "127.0.0.1", "READ", "TOPIC", name) for principal, name, _ in rows]
    columns = [pa.array(column, pa.string()) for column in zip(*texts, strict=True)] or [pa.array([], pa.string())] * 5
    times = pa.array([time for *_, time in rows], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.record_batch([*columns, times], schema=SCHEMA)


@pytest.mark.parametrize("most", [0, 3, 1 << 20])
def test_counts_agree_with_a_loop(monkeypatch, most):
    monkeypatch.setattr(counting, "_MOST_LOOSE", most)

    @settings(max_examples=examples(60))
    @given(rows=ROWS, size=st.integers(1, 20), known_from=st.one_of(st.none(), st.integers(-DAY, DAY)))
    def check(rows, size, known_from):
        counter = LogCounter(
            accesses=AccessCounter(SeenAccesses(None, version=7), by_day=True), window=WINDOW, known_from=known_from
        )
        for at in range(0, len(rows), size):
            counter.add(batch_of(rows[at : at + size]))

        inside = [row for row in rows if row[2] is not None and micros_of(WINDOW.start) <= row[2] <= micros_of(END)]
        counted = [row for row in inside if known_from is None or row[2] >= known_from]
        timed = [row for row in rows if row[2] is not None]
        assert counter.rows == RowCounts(
            total=len(rows),
            without_time=len(rows) - len(timed),
            outside=len(timed) - len(inside),
            before_log=len(inside) - len(counted),
        )
        assert counter.days == {time // DAY for *_, time in timed}
        table = counter.accesses.table()
        assert table.schema == COUNTED_BY_DAY
        found = {(row["principal"], row["resourceName"], row["day"]): row for row in table.to_pylist()}
        assert len(found) == len(table)
        assert {key: row["count"] for key, row in found.items()} == Counter((p, n, t // DAY) for p, n, t in counted)
        for key, row in found.items():
            times = [t for p, n, t in counted if (p, n, t // DAY) == key]
            assert (row["first"], row["last"], row["version"]) == (min(times), max(times), 7)

    check()


def test_a_day_begins_at_midnight():
    times = [-1, 0, DAY - 1, DAY]
    counter = LogCounter(accesses=AccessCounter(SeenAccesses(None), by_day=True), window=WINDOW, known_from=None)
    counter.add(batch_of([("User:a", "orders", time) for time in times]))
    counts = {row["day"]: row["count"] for row in counter.accesses.table().to_pylist()}
    assert counts == {-1: 1, 0: 2, 1: 1}
