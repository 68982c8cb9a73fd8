"""What one task adds up, without Spark: in pieces of any size, and with as little memory as it is given."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.pipeline.judge.accesses import ACCESS_COLUMNS, Asking
from aclog.pipeline.judge.judge import Judge, Settings
from aclog.pipeline.judge.needs import Needs
from aclog.pipeline.judge.rule_spans import RuleSpans
from aclog.pipeline.usage import accesses as usage_accesses
from aclog.pipeline.usage import rules as usage_rules
from aclog.pipeline.usage import tally as usage_tally
from aclog.pipeline.usage.accesses import regrouped
from aclog.pipeline.usage.rules import Judged, _tallying
from aclog.pipeline.usage.tally import kept_of
from tests.pipeline.deciding.test_judge import LAST, columns_of, histories, table_of
from tests.support.models import estates


@frozen(eq=False)
class Sent:
    """Stands for a broadcast."""

    value: object


ROWS = st.lists(
    st.tuples(estates.requests(odd=True).filter(lambda r: r.resource_name is not None), st.integers(-1, LAST + 1)),
    max_size=60,
)


def batch_of(rows) -> pa.RecordBatch:
    columns = columns_of([request for request, _ in rows])
    return pa.record_batch(
        [*columns, pa.array([time * 1000 for _, time in rows], pa.int64())], [*ACCESS_COLUMNS, "time"]
    )


def added_up(spans, rows, size):
    batches = [batch_of(rows[at : at + size]) for at in range(0, len(rows), size)]
    found = usage_accesses._adding_up(Sent(spans), Settings())(iter(batches))
    return pa.Table.from_batches(list(found), usage_accesses.COUNTED).to_pylist()


@pytest.mark.parametrize("most", [0, 3, 1 << 18])
def test_nothing_is_lost_where_little_is_held(monkeypatch, most):
    monkeypatch.setattr(usage_accesses, "_MOST_HELD", most)
    monkeypatch.setattr(usage_accesses, "_ROWS", 5)

    @settings(max_examples=40)
    @given(intervals=histories(), rows=ROWS, size=st.integers(1, 20))
    def check(intervals, rows, size):
        spans = RuleSpans.of_table(table_of(intervals))
        told = added_up(spans, rows, size)
        counts = defaultdict(int)
        for row in told:
            counts[tuple(row[name] for name in ACCESS_COLUMNS)] += row["count"]
            assert row["first"] <= row["last"]
        expected = defaultdict(int)
        for row in batch_of(rows).to_pylist():
            expected[tuple(row[name] for name in ACCESS_COLUMNS)] += 1
        assert counts == expected
        check_one_verdict_a_step(spans, rows, told)

    check()


def check_one_verdict_a_step(spans, rows, told):
    """Whenever an access came between the first and the last time of a step, it got the same verdict."""
    batch = batch_of(rows)
    verdicts = Judge.of(spans, Settings()).verdicts(batch.columns[:5], np.asarray(batch.column("time"))).tolist()
    for step in told:
        seen = {
            verdict
            for row, verdict in zip(batch.to_pylist(), verdicts, strict=True)
            if all(row[name] == step[name] for name in ACCESS_COLUMNS) and step["first"] <= row["time"] <= step["last"]
        }
        assert len(seen) == 1


@pytest.mark.parametrize("most", [0, 1 << 18])
def test_groups_are_handed_on_before_there_are_many(monkeypatch, most):
    monkeypatch.setattr(usage_tally, "_MOST_GROUPS", most)
    monkeypatch.setattr(usage_rules, "_ROWS", 3)

    @settings(max_examples=40)
    @given(intervals=histories(), rows=ROWS)
    def check(intervals, rows):
        rows = [(request, LAST + 1) for request, _ in rows if request.operation > AclOperation.ANY]
        rows = [row for row in rows if row[0].principal != "User:*"]
        intervals = [each for each in intervals if ":" in each.rule.acl.principal]
        spans = RuleSpans.of_table(table_of(intervals))
        needs = Needs.of(spans, Settings())
        standing = needs.spans.in_force(needs.spans.end - 1)
        judged = Judged(stood=standing, stays=np.zeros(len(standing), np.bool_), version=needs.spans.end - 1)
        columns = columns_of([request for request, _ in rows])
        verdicts = Judge.of(spans, Settings()).verdicts(columns)
        numbers = [pa.array(np.full(len(rows), value)) for value in (needs.spans.end - 1, 1, 7, 9)]
        names = [*ACCESS_COLUMNS, "version", "count", "first", "last", "verdict", "verdict_at_end"]
        batch = pa.record_batch([*columns, *numbers, pa.array(verdicts), pa.array(verdicts)], names)
        batches = [batch.slice(at, 3) for at in range(0, len(rows), 3)]
        found = list(_tallying(Sent(spans), Sent(judged), Settings())(iter(batches)))
        told = pa.Table.from_batches(found, usage_tally.TALLY)
        groups = {tuple(group) for group in told.column("group").to_pylist() if group is not None}
        expected = needs.find([asking(request) for request, _ in rows], np.asarray(numbers[0]), verdicts).groups
        by_access = defaultdict(list)
        for access, ordinal in zip(*map(np.ndarray.tolist, expected), strict=True):
            by_access[access].append(ordinal)
        assert groups == {tuple(sorted(group)) for group in by_access.values()}

    check()


def asking(request):
    kind = ResourceType(request.resource_type)
    return Asking(request.principal, request.host, int(request.operation), int(kind), request.resource_name)


def test_of_each_group_the_rule_is_kept_that_is_worth_most():
    groups = pa.array([[0, 1], None, [1, 2, 3], [4], [5, 6]], pa.list_(pa.int32()))
    worth = np.array([5, 9, 9, 1, 0, 2, 2])
    assert kept_of(groups, worth).tolist() == [1, 4, 5]
    assert kept_of(groups.slice(0, 0), worth).tolist() == []


def test_batches_are_regrouped():
    batches = [pa.record_batch([pa.array(range(n), pa.int64())], ["x"]) for n in (3, 0, 4, 1)]
    assert [len(table) for table in regrouped(iter(batches), 5)] == [7, 1]
