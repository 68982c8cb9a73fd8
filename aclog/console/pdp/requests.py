"""Requests of the Authorization API, parsed: what is missing or of another type is refused, what is unknown ignored."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from aclog.console.pdp.errors import BadRequestError

Json = Mapping[str, Any]


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

    host: str | None = None
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
    host, as_of = value.get("host"), value.get("as_of")
    if host is None:
        host = value.get("ip")
    if host is not None and (not isinstance(host, str) or not host):
        raise BadRequestError("context: host: expected a client's address")
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        as_of = str(as_of)
    if as_of is not None and not isinstance(as_of, str):
        raise BadRequestError("context: as_of: expected an offset or a time")
    return Circumstances(host=host, as_of=as_of)


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
    return found


def _properties(value: Json, where: str) -> Json:
    found = value.get("properties")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRequestError(f"{where}.properties: expected an object")
    return found
