"""Confluent's audit log (Cloud and Platform): CloudEvents of type io.confluent.kafka.server/authorization."""

from typing import Final

from aclog.authorizer.access_reject import Reason
from aclog.usage.accesses.event_access import EventAccess
from aclog.usage.accesses.json_object import JsonObject, at, text_at

PREFIX: Final = "io.confluent."
_AUTHORIZATION: Final = "io.confluent.kafka.server/authorization"
_ACCOUNTS: Final = ("confluentServiceAccount", "confluentUser")


def of_confluent(value: JsonObject) -> "list[EventAccess] | Reason":
    """Read an authorization; other events, and those of other services than Kafka (mds.Authorize), are no accesses."""
    data = at(value, "data")
    if value.get("type") != _AUTHORIZATION or not (text_at(data, "methodName") or "kafka.").startswith("kafka."):
        return Reason.OTHER_MESSAGE
    asked = at(data, "authorizationInfo")
    return [
        EventAccess(
            principal=_principal(data),
            host=_host(data),
            operation=text_at(asked, "operation"),
            resource_type=text_at(asked, "resourceType"),
            resource_name=text_at(asked, "resourceName"),
            time=text_at(value, "time"),
            decision={True: "ALLOWED", False: "DENIED"}.get(at(asked, "granted")),
            pattern_type=text_at(asked, "patternType"),
        )
    ]


def _principal(data: object) -> str | None:
    """Return the principal: text, or an object that names an account of Confluent Cloud."""
    given = text_at(data, "authenticationInfo", "principal")
    if given is not None:
        return given
    named = (text_at(data, "authenticationInfo", "principal", kind, "resourceId") for kind in _ACCOUNTS)
    account = next((name for name in named if name), None)
    return None if account is None else f"User:{account}"


def _host(data: object) -> str | None:
    """Return the client's address, which has had several places; Java writes one with a slash in front."""
    places: tuple[tuple[str | int, ...], ...] = (
        ("requestMetadata", "clientAddress", 0, "ip"),
        ("requestMetadata", "clientAddress"),
        ("requestMetadata", "client_address"),
        ("clientAddress", 0, "ip"),
    )
    found = next((text for text in (text_at(data, *place) for place in places) if text), None)
    return None if found is None else found.rpartition("/")[2]
