"""The committed batches that a reader of a log elsewhere holds in memory: one stretch of the log without a gap."""

from bisect import bisect_right

from attrs import define, field

from aclog.metalog.batch_run import BatchRun

_JOIN_BELOW = 16 << 10
"""Runs smaller than this are put together, in bytes: a quiet log comes in a batch at a time."""


def _end_offset(run: BatchRun) -> int:
    return run.end_offset


@define(eq=False)
class CommittedWindow:
    """Batches from offset `start` to `end`; it grows at its end and is cut at its start. For one thread at a time."""

    start: int = 0
    end: int = 0
    size: int = field(default=0, init=False)
    """In bytes."""
    _runs: list[BatchRun] = field(factory=list, init=False)

    def restart(self, offset: int) -> None:
        """Hold nothing, and go on at `offset`."""
        self._runs.clear()
        self.start = self.end = offset
        self.size = 0

    def append(self, run: BatchRun) -> None:
        """Add what follows the end. The first batch may begin below it, where one was entered in its middle."""
        if not self._runs:
            self.start = run.base_offset
        if self._runs and self._runs[-1].size + run.size <= _JOIN_BELOW:
            self._runs[-1] = self._runs[-1].joined(run)
        else:
            self._runs.append(run)
        self.end = run.end_offset
        self.size += run.size

    def drop(self, offset: int, size: int) -> None:
        """Forget the oldest runs that end at or below `offset`, until there are at most `size` bytes."""
        while self._runs and self.size > size and self._runs[0].end_offset <= offset:
            gone = self._runs.pop(0)
            self.size -= gone.size
            self.start = gone.end_offset

    def read(self, offset: int, max_bytes: int) -> tuple[bytes, int] | None:
        """Batches from the one that holds `offset` on, at most `max_bytes`, but one at least; and where they end.

        None where the offset is not held.
        """
        if not self.start <= offset < self.end:
            return None
        number = bisect_right(self._runs, offset, key=_end_offset)
        data, offset = self._runs[number].read(offset, max_bytes)
        pieces, size = [data], len(data)
        while offset == self._runs[number].end_offset and number + 1 < len(self._runs):
            number += 1
            if size + int(self._runs[number].positions[1]) > max_bytes:
                break
            data, offset = self._runs[number].read(offset, max_bytes - size)
            pieces.append(data)
            size += len(data)
        return b"".join(pieces), offset
