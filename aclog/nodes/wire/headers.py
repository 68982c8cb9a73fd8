"""Headers of requests (RequestHeader versions 1 and 2) and responses (ResponseHeader versions 0 and 1)."""

import struct

from attrs import frozen

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.nodes.wire.api_keys import API_VERSIONS, is_flexible
from aclog.nodes.wire.tagged_fields import tagged_fields

_FIXED = struct.Struct(">hhih")


@frozen(kw_only=True)
class RequestHeader:
    """A request header: API, version, and the correlation id that the response repeats."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Decode the header of a request; return it with the position of the body. Tagged fields are skipped.

    An unknown version has the header of the newest one (ApiMessageType.requestHeaderVersion), so that ApiVersions
    requests of future versions can be answered. Invalid UTF-8 in the client id becomes U+FFFD, as in Java.

    Raises:
        DecodeError: Truncated, or an unknown API key.

    """
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame)
    except struct.error:
        raise DecodeError(f"request of {len(frame)} bytes: expected a header of {_FIXED.size} or more") from None
    client_id, position = _client_id(frame, length)
    if is_flexible(api_key, api_version):
        # Nearly no request has tagged fields in its header.
        position = position + 1 if frame[position : position + 1] == b"\0" else tagged_fields(frame, position)[1]
    header = RequestHeader(api_key=api_key, api_version=api_version, correlation_id=correlation_id, client_id=client_id)
    return header, position


def _client_id(frame: bytes, length: int) -> tuple[str | None, int]:
    start = _FIXED.size
    if length < 0:  # Java's reader takes any negative length for null
        return None, start
    end = start + length
    if end > len(frame):
        raise DecodeError(f"client id of {length} bytes, {len(frame) - start} left", position=start - 2)
    return frame[start:end].decode(errors="replace"), end


def encode_header(header: RequestHeader) -> bytes:
    """Encode a request header.

    Raises:
        EncodeError: A number is out of range, the client id exceeds 32,767 bytes, or the API key is unknown.

    """
    client = None if header.client_id is None else header.client_id.encode(errors="replace")
    try:
        fixed = _FIXED.pack(
            header.api_key, header.api_version, header.correlation_id, -1 if client is None else len(client)
        )
        tags = b"\0" if is_flexible(header.api_key, header.api_version) else b""
    except (struct.error, DecodeError) as error:
        raise EncodeError(f"invalid request header: {error}") from None
    return fixed + (client or b"") + tags


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Encode a response header. ApiVersions never has tagged fields: a client may not know the version (KIP-511).

    Raises:
        DecodeError: An unknown API key.

    """
    tagged = api_key != API_VERSIONS and is_flexible(api_key, api_version)
    return correlation_id.to_bytes(4, "big", signed=True) + (b"\0" if tagged else b"")


def decode_response_header(api_key: int, api_version: int, payload: bytes) -> tuple[int, int]:
    """Decode a response header; return the correlation id and the position of the body.

    Raises:
        DecodeError: Truncated, or an unknown API key.

    """
    if len(payload) < 4:
        raise DecodeError(f"response of {len(payload)} bytes: expected a header of 4 or more")
    correlation_id, position = int.from_bytes(payload[:4], "big", signed=True), 4
    if api_key != API_VERSIONS and is_flexible(api_key, api_version):
        _, position = tagged_fields(payload, position)
    return correlation_id, position
