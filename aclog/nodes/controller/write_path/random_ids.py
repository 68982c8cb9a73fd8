"""Ids for new rules: random uuids as Kafka makes them (Uuid.randomUuid)."""

import os
from uuid import UUID

from attrs import define, field

from aclog.metalog.uuids import random_uuid

_POOL_BYTES = 4096


@define
class RandomIds:
    """Random uuids from the operating system's randomness, which is asked for in larger pieces.

    Each call for it lets go of the interpreter, and in a busy node it takes a hundred times as long to get it back.
    Used by one thread at a time.
    """

    _pool: bytes = field(default=b"", init=False)
    _taken: int = field(default=0, init=False)

    def __call__(self) -> UUID:
        """A new id."""
        return random_uuid(self._take)

    def _take(self, count: int) -> bytes:
        if self._taken + count > len(self._pool):
            self._pool, self._taken = os.urandom(_POOL_BYTES), 0
        self._taken += count
        return self._pool[self._taken - count : self._taken]
