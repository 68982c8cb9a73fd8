"""The headers of requests (RequestHeader versions 1 and 2) and of responses (ResponseHeader versions 0 and 1)."""

import struct

from attrs import frozen

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.nodes.wire.api_keys import API_VERSIONS, is_flexible
from aclog.nodes.wire.tagged_fields import tagged_fields

_FIXED = struct.Struct(">hhih")


@frozen(kw_only=True)
class RequestHeader:
    """Which API in which version, and what the answer must echo."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_header(frame: bytes) -> tuple[RequestHeader, int]:
    """The header of a request and the position of its body; tagged fields are skipped, whatever they are.

    A version that nobody knows has the header of the newest one (ApiMessageType.requestHeaderVersion), so that an
    ApiVersions request from the future can be answered. A client id that is not UTF-8 gets U+FFFD, as in Java.

    Raises:
        DecodeError: cut, or an API key that Kafka does not have.

    """
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame)
    except struct.error:
        raise DecodeError(f"a request of {len(frame)} bytes: its header has {_FIXED.size} at least") from None
    client_id, position = _client_id(frame, length)
    if is_flexible(api_key, api_version):
        _, position = tagged_fields(frame, position)
    header = RequestHeader(api_key=api_key, api_version=api_version, correlation_id=correlation_id, client_id=client_id)
    return header, position


def _client_id(frame: bytes, length: int) -> tuple[str | None, int]:
    start = _FIXED.size
    if length < 0:  # Java's reader takes any negative length for null
        return None, start
    end = start + length
    if end > len(frame):
        raise DecodeError(f"a client id of {length} bytes, {len(frame) - start} left", position=start - 2)
    return frame[start:end].decode(errors="replace"), end


def encode_header(header: RequestHeader) -> bytes:
    """The header as bytes.

    Raises:
        EncodeError: a number out of its range, a client id beyond 32,767 bytes, an API key that Kafka does not have.

    """
    client = None if header.client_id is None else header.client_id.encode(errors="replace")
    try:
        fixed = _FIXED.pack(
            header.api_key, header.api_version, header.correlation_id, -1 if client is None else len(client)
        )
        tags = b"\0" if is_flexible(header.api_key, header.api_version) else b""
    except (struct.error, DecodeError) as error:
        raise EncodeError(f"a request header that cannot be: {error}") from None
    return fixed + (client or b"") + tags


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of an answer; that of ApiVersions never has tagged fields (KIP-511).

    Raises:
        DecodeError: an API key that Kafka does not have.

    """
    tagged = api_key != API_VERSIONS and is_flexible(api_key, api_version)
    return correlation_id.to_bytes(4, "big", signed=True) + (b"\0" if tagged else b"")


def decode_response_header(api_key: int, api_version: int, payload: bytes) -> tuple[int, int]:
    """The correlation id of an answer to a request of that API and version, and the position of its body.

    Raises:
        DecodeError: cut, or an API key that Kafka does not have.

    """
    if len(payload) < 4:
        raise DecodeError(f"a response of {len(payload)} bytes: its header has 4 at least")
    correlation_id, position = int.from_bytes(payload[:4], "big", signed=True), 4
    if api_key != API_VERSIONS and is_flexible(api_key, api_version):
        _, position = tagged_fields(payload, position)
    return correlation_id, position
