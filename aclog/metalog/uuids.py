"""Kafka's text form of a uuid: 22 characters of URL-safe base64 without padding (org.apache.kafka.common.Uuid)."""

import binascii
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from uuid import UUID, SafeUUID

from attrs import define, field

from aclog.metalog.errors import ConfigError

_POOL_BYTES = 4096
ZERO = UUID(int=0)
"""Uuid.ZERO_UUID: no uuid."""

_VERSION_4 = 4 << 76 | 2 << 62
_OTHER_BITS = ~(0xF << 76 | 3 << 62)
_DASH = 0b111110
"""The first 6 bits of a uuid whose text begins with `-`."""

_UNKNOWN = SafeUUID.unknown
_set = object.__setattr__


def uuid_of(value: int) -> UUID:
    """Return UUID(int=value) for 0 <= value < 2^128, without the argument checks, which cost more than the rest."""
    uuid = object.__new__(UUID)
    _set(uuid, "int", value)
    _set(uuid, "is_safe", _UNKNOWN)
    return uuid


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
    """Return a new uuid from a source of random bytes such as `secrets.token_bytes`, as Uuid.randomUuid does.

    Version 4, never 0 or 1 (reserved by Kafka), and its text never begins with `-`, which would look like a flag.
    """
    while True:
        # The bits of version 4 are also what makes it neither 0 nor 1.
        value = int.from_bytes(token_bytes(16)) & _OTHER_BITS | _VERSION_4
        if value >> 122 != _DASH:
            return uuid_of(value)


@define
class RandomIds:
    """Random UUIDs for ACL ids and token ids (Uuid.randomUuid), from os.urandom in blocks.

    os.urandom releases the GIL; in a busy process, getting it back takes a hundred times as long as the call itself.
    Used by one thread at a time.
    """

    _pool: bytes = field(default=b"", init=False)
    _taken: int = field(default=0, init=False)

    def __call__(self) -> UUID:
        """Return a new id."""
        return random_uuid(self._take)

    def _take(self, count: int) -> bytes:
        if self._taken + count > len(self._pool):
            self._pool, self._taken = os.urandom(_POOL_BYTES), 0
        self._taken += count
        return self._pool[self._taken - count : self._taken]
