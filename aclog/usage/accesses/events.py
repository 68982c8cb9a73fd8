"""Accesses in JSON objects and audit events: of aclog, Confluent and Redpanda (OCSF)."""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from aclog.authorizer.acl import folded_name
from aclog.authorizer.audit import HEAD, MESSAGE, ParsedLine, Reason, operation_name, resource_type_name
from aclog.metalog.columns import Int64s
from aclog.metalog.values import frozen
from aclog.usage.accesses.access_batch import (
    APACHE,
    BROKER,
    LOGGED_DECISION,
    READ_COLUMNS,
    READ_SCHEMA,
    TIME_TYPE,
    TIMESTAMP,
    AccessBatch,
    AccessForm,
    ReadLines,
    between,
    form_of_object,
    joined,
    layout_times,
    micros_of_millis,
    micros_of_text,
    note_unread,
    read_each,
    read_texts,
    times_of_millis,
    times_of_texts,
)
from aclog.usage.accesses.containers import TIME_KEYS, micros_of_value, read_objects, texts_in
from aclog.usage.accesses.layouts import RARE, Profile, cleaned, detect
from aclog.usage.accesses.lines import BRACED_TEXT, JsonObject, at, number_at, object_of, once, once_each, text_at
from aclog.usage.accesses.times import ISO
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import UnreadCounter, UnreadSpan

# An access of an event, as a row; all kinds of events are validated alike.


AccessRow: TypeAlias = tuple[str | int | None, ...]
"""The values of READ_COLUMNS."""

_DECISIONS: Final = frozenset({None, "ALLOWED", "DENIED"})


@frozen(kw_only=True)
class EventAccess:
    """The fields of an access as in its event; None for a missing one."""

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
        """Return the row, or the reason why it is not an access; `zone` applies to times without an offset."""
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


# aclog's own events: of the audit log, and of `spark authorize --as`.


def of_audit_event(value: JsonObject) -> "list[EventAccess] | Reason":
    """Read an event of aclog/authorizer/audit_event.avsc: bare, or under the key `audit` as in a node's JSON log."""
    if "audit" not in value and "logger" in value:
        return Reason.OTHER_LOGGER
    event = value.get("audit", value)
    result = text_at(event, "result")
    if result is None:
        return Reason.BAD_DECISION
    return [
        EventAccess(
            principal=text_at(event, "principal"),
            host=text_at(event, "host"),
            operation=text_at(event, "operation"),
            resource_type=text_at(event, "resourceType"),
            resource_name=text_at(event, "resourceName"),
            time=number_at(event, "timestamp"),
            decision=result,
            pattern_type=text_at(event, "patternType"),
        )
    ]


def of_ocsf(value: JsonObject) -> list[EventAccess]:
    """Read an OCSF event of `spark authorize --as ocsf`."""
    return [
        EventAccess(
            principal=text_at(value, "actor", "user", "uid"),
            host=text_at(value, "src_endpoint", "ip"),
            operation=text_at(value, "api", "operation"),
            resource_type=text_at(value, "resources", 0, "type"),
            resource_name=text_at(value, "resources", 0, "name"),
            time=number_at(value, "time"),
            decision=text_at(value, "unmapped", "loggedDecision")
            or {1: "ALLOWED", 2: "DENIED"}.get(number_at(value, "status_id") or 0),
        )
    ]


def of_cloudevent(value: JsonObject) -> list[EventAccess]:
    """Read a CloudEvent of `spark authorize --as cloudevents`."""
    data = at(value, "data")
    return [
        EventAccess(
            principal=text_at(data, "principal"),
            host=text_at(data, "host"),
            operation=text_at(data, "operation"),
            resource_type=text_at(data, "resourceType"),
            resource_name=text_at(data, "resourceName"),
            time=text_at(value, "time"),
            decision=text_at(data, "decision"),
        )
    ]


# Confluent's audit log (Cloud and Platform): CloudEvents of type io.confluent.kafka.server/authorization.


PREFIX: Final = "io.confluent."
_AUTHORIZATION: Final = "io.confluent.kafka.server/authorization"
_ACCOUNTS: Final = ("confluentServiceAccount", "confluentUser")


