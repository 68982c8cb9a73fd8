"""Functions that encode, decode and hash."""

import base64
import binascii
import csv
import hashlib
import uuid
from collections.abc import Callable, Mapping
from io import StringIO
from types import MappingProxyType
from urllib.parse import quote_plus

from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.functions.json_text import json_text, value_of_json
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.types import DYNAMIC, STRING, Kind, Type, list_of
from aclog.sources.formats.terraform.values.value import (
    Value,
    object_value,
    string,
)

_NAMESPACES = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}


def decoded_base64(text: str) -> str:
    """Return text from base64. Raises ValueFault: not base64, or not text."""
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueFault("not base64 of UTF-8 text") from error


def _csvdecode(text: Value) -> Value:
    try:
        rows = list(csv.reader(StringIO(text.text, newline=""), strict=True))
    except csv.Error as error:
        raise ValueFault(f"not CSV: {error}") from error
    rows = [row for row in rows if row]
    if not rows:
        raise ValueFault("missing header line")
    names, *lines = rows
    if len(set(names)) < len(names):
        raise ValueFault("two columns have the same name")
    if any(len(line) != len(names) for line in lines):
        raise ValueFault("a row has not as many fields as the header line")
    kind = Type(Kind.OBJECT, attributes=dict.fromkeys(sorted(names), STRING))
    items = [object_value(dict(zip(names, map(string, line), strict=True))) for line in lines]
    return Value(list_of(kind), tuple(items))


def _digest(name: str, *, as_base64: bool = False) -> Callable[[Value], Value]:
    def _hash_of(text: Value) -> Value:
        digest = hashlib.new(name, text.text.encode(), usedforsecurity=False).digest()
        return string(base64.b64encode(digest).decode() if as_base64 else digest.hex())

    return _hash_of


def _uuidv5(namespace: Value, name: Value) -> Value:
    try:
        space = _NAMESPACES.get(namespace.text) or uuid.UUID(namespace.text)
    except ValueError as error:
        raise ValueFault("not a namespace: expected dns, url, oid, x500 or a UUID") from error
    return string(str(uuid.uuid5(space, name.text)))


def _text_function(body: Callable[[Value], Value]) -> Function:
    return Function(parameters=(STRING,), body=body)


ENCODING_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "base64decode": _text_function(lambda text: string(decoded_base64(text.text))),
        "base64encode": _text_function(lambda text: string(base64.b64encode(text.text.encode()).decode())),
        "base64sha256": _text_function(_digest("sha256", as_base64=True)),
        "base64sha512": _text_function(_digest("sha512", as_base64=True)),
        "csvdecode": _text_function(_csvdecode),
        "jsondecode": _text_function(lambda text: value_of_json(text.text)),
        "jsonencode": Function(parameters=(DYNAMIC,), body=lambda value: string(json_text(value)), nulls=True),
        "md5": _text_function(_digest("md5")),
        "sha1": _text_function(_digest("sha1")),
        "sha256": _text_function(_digest("sha256")),
        "sha512": _text_function(_digest("sha512")),
        "urlencode": _text_function(lambda text: string(quote_plus(text.text, safe="~"))),
        "uuidv5": Function(parameters=(STRING, STRING), body=_uuidv5),
    }
)
