"""Accesses in lines of events, of aclog and others; a file may hold several kinds of one form."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any, Final, TypeAlias

import pyarrow as pa

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses import confluent_audit, redpanda_audit
from aclog.usage.accesses.access_batch import READ_COLUMNS, READ_SCHEMA, AccessBatch
from aclog.usage.accesses.aclog_events import of_audit_event, of_cloudevent, of_ocsf
from aclog.usage.accesses.event_access import AccessRow, EventAccess
from aclog.usage.accesses.json_object import JsonObject, object_of, text_at
from aclog.usage.accesses.unread_objects import note_unread
from aclog.usage.unread import UnreadCounter

ReadObject: TypeAlias = "Callable[[JsonObject], list[EventAccess] | Reason]"
_API_ACTIVITY: Final = 6003


def read_audit_events(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of aclog's audit events, or of a node's JSON log."""
    return batch_of(_objects(block), of_audit_event, zone)


def read_ocsf(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of OCSF events."""
    return batch_of(_objects(block), _of_ocsf, zone)


def read_cloudevents(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of CloudEvents."""
    return batch_of(_objects(block), _of_cloudevent, zone)


def batch_of(found: "Iterable[tuple[bytes, JsonObject | Reason]]", read: ReadObject, zone: tzinfo) -> AccessBatch:
    """Return the accesses of events, each with its line. One of several accesses of which one is none is one reject."""
    rows, rejects, unread = list[AccessRow](), Counter[Reason](), UnreadCounter()
    for line, each in found:
        told = each if isinstance(each, Reason) else _rows(read(each), zone)
        if isinstance(told, Reason):
            rejects[told] += 1
            note_unread(unread, told, line, None if isinstance(each, Reason) else each, zone)
        else:
            rows += told
    del rejects[Reason.BLANK]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(READ_COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, READ_SCHEMA, strict=True)]
    return AccessBatch(rows=pa.record_batch(arrays, schema=READ_SCHEMA), rejects=rejects, unread=unread.found)


def _rows(told: "list[EventAccess] | Reason", zone: tzinfo) -> "list[AccessRow] | Reason":
    if isinstance(told, Reason):
        return told
    rows = []
    for access in told:
        row = access.row(zone)
        if isinstance(row, Reason):
            return row
        rows.append(row)
    return rows


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


def _objects(block: bytes) -> "Iterator[tuple[bytes, JsonObject | Reason]]":
    return ((line, object_of(line)) for line in block.removesuffix(b"\n").split(b"\n"))
