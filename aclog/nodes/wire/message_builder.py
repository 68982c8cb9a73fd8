"""Building messages by field names, for code that supports several versions of an API."""

from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from kio.index import KioIndexError, load_payload_module
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import EntityField, classify_field, is_optional

from aclog.nodes.wire.error_codes import error_code
from aclog.nodes.wire.messages import ENTITY_TYPES, Kind, encode_response, message_type

_EMPTY: dict[str, Any] = {
    "string": "", "bytes": b"", "bool": False, "float64": 0.0, "uuid": None,
    "error_code": ErrorCode.none, "timedelta_i32": timedelta(0), "timedelta_i64": timedelta(0),
    "datetime_i64": datetime(1970, 1, 1, tzinfo=UTC),
}  # fmt: skip


def build(api_key: int, version: int, kind: Kind, name: str | None = None, /, **values: Any) -> Any:
    """Build a message of an API's version, or the structure `name` inside it, from field values.

    Missing fields get the schema's default, or zero or empty (not null, even if nullable), as in Kafka's message
    classes. Fields that only other versions have are ignored. An error code may be an int; an undefined one becomes -1.

    Raises:
        DecodeError: kio does not have the API, version or structure.
        TypeError: No version has a field of this name.

    """
    entity: Any = message_type(api_key, version, kind, name)
    chosen = {}
    for field_name, (default, is_error) in _blank(entity).items():
        value = values.get(field_name, default)
        chosen[field_name] = error_code(value) if is_error else value
    for field_name in values.keys() - chosen.keys():
        if field_name not in _names(api_key, kind, entity.__name__):
            raise TypeError(f"{entity.__name__} has no field {field_name} in any version")
    return entity(**chosen)


def build_response(api_key: int, version: int, /, **values: Any) -> bytes:
    """Build and encode a response body.

    Raises:
        DecodeError, TypeError: As `build`.
        EncodeError: A value does not fit its field.

    """
    return encode_response(build(api_key, version, "response", **values))


@cache
def _blank(entity: Any) -> dict[str, tuple[Any, bool]]:
    """Return each field's default, and whether it is an error code."""
    return {each.name: (_default(each), each.metadata.get("kafka_type") == "error_code") for each in fields(entity)}


def _default(each: Field[Any]) -> Any:
    if each.default is not MISSING:
        return each.default
    kind = classify_field(each)
    if kind.is_array:
        return ()
    if isinstance(kind, EntityField):
        return kind.type_(**{inner: default for inner, (default, _) in _blank(kind.type_).items()})
    kafka_type = each.metadata["kafka_type"]
    if kafka_type == "records":
        return None if is_optional(each) else b""
    return _EMPTY.get(kafka_type, 0)


@cache
def _names(api_key: int, kind: Kind, entity_name: str) -> frozenset[str]:
    """Return the names of the fields that a class has in any version."""
    found: set[str] = set()
    for version in schema_name_map[api_key_map[api_key]]:
        try:
            entity = getattr(load_payload_module(api_key, version, ENTITY_TYPES[kind]), entity_name, None)
        except KioIndexError:
            continue
        found.update(each.name for each in (fields(entity) if entity else ()))
    return frozenset(found)
