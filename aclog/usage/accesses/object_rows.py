"""The accesses in one object of JSON, of any form: what an object tells does not depend on those around it."""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Final, TypeAlias

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses import confluent_audit, redpanda_audit
from aclog.usage.accesses.access_batch import BROKER, LOGGED_DECISION, READ_COLUMNS, TIMESTAMP
from aclog.usage.accesses.access_times import micros_of_millis, micros_of_text
from aclog.usage.accesses.aclog_events import of_audit_event, of_cloudevent, of_ocsf
from aclog.usage.accesses.event_access import AccessRow, EventAccess
from aclog.usage.accesses.form import AccessForm, form_of_object
from aclog.usage.accesses.json_object import JsonObject, text_at
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

ReadObject: TypeAlias = "Callable[[JsonObject], list[EventAccess] | Reason]"
_API_ACTIVITY: Final = 6003
DECISIONS: Final = frozenset({None, "ALLOWED", "DENIED"})


def rows_of_object(value: JsonObject, form: AccessForm, zone: tzinfo) -> "list[AccessRow] | Reason":
    """Return the accesses of an object, or the reason why it is none.

    `form` is that of its file: an object that is none of it is read by its own one, if it has the keys of another.
    `zone` is that of times without an offset.
    """
    found = _rows(value, form, zone)
    if isinstance(found, Reason):
        own = form_of_object(value)
        return found if own is None or own is form else _rows(value, own, zone)
    return found


def _rows(value: JsonObject, form: AccessForm, zone: tzinfo) -> "list[AccessRow] | Reason":
    if form is AccessForm.JSONL:
        row = _plain_row(value, zone)
        return row if isinstance(row, Reason) else [row]
    found = _READERS[form](value)
    if isinstance(found, Reason):
        return found
    rows = []
    for access in found:
        row = access.row(zone)
        if isinstance(row, Reason):
            return row
        rows.append(row)
    return rows


def _plain_row(value: JsonObject, zone: tzinfo) -> "AccessRow | Reason":
    """Return the row of an object as of `authorize --requests`, with a time."""
    asked = [value.get(name) for name in REQUEST_COLUMNS]
    if not all(isinstance(text, str) and _is_unicode(text) for text in asked):
        return Reason.MISSING_VALUE
    time = _time(value.get(TIMESTAMP), zone)
    if time is None and value.get(TIMESTAMP) is not None:
        return Reason.BAD_TIMESTAMP
    broker, decision = value.get(BROKER), value.get(LOGGED_DECISION)
    if decision not in DECISIONS:
        return Reason.BAD_DECISION
    named = {**dict(zip(REQUEST_COLUMNS, asked, strict=True)), TIMESTAMP: time, LOGGED_DECISION: decision}
    named[BROKER] = str(broker) if isinstance(broker, str | int) and not isinstance(broker, bool) else None
    return tuple(named[name] for name in READ_COLUMNS)


def _time(value: object, zone: tzinfo) -> int | None:
    if isinstance(value, str):
        return micros_of_text(value, zone)
    return micros_of_millis(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_ocsf(value: JsonObject) -> "list[EventAccess] | Reason":
    if text_at(value, "metadata", "product", "name") == redpanda_audit.PRODUCT:
        return redpanda_audit.of_redpanda(value)
    if value.get("class_uid") != _API_ACTIVITY or text_at(value, "api", "service", "name") != "Kafka":
        return Reason.OTHER_MESSAGE
    return of_ocsf(value)


def _of_cloudevent(value: JsonObject) -> "list[EventAccess] | Reason":
    kind = text_at(value, "type") or ""
    if kind.startswith(confluent_audit.PREFIX):
        return confluent_audit.of_confluent(value)
    return of_cloudevent(value) if kind.startswith("aclog.access.") else Reason.OTHER_MESSAGE


_READERS: Final[Mapping[AccessForm, ReadObject]] = {
    AccessForm.EVENTS: of_audit_event,
    AccessForm.OCSF: _of_ocsf,
    AccessForm.CLOUDEVENTS: _of_cloudevent,
}
