"""Frames: a message with its length before it, 4 bytes big-endian (org.apache.kafka.common.network.NetworkReceive)."""

from attrs import define, field

from aclog.metalog.errors import DecodeError

MIN_REQUEST = 8
"""The bytes of the smallest request: the header's API key, version and correlation id."""


class FrameError(DecodeError):
    """A frame's length that cannot be: whoever sent it does not speak Kafka's protocol, or asks for too much."""


def frame(payload: bytes) -> bytes:
    """The payload with its length before it."""
    return len(payload).to_bytes(4, "big") + payload


def frame_length(prefix: bytes | bytearray, max_bytes: int, min_bytes: int = MIN_REQUEST) -> int:
    """The length that the 4 bytes before a frame announce.

    Raises:
        FrameError: not within min_bytes..max_bytes.

    """
    length = int.from_bytes(prefix, "big", signed=True)
    if not min_bytes <= length <= max_bytes:
        raise FrameError(f"a frame of {length} bytes announced: expected {min_bytes} to {max_bytes}")
    return length


@define(kw_only=True)
class FrameBuffer:
    """Cuts a stream of bytes into frames.

    `max_bytes` may be changed between frames (more is allowed once a client is authenticated), `min_bytes` too: a raw
    SASL token after a SaslHandshake of version 0 may be short, and a response has 4 bytes at least. No more is kept
    than was fed; whoever feeds takes all frames out before more is read, so that one frame at most waits in here.
    """

    max_bytes: int
    min_bytes: int = MIN_REQUEST
    _data: bytearray = field(factory=bytearray, init=False, repr=False)

    def __len__(self) -> int:
        """How many bytes wait in here."""
        return len(self._data)

    def feed(self, data: bytes) -> None:
        """Take in what came from the socket."""
        self._data += data

    def next(self) -> bytes | None:
        """The next whole frame without its length, or None until more is fed.

        Raises:
            FrameError: a length that cannot be, as soon as it is here; the stream is of no more use then.

        """
        if len(self._data) < 4:
            return None
        end = 4 + frame_length(self._data[:4], self.max_bytes, self.min_bytes)
        if len(self._data) < end:
            return None
        whole = bytes(self._data[4:end])
        del self._data[:end]
        return whole
