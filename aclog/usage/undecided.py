"""Accesses that were read but cannot be decided, among distinct accesses with their decision codes."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from aclog.authorizer.index.layout import Int32s
from aclog.usage.decisions.access_columns import parse_columns
from aclog.usage.decisions.decisions import (
    REQUEST_COLUMNS,
    UNRESOLVED,
    AccessNumbers,
    DecisionCode,
    principal_error,
)
from aclog.usage.window import UnreadAccesses, UnreadCounter, UnreadSpan

UNDECIDED: Final = (
    DecisionCode.MISSING,
    DecisionCode.NO_OPERATION,
    DecisionCode.NO_RESOURCE_TYPE,
    DecisionCode.NO_HOST,
    DecisionCode.NO_PRINCIPAL,
    DecisionCode.WILDCARD_PRINCIPAL,
    DecisionCode.UNKNOWN_KAFKA,
)
"""The errors that are due to the log: the request, or the deciding Kafka, is unknown.

Errors due to ACLs on which Kafka's authorizer throws are not among them.
"""


def undecided_rows(
    rows: pa.RecordBatch | pa.Table, *, need_time: bool = True, as_written: bool = False
) -> UnreadAccesses:
    """Return the rows of a log (READ_COLUMNS) that no ACLs can decide, or that lack a required time.

    `as_written`: accesses are decided as written; other spellings with the same meaning (spelled_as_kafka) are not
    decided.
    """
    numbers = AccessNumbers(spelled=not as_written)
    access_of, _ = numbers.number([rows.column(name) for name in REQUEST_COLUMNS])
    columns = numbers.columns(slice(None))
    principals, errors = columns[0], errors_of(columns)
    is_undecided = (errors != UNRESOLVED)[access_of]
    times: Any = rows.column("timestamp").cast(pa.int64())
    positions = np.flatnonzero(is_undecided | (np.asarray(times.is_null()) & need_time))
    decisions: Any = rows.column("loggedDecision")
    brokers: Any = rows.column("broker") if "broker" in rows.schema.names else pa.nulls(len(times), pa.string())
    counter = UnreadCounter()
    places = zip(positions.tolist(), times.take(pa.array(positions)).to_pylist(), strict=True)
    for at, time in places:
        access = access_of[at]
        reason = DecisionCode(errors[access]) if is_undecided[at] else DecisionCode.NO_TIME
        span, broker = UnreadSpan(1, time, time), brokers[at].as_py()
        counter.add(principals[access].as_py(), decisions[at].as_py(), reason.name, span, broker=broker)
    return counter.total


def errors_of(columns: list[Any]) -> Int32s:
    """Return the error of each access; UNRESOLVED for one without."""
    accesses, codes = parse_columns(columns)
    requests = accesses.requests
    of_principal = [UNRESOLVED if (error := principal_error(each)) is None else error for each in requests.principals]
    codes[codes == UNRESOLVED] = np.array(of_principal, np.int32)[requests.principal_of]
    return codes


def undecided(counted: pa.Table, codes: Int32s) -> UnreadAccesses:
    """Return the undecided ones of some rows, given columns of COUNTED (`principal` to `last`) and their codes."""
    which = np.isin(codes, UNDECIDED)
    counter = UnreadCounter()
    if which.any():
        rows: Any = counted.select(["principal", "count", "first", "last"]).filter(pa.array(which))
        names = [DecisionCode(code).name for code in codes[which].tolist()]
        for name, row in zip(names, rows.to_pylist(), strict=True):
            is_timed = row["first"] <= row["last"]  # otherwise it has no time (AccessCounter.add_timeless)
            span = UnreadSpan(row["count"], row["first"] if is_timed else None, row["last"] if is_timed else None)
            counter.add(row["principal"], None, name, span)
    return counter.total