def of_confluent(value: JsonObject) -> "list[EventAccess] | Reason":
    """Read an authorization; other events, and those of services other than Kafka (mds.Authorize), are not accesses."""
    data = at(value, "data")
    if value.get("type") != _AUTHORIZATION or not (text_at(data, "methodName") or "kafka.").startswith("kafka."):
        return Reason.OTHER_MESSAGE
    info = at(data, "authorizationInfo")
    return [
        EventAccess(
            principal=_principal(data),
            host=_host(data),
            operation=text_at(info, "operation"),
            resource_type=text_at(info, "resourceType"),
            resource_name=text_at(info, "resourceName"),
            time=text_at(value, "time"),
            decision={True: "ALLOWED", False: "DENIED"}.get(at(info, "granted")),
            pattern_type=text_at(info, "patternType"),
        )
    ]


def _principal(data: object) -> str | None:
    """Return the principal: a text, or an object with an account of Confluent Cloud."""
    principal = text_at(data, "authenticationInfo", "principal")
    if principal is not None:
        return principal
    named = (text_at(data, "authenticationInfo", "principal", kind, "resourceId") for kind in _ACCOUNTS)
    account = next((name for name in named if name), None)
    return None if account is None else f"User:{account}"


def _host(data: object) -> str | None:
    """Return the client's address, whose key depends on the version; Java formats it with a leading slash."""
    places: tuple[tuple[str | int, ...], ...] = (
        ("requestMetadata", "clientAddress", 0, "ip"),
        ("requestMetadata", "clientAddress"),
        ("requestMetadata", "client_address"),
        ("clientAddress", 0, "ip"),
    )
    address = next((text for text in (text_at(data, *place) for place in places) if text), None)
    return None if address is None else address.rpartition("/")[2]


# Redpanda's audit log: OCSF events of class 6003 for requests of Kafka's protocol.
#
# An event has the request and its activity (create, read, update or delete), but not the ACL operation. Kafka
# authorizes one operation per request and resource type; where several are possible, the activity determines it.


PRODUCT: Final = "Redpanda"

_CREATE, _READ, _UPDATE, _DELETE = 1, 2, 3, 4
_MOST_COUNTED: Final = 1_000_000
"""Redpanda aggregates equal accesses within about half a second."""

_OPERATIONS: Final = {
    "produce": {"topic": "WRITE", "transactional_id": "WRITE", "cluster": "IDEMPOTENT_WRITE"},
    "fetch": {"topic": "READ", "cluster": "CLUSTER_ACTION"},
    "list_offsets": {"topic": "DESCRIBE"},
    "offset_for_leader_epoch": {"topic": "DESCRIBE"},
    "offset_commit": {"topic": "READ", "group": "READ"},
    "offset_fetch": {"topic": "DESCRIBE", "group": "DESCRIBE"},
    "offset_delete": {"topic": "READ", "group": "DELETE"},
    "find_coordinator": {"group": "DESCRIBE", "transactional_id": "DESCRIBE"},
    "join_group": {"group": "READ"},
    "sync_group": {"group": "READ"},
    "heartbeat": {"group": "READ"},
    "leave_group": {"group": "READ"},
    "describe_groups": {"group": "DESCRIBE"},
    "list_groups": {"cluster": "DESCRIBE", "group": "DESCRIBE"},
    "delete_groups": {"group": "DELETE"},
    "create_topics": {"topic": "CREATE", "cluster": "CREATE"},
    "delete_topics": {"topic": "DELETE"},
    "delete_records": {"topic": "DELETE"},
    "create_partitions": {"topic": "ALTER"},
    "describe_configs": {"topic": "DESCRIBE_CONFIGS", "cluster": "DESCRIBE_CONFIGS"},
    "alter_configs": {"topic": "ALTER_CONFIGS", "cluster": "ALTER_CONFIGS"},
    "incremental_alter_configs": {"topic": "ALTER_CONFIGS", "cluster": "ALTER_CONFIGS"},
    "describe_acls": {"cluster": "DESCRIBE"},
    "create_acls": {"cluster": "ALTER"},
    "delete_acls": {"cluster": "ALTER"},
    "init_producer_id": {"transactional_id": "WRITE", "cluster": "IDEMPOTENT_WRITE"},
    "add_partitions_to_txn": {"transactional_id": "WRITE", "topic": "WRITE"},
    "add_offsets_to_txn": {"transactional_id": "WRITE", "group": "READ"},
    "end_txn": {"transactional_id": "WRITE"},
    "txn_offset_commit": {"transactional_id": "WRITE", "group": "READ", "topic": "READ"},
    "describe_transactions": {"transactional_id": "DESCRIBE"},
    "list_transactions": {"transactional_id": "DESCRIBE"},
    "describe_producers": {"topic": "READ"},
    "describe_log_dirs": {"cluster": "DESCRIBE"},
    "describe_cluster": {"cluster": "DESCRIBE"},
    "alter_partition_reassignments": {"cluster": "ALTER"},
    "list_partition_reassignments": {"cluster": "DESCRIBE"},
    "describe_client_quotas": {"cluster": "DESCRIBE_CONFIGS"},
    "alter_client_quotas": {"cluster": "ALTER_CONFIGS"},
    "describe_user_scram_credentials": {"cluster": "DESCRIBE"},
    "alter_user_scram_credentials": {"cluster": "ALTER"},
}
"""The ACL operation by request and resource type."""
_METADATA: Final = {_READ: "DESCRIBE", _CREATE: "CREATE"}
"""Metadata describes topics and clusters, and may create topics."""
_ACTIVITIES: Final = {
    "READ": _READ,
    "DESCRIBE": _READ,
    "DESCRIBE_CONFIGS": _READ,
    "CREATE": _CREATE,
    "WRITE": _UPDATE,
    "ALTER": _UPDATE,
    "ALTER_CONFIGS": _UPDATE,
    "DELETE": _DELETE,
}
"""Redpanda's names of operations; others are not compared."""


