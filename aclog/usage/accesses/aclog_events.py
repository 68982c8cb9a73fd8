"""aclog's own events: of the audit log, and those that `spark authorize --as` writes."""

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.event_access import EventAccess
from aclog.usage.accesses.json_object import JsonObject, at, number_at, text_at


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
