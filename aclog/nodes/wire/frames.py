"""Framing: a 4-byte big-endian length before each message (org.apache.kafka.common.network.NetworkReceive)."""

from attrs import define, field

from aclog.metalog.errors import DecodeError

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
        """What is buffered: the beginning of a frame, or what turned out to be none."""
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