def of_redpanda(value: JsonObject) -> "list[EventAccess] | Reason":
    """Read an event: an access for each resource, as many times as its count.

    Requests to interfaces other than Kafka's are not accesses, nor are requests without authorization.
    """
    if value.get("class_uid") != 6003 or "kafka" not in (text_at(value, "api", "service", "name") or "").lower():
        return Reason.OTHER_MESSAGE
    resources, times = at(value, "resources"), _times(value)
    if not isinstance(resources, list) or not resources:
        return Reason.OTHER_MESSAGE
    if times is None:
        return Reason.MALFORMED
    name = text_at(value, "actor", "user", "name")
    accesses = []
    for resource in resources:
        operation = _operation(value, text_at(resource, "type"))
        if operation is None:
            return Reason.BAD_OPERATION
        accesses += [
            EventAccess(
                principal=f"User:{name}" if name else None,
                host=text_at(value, "src_endpoint", "ip"),
                operation=operation,
                resource_type=text_at(resource, "type"),
                resource_name=text_at(resource, "name"),
                time=time,
                broker=text_at(value, "metadata", "product", "uid"),
                decision={1: "ALLOWED", 2: "DENIED"}.get(number_at(value, "status_id") or 0),
            )
            for time in times
        ]
    return accesses


def _operation(value: JsonObject, kind: str | None) -> str | None:
    request, done = text_at(value, "api", "operation"), number_at(value, "activity_id")
    if request == "metadata":
        return _METADATA.get(done or 0)
    operation = _OPERATIONS.get(request or "", {}).get((kind or "").lower())
    activity = _ACTIVITIES.get(operation or "")
    return operation if activity is None or activity == done else None


def _times(value: JsonObject) -> list[int | None] | None:
    """Return the time of each access; only the first and the last are in the event. None: an invalid count."""
    first, count = number_at(value, "time"), number_at(value, "count")
    if count is None:
        return [first]
    if not 1 <= count <= _MOST_COUNTED:
        return None
    start, end = number_at(value, "start_time"), number_at(value, "end_time")
    return [first if start is None else start, *[first if end is None else end] * (count - 1)]


# The accesses in a JSON object of any form, independent of the objects around it.


ReadObject: TypeAlias = "Callable[[JsonObject], list[EventAccess] | Reason]"
_API_ACTIVITY: Final = 6003


