"""Redpanda's audit log: OCSF events of class 6003 about requests of Kafka's protocol.

An event names the request and whether it was a create, read, update or delete, but not the operation of the ACL. Kafka
asks for one operation by each request and resource type; where it could be several, what was done tells which.
"""

from typing import Final

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.event_access import EventAccess
from aclog.usage.accesses.json_object import JsonObject, at, number_at, text_at

PRODUCT: Final = "Redpanda"

_CREATE, _READ, _UPDATE, _DELETE = 1, 2, 3, 4
_MOST_COUNTED: Final = 1_000_000
"""Redpanda adds up equal accesses of half a second or so."""

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
"""The operation by request and resource type."""
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
"""What Redpanda calls an operation; others are not compared."""


def of_redpanda(value: JsonObject) -> "list[EventAccess] | Reason":
    """Read an event: an access for each resource, as often as it was counted.

    What other interfaces than Kafka's were asked for is no access, nor is a request that asks for nothing of ACLs.
    """
    if value.get("class_uid") != 6003 or "kafka" not in (text_at(value, "api", "service", "name") or "").lower():
        return Reason.OTHER_MESSAGE
    resources, times = at(value, "resources"), _times(value)
    if not isinstance(resources, list) or not resources:
        return Reason.OTHER_MESSAGE
    if times is None:
        return Reason.MALFORMED
    name = text_at(value, "actor", "user", "name")
    found = []
    for resource in resources:
        operation = _operation(value, text_at(resource, "type"))
        if operation is None:
            return Reason.BAD_OPERATION
        found += [
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
    return found


def _operation(value: JsonObject, kind: str | None) -> str | None:
    request, done = text_at(value, "api", "operation"), number_at(value, "activity_id")
    if request == "metadata":
        return _METADATA.get(done or 0)
    operation = _OPERATIONS.get(request or "", {}).get((kind or "").lower())
    known = _ACTIVITIES.get(operation or "")
    return operation if known is None or known == done else None


def _times(value: JsonObject) -> list[int | None] | None:
    """Return the time of each access: all but the first are told by the end only. None: the count makes no sense."""
    first, count = number_at(value, "time"), number_at(value, "count")
    if count is None:
        return [first]
    if not 1 <= count <= _MOST_COUNTED:
        return None
    start, end = number_at(value, "start_time"), number_at(value, "end_time")
    return [first if start is None else start, *[first if end is None else end] * (count - 1)]
