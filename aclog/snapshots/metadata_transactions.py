"""Metadata transactions (KIP-868): which records are visible, which are held back, and which are dropped by an abort.

The visible state advances from the end of one whole batch to the end of a later one, and never while a transaction is
open. Records before a Begin in its batch, or after an End, become visible with that batch as a whole; see
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

OffsetAndRecord: TypeAlias = tuple[int, MetadataRecord]
"""An offset and the record at it."""

_MARKERS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


@define(kw_only=True)
class Transactions:
    """The records since the last visible state, without those of aborted transactions."""

    _held: list[OffsetAndRecord] = field(factory=list, init=False)
    _begun_at: int | None = field(default=None, init=False)
    _held_before: int = field(default=0, init=False)

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended, so that records are held back."""
        return self._begun_at is not None

    def add(self, offset: int, record: MetadataRecord) -> None:
        """Add the record at `offset`; records must be added in log order.

        Raises:
            ReplayError: a Begin inside a transaction, or an End or Abort outside of one.

        """
        if type(record) not in _MARKERS:
            self._held.append((offset, record))
        elif isinstance(record, BeginTransactionRecord):
            self._begin(offset)
        else:
            self._finish(offset, record)

    def take(self) -> list[OffsetAndRecord]:
        """Return what has become visible, in order; call it after a batch that leaves no transaction open."""
        taken, self._held = self._held, []
        return taken

    def _begin(self, offset: int) -> None:
        if self._begun_at is not None:
            raise ReplayError(
                f"a BeginTransactionRecord inside the transaction begun at offset {self._begun_at}", offset=offset
            )
        self._begun_at, self._held_before = offset, len(self._held)

    def _finish(self, offset: int, record: MetadataRecord) -> None:
        aborts = isinstance(record, AbortTransactionRecord)
        if self._begun_at is None:
            raise ReplayError(f"{type(record).__name__} outside of a transaction", offset=offset)
        if aborts:
            # Only what came after the Begin is dropped: records before it in the same batch still count.
            del self._held[self._held_before :]
        self._begun_at = None