def rows_of_object(
    value: JsonObject, form: AccessForm, zone: tzinfo, profile: Profile = APACHE
) -> "list[AccessRow] | Reason":
    """Return the accesses of an object, or the reason why it has none.

    `form` is that of its file: an object with the keys of another form is read as that form. `zone` applies to times
    without an offset, `profile` to messages of Kafka in texts.
    """
    rows = _rows(value, form, zone, profile)
    if isinstance(rows, Reason):
        own = form_of_object(value)
        return rows if own is None or own is form else _rows(value, own, zone, profile)
    return rows


def _rows(value: JsonObject, form: AccessForm, zone: tzinfo, profile: Profile) -> "list[AccessRow] | Reason":
    if form is AccessForm.JSONL:
        row = _plain_row(value, zone)
        return row if isinstance(row, Reason) else [row]
    if form is AccessForm.KAFKA_JSON:
        return of_kafka_json(value, zone, profile)
    accesses = _READERS[form](value)
    if isinstance(accesses, Reason):
        return accesses
    rows = []
    for access in accesses:
        row = access.row(zone)
        if isinstance(row, Reason):
            return row
        rows.append(row)
    return rows


def _plain_row(value: JsonObject, zone: tzinfo) -> "AccessRow | Reason":
    """Return the row of an object as for `authorize --requests`, with a time."""
    values = [value.get(name) for name in REQUEST_COLUMNS]
    if not all(isinstance(text, str) and _is_unicode(text) for text in values):
        return Reason.MISSING_VALUE
    time = _time(value.get(TIMESTAMP), zone)
    if time is None and value.get(TIMESTAMP) is not None:
        return Reason.BAD_TIMESTAMP
    broker, decision = value.get(BROKER), value.get(LOGGED_DECISION)
    if decision not in _DECISIONS:
        return Reason.BAD_DECISION
    named = {**dict(zip(REQUEST_COLUMNS, values, strict=True)), TIMESTAMP: time, LOGGED_DECISION: decision}
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
    if text_at(value, "metadata", "product", "name") == PRODUCT:
        return of_redpanda(value)
    if value.get("class_uid") != _API_ACTIVITY or text_at(value, "api", "service", "name") != "Kafka":
        return Reason.OTHER_MESSAGE
    return of_ocsf(value)


def _of_cloudevent(value: JsonObject) -> "list[EventAccess] | Reason":
    kind = text_at(value, "type") or ""
    if kind.startswith(PREFIX):
        return of_confluent(value)
    return of_cloudevent(value) if kind.startswith("aclog.access.") else Reason.OTHER_MESSAGE


def of_kafka_json(value: JsonObject, zone: tzinfo, profile: Profile = APACHE) -> "list[AccessRow] | Reason":
    """Return the accesses of Kafka's messages in an object, or the first reason why one cannot be read."""
    accesses = read_objects(value, zone, profile)
    if isinstance(accesses, Reason):
        return accesses
    rows = []
    for time, read in accesses:
        named = {**dict(zip(REQUEST_COLUMNS, read[: len(REQUEST_COLUMNS)], strict=True)), TIMESTAMP: time}
        named |= {LOGGED_DECISION: read.decision, BROKER: None}
        rows.append(tuple(named[name] for name in READ_COLUMNS))
    return rows


_READERS: Final[Mapping[AccessForm, ReadObject]] = {
    AccessForm.EVENTS: of_audit_event,
    AccessForm.OCSF: _of_ocsf,
    AccessForm.CLOUDEVENTS: _of_cloudevent,
}


# Accesses in lines of events, of aclog and others; a file may have several kinds of one form.


