"""Text forms: records as JSON objects, small properties files, and text for people."""

import re
from base64 import b64encode
from functools import cache
from typing import Any, TypeAlias
from uuid import UUID

import attrs

from aclog.metalog.codec import read_frame, record_version, schema_of
from aclog.metalog.control_records import ControlRecord, OpaqueControlRecord
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import read_compact_string, uuid_text
from aclog.metalog.records import MetadataRecord, OpaqueRecord, RecordType

Json: TypeAlias = "str | int | list[Json] | dict[str, Json] | None"

HIDDEN = "***"
"""Replaces a secret in the output."""

_SECRET_CONFIG = re.compile(r"password|secret|jaas|keystore\.(key|certificate)|truststore\.certificate")
"""Names of configs of type PASSWORD; a KRaft log stores their values in clear text."""


def record_json(record: MetadataRecord, *, show_secrets: bool = False) -> dict[str, Json]:
    """Return {"type", "version", "data"} with Kafka's names, in Kafka's order, without tagged fields at their default.

    `type` is the name of the RecordType, or UNKNOWN_n for an apiKey that Kafka 4.3.1 does not know. For a record that
    aclog does not interpret, data is {"base64": its whole value}. Salts, keys and password configs are `***`.
    """
    if isinstance(record, OpaqueRecord):
        hidden = not show_secrets and may_hold_secret(record)
        data: Json = {"base64": HIDDEN if hidden else _base64(record.value)}
        return {"type": type_name(record.api_key), "version": record.version, "data": data}
    fields = schema_of(record).present_fields(record)
    data = {_camel_case(name): _json(value, show_secrets=show_secrets) for name, value in fields}
    return {"type": record.api_key.name, "version": record_version(record), "data": data}


def control_json(record: ControlRecord) -> dict[str, Json]:
    """Return {"type", "version", "data"} of a control record: type and data as DumpLogSegments prints them.

    An unknown type is UNKNOWN_n, its version is that of the key, and data is {"base64": its value}.
    """
    if isinstance(record, OpaqueControlRecord):
        version = int.from_bytes(record.key[:2], signed=True)
        return {"type": f"UNKNOWN_{record.control_type}", "version": version, "data": {"base64": _base64(record.value)}}
    return {"type": type(record).__name__, "version": record.version, "data": _json(record, show_secrets=True)}


def type_name(api_key: int) -> str:
    """Return the name that DumpLogSegments prints; UNKNOWN_n for an apiKey that Kafka 4.3.1 does not know."""
    try:
        return RecordType(api_key).name
    except ValueError:
        return f"UNKNOWN_{api_key}"


def may_hold_secret(record: OpaqueRecord) -> bool:
    """Return whether this is a ConfigRecord (resource type, resource name, name, value) that may hold a password."""
    if record.api_key != RecordType.CONFIG_RECORD:
        return False
    try:
        _, _, body = read_frame(record.value)
        _, at = read_compact_string(record.value, body + 1)
        name, _ = read_compact_string(record.value, at)
    except DecodeError:
        return True  # fail closed: a ConfigRecord that cannot be read is masked
    return _SECRET_CONFIG.search(name) is not None


def _json(value: Any, *, show_secrets: bool) -> Json:
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, bytes):
        # Bytes fields are salts and keys only; every other field of an interpreted record is text or a number.
        return _base64(value) if show_secrets else HIDDEN
    if isinstance(value, tuple):
        return [_json(element, show_secrets=show_secrets) for element in value]
    if value is None or isinstance(value, str | int):
        return value
    names = (field.name for field in attrs.fields(type(value)) if field.name != "tagged_fields")
    parts = ((_camel_case(name), getattr(value, name)) for name in names)
    return {name: _json(part, show_secrets=show_secrets) for name, part in parts if part is not None}


@cache
def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return "".join(("kRaft" if first == "kraft" else first, *(part.capitalize() for part in rest)))


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")
