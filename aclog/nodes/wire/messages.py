"""Bodies of requests and responses, as kio's message classes."""

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

Kind: TypeAlias = Literal["request", "response"]

ENTITY_TYPES: dict[Kind, PayloadEntityType] = {"request": EntityType.request, "response": EntityType.response}


MAX_STRING = 0x7FFF
"""The longest string in a message, in bytes of UTF-8."""


@cache
def message_type(api_key: int, version: int, kind: Kind, name: str | None = None) -> type[Any]:
    """The class that kio has for a message or, with a name such as "AclCreation", for a structure inside it.

    Raises:
        DecodeError: kio does not know the API or the version, or there is no class of that name.

    """
    try:
        if name is not None:
            return getattr(load_payload_module(api_key, version, ENTITY_TYPES[kind]), name)  # type: ignore[no-any-return]
        return load_request_schema(api_key, version) if kind == "request" else load_response_schema(api_key, version)
    except (KioIndexError, AttributeError):
        raise DecodeError(f"no {kind} {name or ''} of API key {api_key} version {version}") from None


def decode_request(api_key: int, version: int, buffer: bytes, position: int) -> Any:
    """The body of a request, as kio's message of exactly that version; what follows it is not looked at.

    Unknown tagged fields are skipped, at any depth. Where Java reads a value and kio does not, what Java reads is
    given: a string that is not UTF-8 with U+FFFD; times beyond Python's range become the end of that range.

    Raises:
        DecodeError: not such a body: cut, null where nothing may be null, a length beyond what is left, more than
            the limits of aclog.nodes.wire.message_readers, an API or version that kio does not have.

    """
    message = _reader(api_key, version, "request")(buffer, position)[0]
    if len(buffer) - position > MAX_STRING:
        _check_strings(message)
    return message


def _check_strings(found: Any) -> None:
    """Kafka refuses to read a longer string, and could not write it: it would end the one who writes it to a log."""
    if isinstance(found, str):
        if len(found) > MAX_STRING or len(found.encode(errors="surrogatepass")) > MAX_STRING:
            raise DecodeError(f"a string of {len(found)} characters: at most {MAX_STRING} bytes are expected")
    elif isinstance(found, tuple):
        for each in found:
            _check_strings(each)
    elif is_dataclass(found):
        for each in fields(found):
            _check_strings(getattr(found, each.name))


def decode_response(api_key: int, version: int, buffer: bytes, position: int, *, whole: bool = False) -> Any:
    """The body of a response; as `decode_request`, without the limits, and an unknown error code becomes -1.

    Raises:
        DecodeError: not such a body; or, where it must be the `whole` of what is left, not the end of the buffer.

    """
    message, size = _reader(api_key, version, "response")(buffer, position)
    if whole and position + size != len(buffer):
        left = len(buffer) - position - size
        raise DecodeError(f"{left} bytes after the message: expected its end", position=position + size)
    return message


@cache
def _reader(api_key: int, version: int, kind: Kind) -> Callable[[bytes, int], tuple[Any, int]]:
    return message_reader(message_type(api_key, version, kind), bounded=kind == "request")


def encode_response(message: Any) -> bytes:
    """The body of a response as bytes, without a header.

    Raises:
        EncodeError: a field whose value its type cannot hold.

    """
    return _encode(message)


def encode_request(message: Any) -> bytes:
    """The body of a request as bytes, without a header; raises as `encode_response`."""
    return _encode(message)


def _encode(message: Any) -> bytes:
    out = io.BytesIO()
    try:
        entity_writer(type(message))(out, message)
    except (SerialError, TypeError, ValueError, AttributeError, struct.error, OverflowError) as error:
        kind = type(message).__name__
        raise EncodeError(f"a {kind} with a value that its type cannot hold ({type(error).__name__})") from None
    return out.getvalue()


def warm_up(apis: Iterable[tuple[int, int]]) -> None:
    """Import and prepare the messages of these (API key, version) ahead: the first use of each costs milliseconds.

    Versions that kio does not have are left out.
    """
    for api_key, version in apis:
        try:
            for kind in ("request", "response"):
                _reader(api_key, version, kind)
                entity_writer(message_type(api_key, version, kind))
        except DecodeError:
            continue
