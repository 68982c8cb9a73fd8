"""Encoding and decoding of request and response bodies as kio's message classes."""

import io
import struct
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from kio.index import KioIndexError, load_payload_module, load_request_schema, load_response_schema
from kio.schema.index import PayloadEntityType
from kio.serial import entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.nodes.wire.message_readers import message_reader
from aclog.nodes.wire.newer_messages import NEWER_MESSAGES, SAME_AS

Kind: TypeAlias = Literal["request", "response"]

ENTITY_TYPES: dict[Kind, PayloadEntityType] = {"request": EntityType.request, "response": EntityType.response}


MAX_STRING = 0x7FFF
"""The longest string in a message, in bytes of UTF-8."""


@cache
def message_type(api_key: int, version: int, kind: Kind, name: str | None = None) -> type[Any]:
    """Return kio's class of a message or, with a name such as "AclCreation", of a structure inside it.

    Raises:
        DecodeError: there is no such API, version or structure.

    """
    version = SAME_AS.get((api_key, version, kind), version)
    if name is None and (own := NEWER_MESSAGES.get((api_key, version, kind))) is not None:
        return own
    try:
        if name is not None:
            return getattr(load_payload_module(api_key, version, ENTITY_TYPES[kind]), name)  # type: ignore[no-any-return]
        return load_request_schema(api_key, version) if kind == "request" else load_response_schema(api_key, version)
    except (KioIndexError, AttributeError):
        raise DecodeError(f"no {kind} {name or ''} of API key {api_key} version {version}") from None


def decode_request(api_key: int, version: int, buffer: bytes, position: int) -> Any:
    """Decode the body of a request as kio's message of exactly that version; trailing bytes are ignored, as in Java.

    Unknown tagged fields are skipped at any depth. Values that Java accepts and kio rejects are read as in Java:
    invalid UTF-8 becomes U+FFFD. Times outside Python's range are clamped.

    Raises:
        DecodeError: Truncated, null in a required field, a length beyond the remaining bytes or the limits of
            aclog.nodes.wire.message_readers, or an unknown API or version.

    """
    message = _reader(api_key, version, "request")(buffer, position)[0]
    # Compact strings may be longer than 32,767 bytes on the wire, though only in a body larger than that.
    if len(buffer) - position > MAX_STRING:
        _check_strings(message)
    return message


def _check_strings(found: Any) -> None:
    """Reject strings that Kafka rejects: a record with one could not be encoded, which would stop the controller."""
    if isinstance(found, str):
        if len(found) > MAX_STRING or len(found.encode(errors="surrogatepass")) > MAX_STRING:
            raise DecodeError(f"string of {len(found)} characters: expected at most {MAX_STRING} bytes")
    elif isinstance(found, tuple):
        for each in found:
            _check_strings(each)
    elif is_dataclass(found):
        for each in fields(found):
            _check_strings(getattr(found, each.name))


def decode_response(api_key: int, version: int, buffer: bytes, position: int, *, whole: bool = False) -> Any:
    """Decode the body of a response; like `decode_request` without limits. An unknown error code becomes -1.

    Raises:
        DecodeError: An invalid body or, with `whole`, bytes after it.

    """
    message, size = _reader(api_key, version, "response")(buffer, position)
    if whole and position + size != len(buffer):
        left = len(buffer) - position - size
        raise DecodeError(f"{left} bytes after the end of the message", position=position + size)
    return message


@cache
def _reader(api_key: int, version: int, kind: Kind) -> Callable[[bytes, int], tuple[Any, int]]:
    return message_reader(message_type(api_key, version, kind), bounded=kind == "request")


def encode_response(message: Any) -> bytes:
    """Encode the body of a response, without a header.

    Raises:
        EncodeError: A value does not fit its field.

    """
    return _encode(message)


def encode_request(message: Any) -> bytes:
    """Encode the body of a request, without a header; raises as `encode_response`."""
    return _encode(message)


def _encode(message: Any) -> bytes:
    out = io.BytesIO()
    try:
        entity_writer(type(message))(out, message)
    except (SerialError, TypeError, ValueError, AttributeError, struct.error, OverflowError) as error:
        kind = type(message).__name__
        raise EncodeError(f"{kind}: a value does not fit its field ({type(error).__name__})") from None
    return out.getvalue()


def warm_up(apis: Iterable[tuple[int, int]]) -> None:
    """Import and prepare the messages of these (API key, version) pairs, which costs milliseconds on first use.

    Versions that kio does not have are skipped.
    """
    for api_key, version in apis:
        try:
            for kind in ("request", "response"):
                _reader(api_key, version, kind)
                entity_writer(message_type(api_key, version, kind))
        except DecodeError:
            continue
