"""Field encodings for responses that are written without kio, in flexible and in older versions."""

from functools import cache

from aclog.metalog.primitives import unsigned_varint
from aclog.nodes.wire.api_keys import is_flexible

NO_THROTTLE = bytes(4)
"""throttle_time_ms of 0: these nodes have no quotas."""
NO_ERROR = bytes(2)
"""error_code 0."""

# A DescribeAcls response may hold tens of thousands of short strings: a table look-up beats encoding each length.
_BYTES = tuple(bytes((code,)) for code in range(256))


class FieldWriter:
    """Encodes strings, bytes and arrays: compact in flexible versions (KIP-482), with fixed-size lengths before."""

    def __init__(self, *, flexible: bool) -> None:
        self.flexible = flexible
        self.tags = b"\0" if flexible else b""
        """The empty tagged-field section at the end of each structure."""
        self.null = b"\0" if flexible else b"\xff\xff"
        """A null string."""

    def array(self, length: int) -> bytes:
        """Return the length prefix of an array."""
        return _varint(length + 1) if self.flexible else length.to_bytes(4, "big")

    def string(self, text: str) -> bytes:
        """Return a string with its length. No string in the log or a request exceeds the length limit."""
        data = text.encode(errors="replace")
        return (_varint(len(data) + 1) if self.flexible else len(data).to_bytes(2, "big")) + data

    def binary(self, data: bytes) -> bytes:
        """Return a byte array with its length."""
        return (_varint(len(data) + 1) if self.flexible else len(data).to_bytes(4, "big")) + data

    def error(self, code: int, message: str | None) -> bytes:
        """Return an error code and message."""
        return code.to_bytes(2, "big", signed=True) + (self.null if message is None else self.string(message))

    def principal(self, text: str) -> bytes:
        """Return the type and the name of a principal `Type:name`."""
        kind, _, name = text.partition(":")
        return self.string(kind) + self.string(name)


@cache
def field_writer(api_key: int, version: int) -> FieldWriter:
    """Return the field writer for a version of an API."""
    return FieldWriter(flexible=is_flexible(api_key, version))


def int8(code: int) -> bytes:
    """Return a signed or unsigned byte."""
    return _BYTES[code & 0xFF]


def _varint(value: int) -> bytes:
    return _BYTES[value] if value < 0x80 else unsigned_varint(value)
