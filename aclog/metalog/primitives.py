"""Primitive types of Kafka as bytes, read one by one or vectorized, and uuids as text."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from mmap import mmap
from typing import TypeAlias
from uuid import UUID, SafeUUID

from attrs import field

from aclog.metalog.errors import ConfigError, DecodeError, EncodeError
from aclog.metalog.machine import clock, randomness
from aclog.metalog.native import maker
from aclog.metalog.values import define

# Kafka's primitive types as bytes: varints, compact strings, bytes and arrays (KIP-482), zigzag varints (batches).
#
# Readers take (buffer, position) and return (value, position after it); a `DecodeError` carries the byte position in
# that buffer. Only the shortest form of a varint is accepted: Kafka never writes a longer one, and a longer one would
# not re-encode to the same bytes.


Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
"""What decoders read from: indexing yields ints, slicing works, and the buffer protocol is supported."""

MAX_STRING = 0x7FFF
"""Largest string field in bytes of UTF-8; Kafka's generated readers reject anything longer."""

_MAX_UINT32 = 0xFFFFFFFF


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint of 1 to 5 bytes (ByteUtils.readUnsignedVarint).

    Raises:
        DecodeError: truncated, not in its shortest form, or over 32 bits.

    """
    return _read_groups(buffer, position, 5, _MAX_UINT32)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a zigzag 32-bit varint (ByteUtils.readVarint); raises like `read_unsigned_varint`."""
    value, after = _read_groups(buffer, position, 5, _MAX_UINT32)
    return (value >> 1) ^ -(value & 1), after


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a zigzag 64-bit varint of 1 to 10 bytes (ByteUtils.readVarlong); raises like `read_unsigned_varint`."""
    value, after = _read_groups(buffer, position, 10, 0xFFFFFFFFFFFFFFFF)
    return (value >> 1) ^ -(value & 1), after


def _read_groups(buffer: Buffer, position: int, most: int, limit: int) -> tuple[int, int]:
    value, at = 0, position
    try:
        for shift in range(0, 7 * most, 7):
            byte = buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                # A last group of zero means that a shorter form exists, which re-encoding would produce instead.
                if (byte == 0 and shift) or value > limit:
                    break
                return value, at
    except IndexError:
        raise DecodeError("truncated varint", position=position) from None
    raise DecodeError(
        f"not a varint: expected the shortest form, at most {most} bytes and {limit.bit_length()} bits",
        position=position,
    )


def unsigned_varint(value: int) -> bytes:
    """Return the bytes of an unsigned 32-bit varint.

    Raises:
        EncodeError: the value is not in 0..2^32-1.

    """
    if not 0 <= value <= _MAX_UINT32:
        raise EncodeError(f"{value} does not fit an unsigned varint of 32 bits")
    return _groups(value)


def varint(value: int) -> bytes:
    """Return the bytes of a zigzag varint; `value` is an int32 or, for a varlong, an int64.

    Raises:
        EncodeError: the value is not an int64.

    """
    if 0 <= value < len(_SMALL_VARINTS):
        return _SMALL_VARINTS[value]
    if not -(1 << 63) <= value < 1 << 63:
        raise EncodeError(f"{value} does not fit a varint of 64 bits")
    return _groups((value << 1) ^ (value >> 63))


def _groups(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_compact_string(buffer: Buffer, position: int) -> tuple[str, int]:
    """Read a compact string: unsigned varint of length + 1, then strict UTF-8.

    Raises:
        DecodeError: null, truncated, over 32,767 bytes, or not UTF-8.

    """
    data, after = read_compact_bytes(buffer, position)
    if len(data) > MAX_STRING:
        raise DecodeError(f"a string of {len(data)} bytes: expected at most {MAX_STRING}", position=position)
    try:
        return data.decode(), after
    except UnicodeDecodeError as e:
        start = after - len(data) + e.start
        raise DecodeError(f"a string that is not UTF-8: {e.reason}", position=start) from None


def read_compact_bytes(buffer: Buffer, position: int) -> tuple[bytes, int]:
    """Read compact bytes: unsigned varint of length + 1, then the bytes.

    Raises:
        DecodeError: null or truncated.

    """
    length, start = read_unsigned_varint(buffer, position)
    # Length + 1 is what is stored, so that 0 can mean null; no field that is read this way is nullable.
    if length == 0:
        raise DecodeError("null where a value is required", position=position)
    end = start + length - 1
    if end > len(buffer):
        raise DecodeError(f"field of {length - 1} bytes, but only {len(buffer) - start} remain", position=position)
    return bytes(buffer[start:end]), end


def compact_string(value: str) -> bytes:
    """Return the bytes of a compact string.

    Raises:
        EncodeError: a lone surrogate, or over 32,767 bytes of UTF-8.

    """
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise EncodeError("a string with a lone surrogate has no UTF-8") from None
    if len(data) > MAX_STRING:
        raise EncodeError(f"a string of {len(data)} bytes: the format holds at most {MAX_STRING}")
    return (_ONE_BYTE[len(data) + 1] if len(data) < _SHORT else _groups(len(data) + 1)) + data


def compact_bytes(value: bytes) -> bytes:
    """Return the bytes of a compact bytes field."""
    return unsigned_varint(len(value) + 1) + value


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))
_SHORT = len(_ONE_BYTE) - 1
_SMALL_VARINTS = tuple(_groups(value << 1) for value in range(1 << 10))
"""The varints of the lengths in most records."""


# Kafka's text form of a uuid: 22 characters of URL-safe base64 without padding (org.apache.kafka.common.Uuid).


_POOL_BYTES = 4096
ZERO = UUID(int=0)
"""Uuid.ZERO_UUID: no uuid."""

_VERSION_4 = 4 << 76 | 2 << 62
_OTHER_BITS = ~(0xF << 76 | 3 << 62)
DASH = 0b111110
"""The first 6 bits of a uuid whose text begins with `-`."""

_UNKNOWN = SafeUUID.unknown
_new_uuid = maker(UUID, "int", "is_safe")


def uuid_of(value: int) -> UUID:
    """Return UUID(int=value) for 0 <= value < 2^128, without the argument checks, which cost more than the rest."""
    return _new_uuid(value, _UNKNOWN)


def uuid_text(value: UUID) -> str:
    """Return the 22-character text of a uuid."""
    return urlsafe_b64encode(value.bytes).decode("ascii")[:22]


def parse_uuid(text: str) -> UUID:
    """Parse the 22-character text of a uuid.

    Raises:
        ConfigError: the text is not the canonical base64 of 16 bytes.

    """
    try:
        value = UUID(bytes=urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error) as e:
        raise ConfigError(f"{text!r} is not a Kafka uuid: expected 22 characters of url-safe base64") from e
    # 22 characters carry 132 bits: several texts decode to the same 16 bytes, and only one of them is Kafka's.
    if uuid_text(value) != text:
        raise ConfigError(f"{text!r} is not a Kafka uuid: expected 22 characters of url-safe base64")
    return value


def random_uuid(token_bytes: Callable[[int], bytes]) -> UUID:
    """Return a new uuid from a source of random bytes such as `randomness.token_bytes`, as Uuid.randomUuid does.

    Version 4, never 0 or 1 (reserved by Kafka), and its text never begins with `-`, which would look like a flag.
    """
    while True:
        # The bits of version 4 are also what makes it neither 0 nor 1.
        value = int.from_bytes(token_bytes(16)) & _OTHER_BITS | _VERSION_4
        if value >> 122 != DASH:
            return uuid_of(value)


@define
class RandomIds:
    """Random UUIDs for ACL ids and token ids (Uuid.randomUuid), from os.urandom in blocks.

    os.urandom releases the GIL; in a busy process, getting it back takes a hundred times as long as the call itself.
    Used by one thread at a time.
    """

    _pool: bytes = field(default=b"", init=False)
    _position: int = field(default=0, init=False)

    def __call__(self) -> UUID:
        """Return a new id."""
        return random_uuid(self._take)

    def _take(self, count: int) -> bytes:
        if self._position + count > len(self._pool):
            self._pool, self._position = randomness.urandom(_POOL_BYTES), 0
        self._position += count
        return self._pool[self._position - count : self._position]


# The wall clock, in the unit that record timestamps have, and a clock for ages.


def current_time_ms() -> int:
    """Return the time in ms since 1970 (Kafka's Time.milliseconds)."""
    return clock.time_ns() // 1_000_000


def elapsed_seconds() -> float:
    """Return seconds since an arbitrary moment; never goes back, and counts suspension where the system does."""
    return clock.boot_time()
