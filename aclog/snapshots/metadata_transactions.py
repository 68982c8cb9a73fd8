"""Metadata transactions (KIP-868): which records have become visible, and which are still held back.

The visible state moves from the end of one whole batch to the end of a later one, and never while a transaction is
open. Records before a Begin in its batch, or after an End, become visible with that batch like all of it; see
docs/decisions/0004-transactions.md.
"""

from typing import TypeAlias

from attrs import define, field

from aclog.metalog.errors import ReplayError
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)

Placed: TypeAlias = tuple[int, MetadataRecord]
"""A record and its offset."""

_MARKERS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


@define(kw_only=True)
class Transactions:
    """The records since the last visible state, of which those of aborted transactions are dropped."""

    _held: list[Placed] = field(factory=list, init=False)
    _begun_at: int | None = field(default=None, init=False)
    _held_before: int = field(default=0, init=False)

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended: what is held back is not visible."""
        return self._begun_at is not None

    def add(self, offset: int, record: MetadataRecord) -> None:
        """Take in the record at `offset`; records come in the order of the log.

        Raises:
            ReplayError: a Begin inside a transaction, or an End or Abort outside of one.

        """
        if type(record) not in _MARKERS:
            self._held.append((offset, record))
        elif isinstance(record, BeginTransactionRecord):
            self._begin(offset)
        else:
            self._finish(offset, record)

    def take(self) -> list[Placed]:
        """What has become visible, in order; call it at the end of a batch that leaves no transaction open."""
        taken, self._held = self._held, []
        return taken

    def _begin(self, offset: int) -> None:
        if self._begun_at is not None:
            raise ReplayError(f"a transaction begins inside the one begun at offset {self._begun_at}", offset=offset)
        self._begun_at, self._held_before = offset, len(self._held)

    def _finish(self, offset: int, record: MetadataRecord) -> None:
        aborts = isinstance(record, AbortTransactionRecord)
        if self._begun_at is None:
            raise ReplayError(f"a transaction {'aborts' if aborts else 'ends'} that has not begun", offset=offset)
        if aborts:
            del self._held[self._held_before :]
        self._begun_at = None
