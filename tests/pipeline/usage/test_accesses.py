"""What one task adds up, without Spark, for batches of any size and any memory limit."""

from collections import defaultdict
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.pipeline import usage as usage_accesses
from aclog.pipeline import usage as usage_rules
from aclog.pipeline.usage import _tallying
from aclog.usage import counting
from aclog.usage import counting as usage_tally
from aclog.usage.counting import rules_to_keep
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer, NecessaryAcls
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, ParsedAccess
from aclog.usage.decisions.intervals import AclIntervals
from aclog.usage.rules import WindowRules
from aclog.usage.window import Window
from tests.support.models import estates
from tests.support.runs.profiles import examples
from tests.usage.decisions.test_bulk_authorizer import LAST, columns_of, histories, table_of

WINDOW = Window.ending(datetime(1970, 1, 2, tzinfo=UTC), 3)


@frozen(eq=False)
class Sent:
    """In place of a broadcast."""

    value: object


ROWS = st.lists(
    st.tuples(estates.requests(odd=True).filter(lambda r: r.resource_name is not None), st.integers(-1, LAST + 1)),
    max_size=60,
)


def batch_of(rows) -> pa.RecordBatch:
    columns = columns_of([request for request, _ in rows])
    times = pa.array([time * 1000 for _, time in rows], pa.timestamp("us", tz="UTC"))
    return pa.record_batch([*columns, times], [*REQUEST_COLUMNS, "timestamp"])


def added_up(spans, rows, size):
    batches = [batch_of(rows[at : at + size]) for at in range(0, len(rows), size)]
    how = usage_accesses._How(settings=Settings(), window=WINDOW, own_time=True, known_from=None)
    found = usage_accesses._counting(None, Sent(spans), how)(iter(batches))
    told = pa.Table.from_batches(list(found), usage_accesses.COUNTED).to_pylist()
    about = [row for row in told if row["version"] < 0]
    assert [row["count"] for row in about if row["principal"] == "total"] == [len(rows)]
    return [row for row in told if row["version"] >= 0]


@pytest.mark.parametrize("most", [0, 3, 1 << 18])
def test_counts_are_complete_whatever_the_memory_limit(monkeypatch, most):
    monkeypatch.setattr(counting, "_MOST_HELD", most)
    monkeypatch.setattr(usage_accesses, "_ROWS", 5)

    @settings(max_examples=examples(40))
    @given(intervals=histories(), rows=ROWS, size=st.integers(1, 20))
    def check(intervals, rows, size):
        spans = AclIntervals.of_table(table_of(intervals))
        told = added_up(spans, rows, size)
        counts = defaultdict(int)
        for row in told:
            counts[tuple(row[name] for name in REQUEST_COLUMNS)] += row["count"]
            assert row["first"] <= row["last"]
        expected = defaultdict(int)
        for row in batch_of(rows).to_pylist():
            expected[tuple(row[name] for name in REQUEST_COLUMNS)] += 1
        assert counts == expected
        check_one_decision_per_step(spans, rows, told)

    check()


def check_one_decision_per_step(spans, rows, told):
    """All accesses between the first and the last time of a step get the same decision."""
    batch = batch_of(rows)
    times = np.asarray(batch.column("timestamp").cast(pa.int64()))
    codes = BulkAuthorizer.of(spans, Settings()).decide(batch.columns[:5], times)
    decided = list(zip(batch.to_pylist(), times.tolist(), codes.tolist(), strict=True))
    for step in told:
        seen = {
            code
            for row, time, code in decided
            if all(row[name] == step[name] for name in REQUEST_COLUMNS) and step["first"] <= time <= step["last"]
        }
        assert len(seen) == 1


@pytest.mark.parametrize("most", [0, 1 << 18])
def test_groups_are_emitted_before_there_are_many(monkeypatch, most):
    monkeypatch.setattr(usage_tally, "_MOST_GROUPS", most)
    monkeypatch.setattr(usage_rules, "_ROWS", 3)

    @settings(max_examples=examples(40))
    @given(intervals=histories(), rows=ROWS)
    def check(intervals, rows):
        rows = [(request, LAST + 1) for request, _ in rows if request.operation > AclOperation.ANY]
        rows = [row for row in rows if row[0].principal != "User:*"]
        intervals = [each for each in intervals if ":" in each.rule.acl.principal]
        spans = AclIntervals.of_table(table_of(intervals))
        acls = NecessaryAcls.of(spans, Settings())
        standing = acls.intervals.versions.in_force(acls.intervals.versions.end - 1)
        judged = WindowRules(
            throughout=standing, stays=np.zeros(len(standing), np.bool_), version=acls.intervals.versions.end - 1
        )
        columns = columns_of([request for request, _ in rows])
        codes = BulkAuthorizer.of(spans, Settings()).decide(columns)
        numbers = [pa.array(np.full(len(rows), value)) for value in (acls.intervals.versions.end - 1, 1, 7, 9)]
        names = [*REQUEST_COLUMNS, "version", "count", "first", "last", "decision_code", "decision_code_at_end"]
        batch = pa.record_batch([*columns, *numbers, pa.array(codes), pa.array(codes)], names)
        batches = [batch.slice(at, 3) for at in range(0, len(rows), 3)]
        found = list(_tallying(Sent(spans), Sent(judged), Settings())(iter(batches)))
        told = pa.Table.from_batches(found, usage_tally.TALLY)
        groups = {tuple(group) for group in told.column("group").to_pylist() if group is not None}
        expected = acls.find([parsed(request) for request, _ in rows], np.asarray(numbers[0]), codes).groups
        by_access = defaultdict(list)
        for access, ordinal in zip(*map(np.ndarray.tolist, expected), strict=True):
            by_access[access].append(ordinal)
        assert groups == {tuple(sorted(group)) for group in by_access.values()}

    check()


def parsed(request):
    kind = ResourceType(request.resource_type)
    return ParsedAccess(request.principal, request.host, int(request.operation), int(kind), request.resource_name)


def test_each_group_keeps_the_acl_of_highest_worth():
    groups = pa.array([[0, 1], None, [1, 2, 3], [4], [5, 6]], pa.list_(pa.int32()))
    worth = np.array([5, 9, 9, 1, 0, 2, 2])
    assert rules_to_keep(groups, worth).tolist() == [1, 4, 5]
    assert rules_to_keep(groups.slice(0, 0), worth).tolist() == []
