"""An access that an event tells of, as a row; all kinds of events are checked alike."""

from datetime import tzinfo
from typing import Final, TypeAlias

from attrs import frozen

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.acl import folded_name
from aclog.authorizer.audit_line_reader import operation_name, resource_type_name
from aclog.usage.accesses.access_times import micros_of_millis, micros_of_text

AccessRow: TypeAlias = tuple[str | int | None, ...]
"""The values of READ_COLUMNS."""

_DECISIONS: Final = frozenset({None, "ALLOWED", "DENIED"})


@frozen(kw_only=True)
class EventAccess:
    """What an event says of an access, as it says it; None where it says nothing."""

    principal: str | None
    host: str | None
    operation: str | None
    resource_type: str | None
    resource_name: str | None
    time: str | int | None
    """Text, or ms since 1970."""
    broker: str | None = None
    decision: str | None = None
    pattern_type: str | None = "LITERAL"

    def row(self, zone: tzinfo) -> "AccessRow | Reason":
        """Return the row, or the reason why it is no access; `zone` is that of times without an offset."""
        operation, kind = operation_name(self.operation or ""), resource_type_name(self.resource_type or "")
        if isinstance(self.time, int):
            time = micros_of_millis(self.time)
        else:
            time = None if self.time is None else micros_of_text(self.time, zone)
        decision = (
            self.decision
            if self.decision is None or self.decision in _DECISIONS
            else self.decision.replace("_", "").upper()
        )
        needed = (self.principal, self.host, self.operation, self.resource_type)
        faults = {
            Reason.BAD_TIMESTAMP: time is None,
            Reason.MISSING_VALUE: not all(needed) or self.resource_name is None,
            Reason.BAD_OPERATION: operation is None,
            Reason.BAD_RESOURCE_TYPE: kind is None,
            Reason.BAD_PATTERN_TYPE: self.pattern_type is not None and folded_name(self.pattern_type) != "LITERAL",
            Reason.BAD_DECISION: decision not in _DECISIONS,
        }
        fault = next((reason for reason, is_there in faults.items() if is_there), None)
        if fault is not None:
            return fault
        return (self.principal, self.host, operation, kind, self.resource_name, time, self.broker, decision)
