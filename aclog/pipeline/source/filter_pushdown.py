"""Spark's filters on offset, timestamp and record_type as row selections, which apply them in full."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from aclog.pipeline.source.row_selection import RowSelection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def push(selection: RowSelection, one: Filter) -> RowSelection | None:
    """Return the selection narrowed by a filter, None if the filter is left to Spark."""
    match one:
        case IsNotNull(attribute=("offset",) | ("record_type",)):
            return selection
        case IsNotNull(attribute=("timestamp",)):
            return selection.with_times()
        case In(attribute=(name,), value=values):
            return _among(selection, name, list(values))
        case EqualTo(attribute=(name,), value=value):
            return _among(selection, name, [value])
        case GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            return _bound(selection, one)
    return None


def _among(selection: RowSelection, name: str, values: list[Any]) -> RowSelection | None:
    values = [value for value in values if value is not None]  # a null equals nothing
    if name == "record_type" and all(isinstance(value, str) for value in values):
        return selection.with_types(values)
    numbers = [_number(name, value) for value in values]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or name not in {"offset", "timestamp"}:
        return None
    return selection.with_offsets(among=known) if name == "offset" else selection.with_times(among=known)


def _bound(
    selection: RowSelection, one: GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
) -> RowSelection | None:
    name = one.attribute[0] if len(one.attribute) == 1 else ""
    number = _number(name, one.value)
    if number is None:
        return None
    number += isinstance(one, GreaterThan) - isinstance(one, LessThan)
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return selection.with_offsets(first=number) if name == "offset" else selection.with_times(first=number)
    return selection.with_offsets(last=number) if name == "offset" else selection.with_times(last=number)


def _number(name: str, value: Any) -> int | None:
    """Return an offset, or microseconds since 1970; None for a value of any other type."""
    if name == "offset" and isinstance(value, int):
        return value
    if name == "timestamp" and isinstance(value, datetime):
        # a naive datetime is in the local zone of this process
        aware = value if value.tzinfo is not None else value.astimezone(UTC)
        return (aware - _EPOCH) // _MICROSECOND
    return None
