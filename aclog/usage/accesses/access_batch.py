"""Accesses that were read, and how many lines were none."""

from collections import Counter
from typing import Final

import pyarrow as pa
from attrs import field, frozen

from aclog.authorizer.access_reject import Reason
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.unread import UnreadAccesses

TIMESTAMP: Final = "timestamp"
BROKER: Final = "broker"
LOGGED_DECISION: Final = "loggedDecision"

READ_COLUMNS: Final = (*REQUEST_COLUMNS, TIMESTAMP, BROKER, LOGGED_DECISION)
"""The columns of accesses that were read: text, plain or dictionary-encoded; TIMESTAMP is in us, null if unknown.

BROKER is the id of the broker that logged the access, LOGGED_DECISION what it decided (ALLOWED or DENIED), null where
the log does not say.
"""

TIME_TYPE: Final = pa.timestamp("us", tz="UTC")
READ_SCHEMA: Final = pa.schema([(name, TIME_TYPE if name == TIMESTAMP else pa.string()) for name in READ_COLUMNS])


@frozen(eq=False, kw_only=True)
class AccessBatch:
    """Some rows of an access log."""

    rows: pa.RecordBatch
    """The columns READ_COLUMNS."""
    rejects: Counter[Reason] = field(factory=Counter)
    """How many other lines there were, by the reason why they are no accesses; blank lines are not counted."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Those of them that tell of an access all the same."""