def read_audit_events(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of aclog's audit events, or of a node's JSON log."""
    return batch_of(objects_of(block), AccessForm.EVENTS, zone)


def read_ocsf(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of OCSF events."""
    return batch_of(objects_of(block), AccessForm.OCSF, zone)


def read_cloudevents(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of CloudEvents."""
    return batch_of(objects_of(block), AccessForm.CLOUDEVENTS, zone)


@frozen(eq=False, kw_only=True)
class _Order:
    """The positions of events among lines in the order of their times, and the times of the other lines."""

    events: Int64s
    others: Int64s
    times: Int64s
    """In us since 1970, of `others`."""

    def spans(self, own: Mapping[int, int]) -> "Callable[[int], UnreadSpan]":
        """Return what returns when the event of a number was logged; `own` are the times of events by number."""
        places = np.concatenate((self.others, self.events[list(own)]))
        order = np.argsort(places, kind="stable")
        places, times = places[order], np.concatenate((self.times, np.array([*own.values()], np.int64)))[order]
        return lambda number: between(times, int(np.searchsorted(places, self.events[number])))


def batch_of(
    events: "Iterable[tuple[bytes, JsonObject | Reason]]",
    form: AccessForm,
    zone: tzinfo,
    profile: Profile = APACHE,
    order: _Order | None = None,
) -> AccessBatch:
    """Return the accesses of events, each with its line; `order`: None for lines in any order.

    If one access of an event is invalid, the event is a reject.
    """
    rows, rejects, unread = list[AccessRow](), Counter[Reason](), UnreadCounter()
    times, failed = dict[int, int](), list[tuple[int, Reason, bytes, JsonObject | None]]()
    for number, (line, each) in enumerate(events):
        read = each if isinstance(each, Reason) else rows_of_object(each, form, zone, profile)
        if isinstance(read, Reason):
            rejects[read] += 1
            failed.append((number, read, line, None if isinstance(each, Reason) else each))
        else:
            rows += read
            if order is not None and read and isinstance(time := read[-1][_TIME_AT], int):
                times[number] = time
    span_of = None if order is None or not failed else order.spans(times)
    for number, reason, line, value in failed:
        note_unread(unread, reason, line, value, zone, None if span_of is None else partial(span_of, number))
    del rejects[Reason.BLANK]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(READ_COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, READ_SCHEMA, strict=True)]
    return AccessBatch(rows=pa.record_batch(arrays, schema=READ_SCHEMA), rejects=rejects, unread=unread.total)


_TIME_AT: Final = READ_COLUMNS.index(TIMESTAMP)


def objects_of(
    block: bytes, build: Callable[[list[tuple[str, object]]], JsonObject] = once
) -> "Iterator[tuple[bytes, JsonObject | Reason]]":
    """Return the lines of a block, each with its object, or the reason why it has none; `build` as for object_of."""
    return ((line, object_of(line, build)) for line in block.removesuffix(b"\n").split(b"\n"))


# Accesses in JSON lines, strictly: one object per line, no duplicate column, nothing after the object.
#
# Arrow parses complete blocks. A block that Arrow rejects, or might interpret differently, is read line by line.


_NOT_AN_OBJECT: Final = re.compile(rb"^(?!\{[^\n]*\}\r?$)", re.MULTILINE)
"""A line that does not begin and end with a brace."""
_once: Final = once_each(READ_COLUMNS)
"""As in Arrow, which ignores duplicates of other keys."""


def read_json(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of lines; `zone` applies to times without an offset."""
    batch = _as_a_whole(block, zone)
    return _line_by_line(block, zone) if batch is None else batch


def _as_a_whole(block: bytes, zone: tzinfo) -> AccessBatch | None:
    """Read a block whose lines are all plain accesses; None if one of them may not be."""
    whole = block if block.endswith(b"\n") else block + b"\n"
    # with a brace at both ends of each line and as many objects as lines, each line is one object
    if _NOT_AN_OBJECT.search(whole, 0, len(whole) - 1) or not _is_utf8(block):
        return None
    # if one line has a number in a column, all do, or the block is read line by line
    numbers = {name for name in (TIMESTAMP, BROKER) if _is_number(name, whole[: whole.index(b"\n")])}
    schema = pa.schema([(name, pa.int64() if name in numbers else pa.string()) for name in READ_COLUMNS])
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(whole) + 1)
    try:
        table = pj.read_json(io.BytesIO(whole), reading, options)
    except pa.ArrowInvalid:
        return None
    return _of_table(table, whole.count(b"\n"), zone)


def _is_number(name: str, line: bytes) -> bool:
    return re.search(rb'"%s"\s*:\s*-?[0-9]' % name.encode(), line) is not None


def _of_table(table: pa.Table, lines: int, zone: tzinfo) -> AccessBatch | None:
    columns: dict[str, Any] = {name: table.column(name).combine_chunks() for name in READ_COLUMNS}
    if len(table) != lines or any(columns[name].null_count for name in REQUEST_COLUMNS):
        return None
    times, decisions = columns[TIMESTAMP], pc.unique(columns[LOGGED_DECISION]).to_pylist()
    columns[TIMESTAMP] = times_of_millis(times) if times.type == pa.int64() else times_of_texts(times, zone)
    if columns[TIMESTAMP].null_count > times.null_count or not _DECISIONS.issuperset(decisions):
        return None
    columns[BROKER] = columns[BROKER].cast(pa.string())
    return AccessBatch(rows=pa.record_batch([columns[name] for name in READ_COLUMNS], schema=READ_SCHEMA))


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _line_by_line(block: bytes, zone: tzinfo) -> AccessBatch:
    return batch_of(objects_of(block, _once), AccessForm.JSONL, zone)


# Kafka's messages in JSON lines. Arrow parses lines that are alike, and the texts of a block are read together.


_MESSAGE: Final = MESSAGE.encode()
_ESCAPED: Final = MESSAGE.replace("=", "\\u003d").encode()


@frozen(kw_only=True)
class _Places:
    """The paths of the message and of its time in the objects of a block."""

    message: tuple[str, ...]
    time: tuple[str, ...] | None
    time_kind: pa.DataType | None
    rivals: tuple[bytes, ...]
    """Keys that come before that of the time, if an object has them."""

    @classmethod
    def of(cls, value: JsonObject, zone: tzinfo) -> "_Places | None":
        """Return the paths in an object; None if it is not alike enough to others."""
        texts = texts_in(value)
        path = texts[0].path if len(texts) == 1 else ()
        if not path or not all(isinstance(key, str) for key in path) or at(value, *path) != texts[0].text:
            return None
        message = tuple(map(str, path))
        for size in range(len(message) - 1, -1, -1):
            inner = at(value, *message[:size])
            for number, key in enumerate(TIME_KEYS):
                kind: Any = (
                    _KINDS.get(type(inner.get(key))) if micros_of_value(inner.get(key), zone) is not None else None
                )
                if kind is not None and key != message[size]:
                    rivals = tuple(f'"{each}"'.encode() for each in TIME_KEYS[:number])
                    return cls(message=message, time=(*message[:size], key), time_kind=kind, rivals=rivals)
        return cls(message=message, time=None, time_kind=None, rivals=())

    def schema(self) -> pa.Schema:
        """Return the schema of both columns, nested as the objects are."""
        tree: dict[str, Any] = {}
        for path, kind in ((self.message, pa.string()), (self.time, self.time_kind)):
            inner = tree
            for key in (path or ())[:-1]:
                inner = inner.setdefault(key, {})
            if path:
                inner[path[-1]] = kind
        return pa.schema([pa.field(name, _type_of(each)) for name, each in tree.items()])


_KINDS: Final = {str: pa.string(), int: pa.int64(), float: pa.float64()}


def _type_of(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    return pa.struct([pa.field(name, _type_of(each)) for name, each in tree.items()])


def read_kafka_json(block: bytes, zone: tzinfo, profile: Profile = APACHE) -> AccessBatch:
    """Read a block of JSON lines with messages of Kafka; `zone` applies to times without an offset."""
    count = _objects_in(block)
    braced, whole = np.arange(count or 0), block
    if count is None:
        lines = block.removesuffix(b"\n").split(b"\n")
        count = len(lines)
        is_braced = [line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines]
        braced = np.flatnonzero(is_braced)
        whole = b"\n".join(line for line, is_one in zip(lines, is_braced, strict=True) if is_one)
    batch = _alike(whole, len(braced), zone, profile)
    rows, read = (pa.RecordBatch.from_pylist([], READ_SCHEMA), np.zeros(0, np.int64)) if batch is None else batch
    if len(read) == count:
        return AccessBatch(rows=rows)
    lines, read = block.removesuffix(b"\n").split(b"\n"), braced[read]
    others = np.setdiff1d(np.arange(len(lines)), read, assume_unique=True)
    events = [(lines[at], object_of(lines[at])) for at in others.tolist()]
    order = _Order(events=others, others=read, times=np.asarray(rows.column(TIMESTAMP).cast(pa.int64())))
    rest = batch_of(events, AccessForm.KAFKA_JSON, zone, profile, order)
    both = pa.Table.from_batches([rows, rest.rows], READ_SCHEMA).combine_chunks().to_batches()
    return AccessBatch(rows=both[0] if both else rows, rejects=rest.rejects, unread=rest.unread)


def _alike(whole: bytes, count: int, zone: tzinfo, profile: Profile) -> tuple[pa.RecordBatch, Int64s] | None:
    """Return the accesses of objects that are alike, and the position of the line of each; None if they are not."""
    first = whole.split(b"\n", _FIRST)[:_FIRST]
    value = next((each for line in first if not isinstance(each := object_of(line), Reason)), None)
    places = None if value is None else _Places.of(value, zone)
    if places is None or not _is_utf8(whole) or (b"\\" in whole and _ESCAPED in whole):
        return None
    options = pj.ParseOptions(explicit_schema=places.schema(), unexpected_field_behavior="ignore")
    try:
        reading = pj.ReadOptions(use_threads=False, block_size=len(whole) + 2)
        source: Any = pa.BufferReader(whole)
        table = pj.read_json(source, reading, options)
    except pa.ArrowInvalid:
        return None
    if len(table) != count:
        return None
    texts = pc.utf8_rtrim(_column(table, places.message), characters="\r\n")
    messages = whole.count(_MESSAGE)
    times: Any = pa.nulls(count) if places.time is None else _column(table, places.time)
    if pc.any(pc.starts_with(texts, MESSAGE)).as_py() and any(each in whole for each in places.rivals):
        return None
    read = read_texts(texts, lambda which: _times_beside(times.filter(which), zone), zone, profile)
    if messages == len(read[1]) == count:  # each text has one, and no other key
        return read
    with_message = pc.sum(pc.count_substring(pc.fill_null(texts, ""), MESSAGE)).as_py()
    return read if with_message == messages else None  # otherwise another key of some object has one


_ISO: Final = f"^{ISO.regex}$"


def _times_beside(values: Any, zone: tzinfo) -> Any:
    """Return the times (TIME_TYPE) of values beside texts: of texts in ISO 8601 all at once."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), TIME_TYPE)
    if pa.types.is_string(values.type) and pc.all(pc.match_substring_regex(values, _ISO).fill_null(False)).as_py():
        return layout_times(values.cast(pa.binary()), ISO, zone)
    encoded = values.dictionary_encode()
    micros = [micros_of_value(each, zone) for each in encoded.dictionary.to_pylist()]
    return pa.array(micros, pa.int64()).cast(TIME_TYPE).take(encoded.indices)


def read_mixed(lines: Any, zone: tzinfo, names: Sequence[str]) -> ReadLines:
    """Read each line of a binary array, with line feeds: text of any layout, or an object with a message of Kafka.

    `names` are fields of ParsedLine. An object with several messages is AMBIGUOUS: it is not one access.
    """
    profile = APACHE
    if not pc.all(pc.match_substring_regex(lines, HEAD)).as_py():
        profile = profile_of_lines(lines.slice(0, _SAMPLE).to_pylist())
    is_object: Any = pc.and_not(
        pc.match_substring_regex(lines, r"^[ \t]*\{"), pc.match_substring_regex(lines, BRACED_TEXT.pattern.decode())
    )
    objects = lines.filter(is_object).to_pylist()
    texts = lines.filter(pc.invert(is_object)) if objects else lines
    read = read_each(texts, zone, profile, names)
    if profile is APACHE and pc.any(pc.equal(read.columns.column("reason"), pa.scalar(Reason.TORN.value))).as_py():
        profile = profile_of_lines(lines.slice(0, _SAMPLE).to_pylist())
        read = read_each(texts, zone, profile, names)
    if not objects:
        return read
    wrapped = [_of_object_line(line.removesuffix(b"\n"), zone, profile) for line in objects]
    return joined(read, wrapped, np.asarray(is_object), names)


_SAMPLE: Final = 1 << 10


def profile_of_lines(lines: Iterable[bytes]) -> Profile:
    """Return the layouts of some lines, of texts in objects as well; those of few lines are not among them."""
    texts = list[str]()
    for line in lines:
        if line.lstrip().startswith(b"{") and not BRACED_TEXT.match(line):
            value = object_of(line)
            texts += [each.text for each in texts_in(value)] if isinstance(value, dict) else []
        elif _MESSAGE in line:
            texts.append(line.decode(errors="replace"))
    return Profile(layouts=tuple(detect(map(cleaned, texts), rare=RARE)))


def _of_object_line(line: bytes, zone: tzinfo, profile: Profile) -> tuple[int | None, ParsedLine]:
    value = object_of(line)
    if isinstance(value, Reason):
        return None, ParsedLine(reason=value)
    accesses = read_objects(value, zone, profile)
    if isinstance(accesses, Reason):
        return None, ParsedLine(reason=accesses)
    return accesses[0] if len(accesses) == 1 else (None, ParsedLine(reason=Reason.AMBIGUOUS))


_FIRST: Final = 16
"""Lines of a block of which the first object defines the paths."""


def _column(table: pa.Table, path: tuple[str, ...]) -> Any:
    column: Any = table.column(path[0]).combine_chunks()
    for key in path[1:]:
        column = pc.struct_field(column, key)
    return column


# Lines of kafka-authorizer.log and JSON objects in one file, as in joined logs.


_HEADED: Final = re.compile(
    rb"^(?:%s|[^{}\"\n]*%s|%s)" % (HEAD.encode(), MESSAGE.encode(), BRACED_TEXT.pattern), re.ASCII | re.MULTILINE
)
_OBJECT: Final = re.compile(rb"(?!%s)^[ \t]*\{" % BRACED_TEXT.pattern, re.MULTILINE)


def lines_by_form(block: bytes, form: AccessForm) -> Iterator[tuple[AccessForm, bytes]]:
    """Yield runs of lines of one form; `form` is that of the file, and of all lines without a form of their own."""
    if not _has_other_form(block, form):
        yield form, block
        return
    for own, run in groupby(_lines(block), key=lambda line: _form_of(line, form)):
        yield own, b"".join(run)


def _has_other_form(block: bytes, form: AccessForm) -> bool:
    if form is AccessForm.KAFKA_LOG:
        # most logs have no line that begins so, and a search for bytes is many times as fast as one for a pattern
        if b"{" not in block:
            return False
        may = block[:1] in _BEGINNINGS or any(b"\n" + beginning in block for beginning in _BEGINNINGS)
        return may and _OBJECT.search(block) is not None
    return _objects_in(block) is None and _HEADED.search(block) is not None


_BEGINNINGS: Final = (b"{", b" ", b"\t")
"""How the line of an object begins."""


def _objects_in(block: bytes) -> int | None:
    """Return the number of lines if each of them begins and ends as an object does, with a key; else None."""
    codes = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if not len(ends) or ends[-1] != len(codes) - 1:
        ends = np.append(ends, len(codes))
    starts = np.concatenate(([0], ends[:-1] + 1))
    if ends[0] < _SHORTEST or (ends - starts < _SHORTEST).any():
        return None
    is_whole = (codes[starts] == ord("{")) & (codes[starts + 1] == ord('"')) & (codes[ends - 1] == ord("}"))
    return len(ends) if is_whole.all() else None


_SHORTEST: Final = len('{"":0}')


def _lines(block: bytes) -> list[bytes]:
    """Return the lines, each with its line feed; the last one may have none."""
    *whole, rest = block.split(b"\n")
    return [*(line + b"\n" for line in whole), *([rest] if rest else [])]


def _form_of(line: bytes, form: AccessForm) -> AccessForm:
    if _OBJECT.match(line) is None:
        return AccessForm.KAFKA_LOG if _HEADED.match(line) is not None else form
    if form is not AccessForm.KAFKA_LOG:
        return form
    value = object_of(line)
    return (None if isinstance(value, Reason) else form_of_object(value)) or AccessForm.JSONL
