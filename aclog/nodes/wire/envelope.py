"""Envelope: a request that a broker forwards for a client (KIP-590; EnvelopeRequest, DefaultPrincipalData).

Version 0 is Kafka's. Version 1 is KIP-801's: the same fields, but the response may carry AUTHORIZER_NOT_READY. Kafka,
and hence kio, has neither that version nor that error, so the codec is written by hand.
"""

from attrs import field, frozen

from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import (
    compact_bytes,
    compact_string,
    read_compact_bytes,
    read_compact_string,
    read_unsigned_varint,
)
from aclog.nodes.wire.error_codes import UNKNOWN_SERVER_ERROR
from aclog.nodes.wire.tagged_fields import tagged_fields

AUTHORIZER_NOT_READY = 10801
"""KIP-801's error: the controller has not replayed its log yet; retry."""


@frozen(kw_only=True)
class EnvelopeRequest:
    """A request with its header, and the client's principal (encode_principal) and address (4 or 16 bytes)."""

    request_data: bytes = field(repr=False)
    request_principal: bytes | None
    client_host_address: bytes


@frozen(kw_only=True)
class EnvelopeResponse:
    """The embedded response with its header; None if the envelope itself failed."""

    response_data: bytes | None = field(default=None, repr=False)
    error_code: int = 0


def encode_envelope_request(request: EnvelopeRequest) -> bytes:
    """Encode the body of an EnvelopeRequest (versions 0 and 1)."""
    principal = _nullable(request.request_principal)
    return compact_bytes(request.request_data) + principal + compact_bytes(request.client_host_address) + b"\0"


def decode_envelope_request(buffer: bytes, position: int) -> EnvelopeRequest:
    """Decode the body of an EnvelopeRequest (versions 0 and 1).

    Raises:
        DecodeError: Truncated, or null in a required field.

    """
    data, position = read_compact_bytes(buffer, position)
    principal, position = _read_nullable(buffer, position)
    address, position = read_compact_bytes(buffer, position)
    tagged_fields(buffer, position)
    return EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)


def encode_envelope_response(version: int, response: EnvelopeResponse) -> bytes:
    """Encode the body of an EnvelopeResponse; in version 0 AUTHORIZER_NOT_READY becomes UNKNOWN_SERVER_ERROR."""
    code = response.error_code
    if version == 0 and code == AUTHORIZER_NOT_READY:
        code = UNKNOWN_SERVER_ERROR
    return _nullable(response.response_data) + code.to_bytes(2, "big", signed=True) + b"\0"


def decode_envelope_response(buffer: bytes, position: int) -> EnvelopeResponse:
    """Decode the body of an EnvelopeResponse (versions 0 and 1).

    Raises:
        DecodeError: Truncated.

    """
    data, position = _read_nullable(buffer, position)
    after = position + 2
    if after > len(buffer):
        raise DecodeError("truncated error code", position=position)
    tagged_fields(buffer, after)
    code = int.from_bytes(buffer[position:after], "big", signed=True)
    return EnvelopeResponse(response_data=data, error_code=code)


def _nullable(data: bytes | None) -> bytes:
    return b"\0" if data is None else compact_bytes(data)


def _read_nullable(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    length, after = read_unsigned_varint(buffer, position)
    return (None, after) if length == 0 else read_compact_bytes(buffer, position)


def encode_principal(principal: KafkaPrincipal, *, token_authenticated: bool = False) -> bytes:
    """Encode a principal, and whether it authenticated with a delegation token (DefaultPrincipalData version 0).

    Raises:
        EncodeError: A type or name exceeds 32,767 bytes.

    """
    names = compact_string(principal.type) + compact_string(principal.name)
    return b"\0\0" + names + (b"\1" if token_authenticated else b"\0") + b"\0"


def decode_principal(data: bytes) -> tuple[KafkaPrincipal, bool]:
    """Decode a principal, and whether it authenticated with a delegation token.

    Raises:
        DecodeError: Truncated, not UTF-8, or not version 0; Kafka responds with PRINCIPAL_DESERIALIZATION_FAILURE.

    """
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version != 0:
        raise DecodeError(f"principal data of version {version}: expected 0", position=0)
    kind, position = read_compact_string(data, 2)
    name, position = read_compact_string(data, position)
    if position >= len(data):
        raise DecodeError("truncated before token_authenticated", position=position)
    tagged_fields(data, position + 1)
    return KafkaPrincipal(type=kind, name=name), data[position] != 0
