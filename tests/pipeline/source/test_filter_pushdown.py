"""Spark's filters as row selections, without a session."""

from datetime import UTC, datetime

import pytest

from aclog.pipeline.spark_versions import VERSION

if VERSION < (4, 1):
    pytest.skip("PySpark 4.0 has no filters of data sources; test_data_source reads with them", allow_module_level=True)

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from aclog.pipeline.source.rows import RowSelection, push

OFFSET, TIME, TYPE = ("offset",), ("timestamp",), ("record_type",)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MICROS = 1_795_262_400_000_000


@pytest.mark.parametrize(
    ("one", "selection"),
    [
        (EqualTo(OFFSET, 5), RowSelection().with_offsets(among=[5])),
        (In(OFFSET, (5, None, 7)), RowSelection().with_offsets(among=[5, 7])),
        (GreaterThan(OFFSET, 5), RowSelection().with_offsets(first=6)),
        (GreaterThanOrEqual(OFFSET, 5), RowSelection().with_offsets(first=5)),
        (LessThan(OFFSET, 5), RowSelection().with_offsets(last=4)),
        (LessThanOrEqual(OFFSET, 5), RowSelection().with_offsets(last=5)),
        (IsNotNull(OFFSET), RowSelection()),
        (IsNotNull(TYPE), RowSelection()),
        (IsNotNull(TIME), RowSelection().with_times()),
        (GreaterThan(TIME, NOON), RowSelection().with_times(first=MICROS + 1)),
        (LessThanOrEqual(TIME, NOON), RowSelection().with_times(last=MICROS)),
        (In(TIME, (NOON,)), RowSelection().with_times(among=[MICROS])),
        (EqualTo(TYPE, "X"), RowSelection().with_types(["X"])),
        (In(TYPE, ("X", "Y")), RowSelection().with_types(["X", "Y"])),
    ],
    # ids from the filter alone: a set in RowSelection has no fixed order, and xdist workers must agree on test ids
    ids=lambda value: "selection" if isinstance(value, RowSelection) else str(value),
)
def test_filters_that_are_applied(one, selection):
    assert push(RowSelection(), one) == selection


@pytest.mark.parametrize(
    "one",
    [
        IsNull(OFFSET),
        EqualNullSafe(OFFSET, 5),
        Not(EqualTo(OFFSET, 5)),
        EqualTo(("version",), 0),
        EqualTo(("acl", "id"), "x"),
        GreaterThan(TYPE, "X"),
        GreaterThan(("acl", "offset"), 5),
        EqualTo(OFFSET, "5"),
        EqualTo(TIME, 5),
    ],
    ids=str,
)
def test_filters_that_are_left_to_spark(one):
    assert push(RowSelection(), one) is None


def test_filters_combine():
    selection = RowSelection()
    for one in (GreaterThan(OFFSET, 5), LessThan(OFFSET, 9), In(OFFSET, (1, 7)), EqualTo(OFFSET, 7)):
        selection = push(selection, one)
    assert (selection.first_offset, selection.last_offset, selection.offsets) == (6, 8, frozenset({7}))
    assert selection.between(0, 8)
    assert not selection.between(8, 100)
