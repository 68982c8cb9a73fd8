"""A run of consecutive whole batches that can be split at any batch boundary."""

from typing import Self

import numpy as np
from attrs import frozen

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.batches import check_crc, read_header
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.vectors import Int64s


@frozen(eq=False)
class BatchRun:
    """One or more batches, headers and CRCs checked, offsets without a gap, leader epochs that never decrease.

    `positions` are the batch starts in `data` followed by the end of the last one; `ends` are the offsets after each.
    """

    data: bytes
    positions: Int64s
    bases: Int64s
    ends: Int64s
    epochs: Int64s

    @classmethod
    def of(cls, records: bytes) -> Self:
        """Return the whole batches in the records of a Fetch response, up to damage or to a truncated batch.

        A leader fills a response up to a byte limit, so the last batch of one is often truncated.

        Raises:
            DecodeError: the first batch is already damaged or truncated.
            ReplayError: the batches are not consecutive.

        """
        found, _ = scan_batches(records)
        if not len(found):
            header = read_header(records)
            check_crc(records, 0, header)
            raise DecodeError("no whole batch", position=0, offset=header.base_offset)  # pragma: no cover
        positions = np.append(found.position, found.end[-1])
        ends = found.base_offset + found.record_count
        run = cls(
            data=records[: positions[-1]],
            positions=positions,
            bases=found.base_offset,
            ends=ends,
            epochs=found.leader_epoch,
        )
        run._check_order()
        return run

    def _check_order(self) -> None:
        wrong = np.flatnonzero((self.bases[1:] != self.ends[:-1]) | (self.epochs[1:] < self.epochs[:-1]))
        if len(wrong):
            self.check_follows(int(self.ends[wrong[0]]), int(self.epochs[wrong[0]]), batch=int(wrong[0]) + 1)

    def check_follows(self, offset: int, epoch: int, batch: int = 0) -> None:
        """Check that a batch (by default the first) contains `offset` and that its epoch is not below `epoch`.

        Raises:
            ReplayError: it does not, or its epoch is lower.

        """
        base, end, found = int(self.bases[batch]), int(self.ends[batch]), int(self.epochs[batch])
        # A leader sends whole batches, so the first may begin below the requested offset; others must be contiguous.
        if not base <= offset < end or (batch and base != offset):
            what = f"a batch of offsets {base}..{end - 1}: expected one that contains offset {offset}"
        elif found < epoch:
            what = f"leader epoch {found} after epoch {epoch}: epochs never decrease"
        else:
            return
        raise ReplayError(what, position=int(self.positions[batch]), offset=base)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.data)

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return int(self.bases[0])

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        return int(self.ends[-1])

    @property
    def epoch(self) -> int:
        """Leader epoch of the last batch."""
        return int(self.epochs[-1])

    def below(self, offset: int) -> int:
        """Return the number of batches that end at or below an offset."""
        return int(np.searchsorted(self.ends, offset, side="right"))

    def slice(self, first: int, last: int) -> "BatchRun | None":
        """Return the batches from number `first` to before `last`; None if the slice is empty."""
        if first >= last:
            return None
        if first == 0 and last == len(self):
            return self
        start, end = int(self.positions[first]), int(self.positions[last])
        positions = self.positions[first : last + 1] - start
        rows = slice(first, last)
        return BatchRun(
            data=self.data[start:end],
            positions=positions,
            bases=self.bases[rows],
            ends=self.ends[rows],
            epochs=self.epochs[rows],
        )

    def read(self, offset: int, max_bytes: int) -> tuple[bytes, int]:
        """Return (batches from the one that contains `offset`, their end offset): at most `max_bytes`, at least one."""
        first = self.below(offset)
        start = int(self.positions[first])
        fitting = int(np.searchsorted(self.positions, start + max_bytes, side="right")) - 1
        last = max(fitting, first + 1)
        return self.data[start : int(self.positions[last])], int(self.ends[last - 1])

    def joined(self, after: "BatchRun") -> "BatchRun":
        """Return this run and the one that follows it as a single run."""
        positions = np.concatenate((self.positions[:-1], after.positions + self.size))
        rows = ((self.bases, after.bases), (self.ends, after.ends), (self.epochs, after.epochs))
        return BatchRun(self.data + after.data, positions, *map(np.concatenate, rows))
