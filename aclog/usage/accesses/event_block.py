"""Accesses in lines of events, of aclog and others; a file may hold several kinds of one form."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any

import pyarrow as pa

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.access_batch import READ_COLUMNS, READ_SCHEMA, AccessBatch
from aclog.usage.accesses.event_access import AccessRow
from aclog.usage.accesses.form import AccessForm
from aclog.usage.accesses.json_object import JsonObject, object_of, once
from aclog.usage.accesses.object_rows import rows_of_object
from aclog.usage.accesses.unread_objects import note_unread
from aclog.usage.unread import UnreadCounter


def read_audit_events(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of aclog's audit events, or of a node's JSON log."""
    return batch_of(objects_of(block), AccessForm.EVENTS, zone)


def read_ocsf(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of OCSF events."""
    return batch_of(objects_of(block), AccessForm.OCSF, zone)


def read_cloudevents(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of CloudEvents."""
    return batch_of(objects_of(block), AccessForm.CLOUDEVENTS, zone)


def batch_of(found: "Iterable[tuple[bytes, JsonObject | Reason]]", form: AccessForm, zone: tzinfo) -> AccessBatch:
    """Return the accesses of events, each with its line. One of several accesses of which one is none is one reject."""
    rows, rejects, unread = list[AccessRow](), Counter[Reason](), UnreadCounter()
    for line, each in found:
        read = each if isinstance(each, Reason) else rows_of_object(each, form, zone)
        if isinstance(read, Reason):
            rejects[read] += 1
            note_unread(unread, read, line, None if isinstance(each, Reason) else each, zone)
        else:
            rows += read
    del rejects[Reason.BLANK]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(READ_COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, READ_SCHEMA, strict=True)]
    return AccessBatch(rows=pa.record_batch(arrays, schema=READ_SCHEMA), rejects=rejects, unread=unread.found)


def objects_of(
    block: bytes, build: Callable[[list[tuple[str, object]]], JsonObject] = once
) -> "Iterator[tuple[bytes, JsonObject | Reason]]":
    """Return the lines of a block, each with its object, or the reason why there is none; `build` as for object_of."""
    return ((line, object_of(line, build)) for line in block.removesuffix(b"\n").split(b"\n"))
