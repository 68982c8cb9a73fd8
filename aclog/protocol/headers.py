"""Framing, headers, and the requests that handlers answer."""

import struct
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from attrs import field

from aclog.authorizer.interface import RequestContext
from aclog.metalog.errors import DecodeError, EncodeError, MetadataError
from aclog.metalog.native import maker
from aclog.metalog.primitives import read_unsigned_varint
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys
from aclog.protocol.api_keys import is_flexible
from aclog.protocol.session import Session

# Tagged fields, the section at the end of every structure in a flexible version (KIP-482).


MAX_TAGGED_FIELDS = 1000
"""The most tagged fields in one structure; no structure of Kafka 4.3.1 has more than a handful."""


def tagged_fields(buffer: bytes, position: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return tag, start and end of each tagged field, and the position after the section.

    Raises:
        DecodeError: Truncated, or more than MAX_TAGGED_FIELDS.

    """
    count, position = read_unsigned_varint(buffer, position)
    if count > MAX_TAGGED_FIELDS:
        raise DecodeError(f"{count} tagged fields: expected at most {MAX_TAGGED_FIELDS}", position=position)
    fields = []
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position)
        size, start = read_unsigned_varint(buffer, position)
        position = start + size
        if position > len(buffer):
            raise DecodeError(f"tagged field of {size} bytes, {len(buffer) - start} left", position=start)
        fields.append((tag, start, position))
    return fields, position


# Framing: a 4-byte big-endian length before each message (org.apache.kafka.common.network.NetworkReceive).


MIN_REQUEST = 8
"""The size of the smallest request header: API key, version, correlation id."""


class FrameError(DecodeError):
    """An invalid frame length: the peer does not speak Kafka's protocol, or the message is too large."""


def frame(payload: bytes) -> bytes:
    """Return the payload with its length prefix."""
    return len(payload).to_bytes(4, "big") + payload


def frame_length(prefix: bytes | bytearray, max_bytes: int, min_bytes: int = MIN_REQUEST) -> int:
    """Return the frame length in a 4-byte prefix.

    Raises:
        FrameError: The length is not within min_bytes..max_bytes.

    """
    length = int.from_bytes(prefix, "big", signed=True)
    if not min_bytes <= length <= max_bytes:
        raise FrameError(f"frame length {length}: expected {min_bytes} to {max_bytes}")
    return length


@define(kw_only=True)
class FrameBuffer:
    """Splits a stream of bytes into frames.

    `max_bytes` and `min_bytes` may change between frames: larger ones are allowed after authentication, and raw SASL
    tokens (SaslHandshake version 0) and responses may be shorter than a request. The caller takes all complete frames
    before feeding more, so at most one frame is buffered.
    """

    max_bytes: int
    min_bytes: int = MIN_REQUEST
    _data: bytearray = field(factory=bytearray, init=False, repr=False)

    def __len__(self) -> int:
        """The number of buffered bytes."""
        return len(self._data)

    @property
    def rest(self) -> bytes:
        """The buffered bytes: the beginning of a frame, or invalid input."""
        return bytes(self._data)

    def feed(self, data: bytes) -> None:
        """Append bytes from the socket."""
        self._data += data

    def next(self) -> bytes | None:
        """Return the next complete frame without its length, or None until more is fed.

        Raises:
            FrameError: An invalid length, as soon as it is received; the stream is unusable afterwards.

        """
        if len(self._data) < 4:
            return None
        end = 4 + frame_length(self._data[:4], self.max_bytes, self.min_bytes)
        if len(self._data) < end:
            return None
        whole = bytes(self._data[4:end])
        del self._data[:end]
        return whole


# Headers of requests (RequestHeader versions 1 and 2) and responses (ResponseHeader versions 0 and 1).


_FIXED = struct.Struct(">hhih")


@frozen(kw_only=True)
class RequestHeader:
    """A request header: API, version, and the correlation id that the response repeats."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


_header = maker(RequestHeader, "api_key", "api_version", "correlation_id", "client_id")


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
    return _header(api_key, api_version, correlation_id, client_id), position


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
    tagged = api_key != api_keys.API_VERSIONS and is_flexible(api_key, api_version)
    return correlation_id.to_bytes(4, "big", signed=True) + (b"\0" if tagged else b"")


def decode_response_header(api_key: int, api_version: int, payload: bytes) -> tuple[int, int]:
    """Decode a response header; return the correlation id and the position of the body.

    Raises:
        DecodeError: Truncated, or an unknown API key.

    """
    if len(payload) < 4:
        raise DecodeError(f"response of {len(payload)} bytes: expected a header of 4 or more")
    correlation_id, position = int.from_bytes(payload[:4], "big", signed=True), 4
    if api_key != api_keys.API_VERSIONS and is_flexible(api_key, api_version):
        _, position = tagged_fields(payload, position)
    return correlation_id, position


# Requests, handlers, and the errors that handlers raise.


@frozen(kw_only=True)
class Request:
    """A decoded request: header, body (the kio message of that API and version) and session.

    `frame` holds the received bytes including the header, without the length prefix; an Envelope carries it verbatim.
    `body` and `frame` are left out of the repr because they may contain passwords.
    """

    header: RequestHeader
    body: Any = field(repr=False)
    session: Session
    frame: bytes = field(repr=False)
    _context: RequestContext | None = field(default=None, init=False, eq=False, repr=False)

    @property
    def context(self) -> RequestContext:
        """The RequestContext passed to the authorizer."""
        if self._context is None:
            object.__setattr__(self, "_context", self._make_context())  # made once: a handler reads it repeatedly
        return self._context  # type: ignore[return-value]

    def _make_context(self) -> RequestContext:
        session, header = self.session, self.header
        return _context(
            session.principal_text,
            session.host,
            header.api_key,
            session.listener_name,
            header.client_id or "",
            header.correlation_id,
        )


make_request = maker(Request, "header", "body", "session", "frame", "_context")
"""Makes a request of header, body, session and frame, and None: its context, made when it is read."""
_context = maker(RequestContext, "principal", "host", "request_type", "listener_name", "client_id", "correlation_id")


Handler: TypeAlias = Callable[[Request], Awaitable[bytes]]
"""Handles a request and returns the encoded response body, without a header.

RequestError, AuthorizerNotReadyError and AclRequestError become an error response for the whole request
(protocol.responses). MalformedRequestError and OutcomeUnknownError close the connection without a response. Any
other error is logged and becomes UNKNOWN_SERVER_ERROR.
"""


ShortHandler: TypeAlias = Callable[[Request], "tuple[Future[Any], Callable[[int, Any], bytes]] | None"]
"""Begins a small request without a coroutine; None if the Handler is to handle it, and nothing has happened.

Returns the future of the result, and a function from version and result to the response body. Raises as a Handler, and
so may the future.
"""


class RequestError(MetadataError):
    """The request fails as a whole with an error code of org.apache.kafka.common.protocol.Errors."""

    def __init__(self, code: int, message: str | None = None) -> None:
        """`message` goes into the response if its schema has an error message."""
        self.code, self.message = code, message
        super().__init__(message or f"error {code}")


class OutcomeUnknownError(MetadataError):
    """The request may or may not have been applied, now or later; no Kafka error code expresses that.

    The connection is closed without a response, as if the node had crashed, and the client decides whether to retry
    (Kafka's Admin does, within `retries`). Any error code would assert an outcome.
    """


class MalformedRequestError(MetadataError):
    """The request decodes but is invalid, such as an ACL of resource type 0 (UNKNOWN).

    Kafka's request classes throw while parsing it, so the connection is closed without a response.
    """
