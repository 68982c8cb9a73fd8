"""Text forms: records as JSON objects, small properties files, and text for people."""

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from typing import Any, TypeAlias
from uuid import UUID

import attrs

from aclog.metalog.codec import read_frame, record_version, schema_of
from aclog.metalog.control_records import ControlRecord, OpaqueControlRecord
from aclog.metalog.errors import DecodeError
from aclog.metalog.native import regex
from aclog.metalog.primitives import read_compact_string, uuid_text
from aclog.metalog.records import MetadataRecord, OpaqueRecord, RecordType

Json: TypeAlias = "str | int | list[Json] | dict[str, Json] | None"

HIDDEN = "***"
"""Replaces a secret in the output."""

_SECRET_CONFIG = regex(r"password|secret|jaas|keystore\.(key|certificate)|truststore\.certificate")
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


# Small Java properties files: those that record the owner of a directory, and how far its log was committed.
#
# javaproperties imports XML, HTTP and TLS, which takes longer than replaying a thousand rules. So lines that are a
# key, `=` and a value are read here, and files that have anything else, such as an escape, by the library.


_PLAIN = regex(rb"(?:[ \t]*[#!][^\\\r\n]*\n|[ \t]*\n|[\w.-]+=[!-\[\]-~]*\n)*", re.ASCII)
"""Comments, blank lines, and keys with values of printable ASCII without a backslash."""


def parse_properties(data: bytes) -> dict[str, str]:
    """Return the values of a file by key. Raises ValueError: it has an invalid escape."""
    whole = data if data.endswith(b"\n") else data + b"\n"
    if _PLAIN.fullmatch(whole):
        lines = (line for line in whole.decode("latin-1").split("\n") if "=" in line and line.lstrip()[0] not in "#!")
        return {key: value for key, _, value in (line.partition("=") for line in lines)}
    import javaproperties  # noqa: PLC0415 - see above

    properties: dict[str, str] = javaproperties.load(BytesIO(data))
    return properties


def format_properties(values: Mapping[str, str], *, comments: str) -> bytes:
    """Return a file with these comments and values, in ASCII, without a time."""
    import javaproperties  # noqa: PLC0415 - see above

    return javaproperties.dumps(values, comments=comments, timestamp=False, ensure_ascii=True).encode("ascii")


# Lists in one text, as people write them.


def comma_parts(text: str) -> tuple[str, ...]:
    """Return the parts between commas, blanks cut off; empty ones are left out."""
    return tuple(part for each in text.split(",") if (part := each.strip()))
