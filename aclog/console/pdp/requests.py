"""Requests of the Authorization API, parsed: what is missing or of another type is refused, what is unknown ignored."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from aclog.authorizer.hosts import host_address
from aclog.console.pdp.errors import BadRequestError
from aclog.metalog.errors import ConfigError

Json = Mapping[str, Any]
THIS_MACHINE = "127.0.0.1"
_LONGEST = 32_767
"""Characters of a type, an id or an action: Kafka's own strings end there. A batch repeats what its questions share."""


@frozen(kw_only=True)
class Entity:
    """A subject or a resource; `id` is empty in what is searched for."""

    type: str
    id: str
    properties: Json = field(factory=dict)


@frozen(kw_only=True)
class ActionName:
    """An action."""

    name: str
    properties: Json = field(factory=dict)


@frozen(kw_only=True)
class Circumstances:
    """What a request's context says that matters here."""

    host: str = THIS_MACHINE
    """The client's address, as rules have it."""
    as_of: str | None = None
    """An end offset or a time: the state to decide from; None for the newest."""


@frozen(kw_only=True)
class Evaluation:
    """One question."""

    subject: Entity
    action: ActionName
    resource: Entity
    circumstances: Circumstances


def parse_evaluation(body: Json) -> Evaluation:
    """Return the question in an object. Raises BadRequestError."""
    return Evaluation(
        subject=parse_entity(body, "subject"),
        action=parse_action(body),
        resource=parse_entity(body, "resource"),
        circumstances=parse_context(body),
    )


def parse_entity(body: Json, key: str, *, searched: bool = False) -> Entity:
    """Return a subject or a resource; the id of one that is searched for is ignored. Raises BadRequestError."""
    value = _object(body, key)
    return Entity(
        type=_text(value, key, "type"),
        id="" if searched else _text(value, key, "id"),
        properties=_properties(value, key),
    )


def parse_action(body: Json) -> ActionName:
    """Return the action. Raises BadRequestError."""
    value = _object(body, "action")
    return ActionName(name=_text(value, "action", "name"), properties=_properties(value, "action"))


def parse_context(body: Json) -> Circumstances:
    """Return what the context says, which may be missing. Raises BadRequestError."""
    value = body.get("context")
    if value is None:
        return Circumstances()
    if not isinstance(value, dict):
        raise BadRequestError("context: expected an object")
    as_of = value.get("as_of")
    key = "ip" if value.get("host") is None else "host"
    host = value.get(key)
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        as_of = str(as_of)
    if as_of is not None and not isinstance(as_of, str):
        raise BadRequestError("context: as_of: expected an offset or a time")
    address = THIS_MACHINE if host is None else parse_host(host, f"context.{key}")
    return Circumstances(host=address, as_of=as_of)


def parse_host(value: object, where: str) -> str:
    """Return a client's address as rules have it.

    Raises:
        BadRequestError: it is no address. No rule has such a host, so a DENY of the client's real one would not count.

    """
    if not isinstance(value, str):
        raise BadRequestError(f"{where}: expected a client's address")
    try:
        return host_address(value)
    except ConfigError as error:
        raise BadRequestError(f"{where}: {error}") from None


def _object(body: Json, key: str) -> Json:
    value = body.get(key)
    if value is None:
        raise BadRequestError(f"{key} is missing")
    if not isinstance(value, dict):
        raise BadRequestError(f"{key}: expected an object")
    return value


def _text(value: Json, where: str, key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise BadRequestError(f"{where}.{key} is missing" if found is None else f"{where}.{key}: expected a text")
    if len(found) > _LONGEST:
        raise BadRequestError(f"{where}.{key}: longer than any name: expected at most {_LONGEST:,} characters")
    return found


def _properties(value: Json, where: str) -> Json:
    found = value.get("properties")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRequestError(f"{where}.properties: expected an object")
    return found
