"""The in-memory window of committed batches that a reader of a remote log keeps: one contiguous range of the log."""

from bisect import bisect_right

from attrs import define, field

from aclog.metalog.batch_run import BatchRun

_JOIN_BELOW = 16 << 10
"""Runs of fewer bytes are joined: a quiet log delivers one batch at a time."""


def _end_offset(run: BatchRun) -> int:
    return run.end_offset


@define(eq=False)
class CommittedWindow:
    """Batches from offset `start` to `end`; appended at the end, trimmed at the start. Not thread-safe."""

    start: int = 0
    end: int = 0
    size: int = field(default=0, init=False)
    """Size in bytes."""
    _runs: list[BatchRun] = field(factory=list, init=False)

    def restart(self, offset: int) -> None:
        """Discard everything and continue at `offset`."""
        self._runs.clear()
        self.start = self.end = offset
        self.size = 0

    def append(self, run: BatchRun) -> None:
        """Append the run that follows the end; the first may begin below it, if the log was entered in mid-batch."""
        if not self._runs:
            self.start = run.base_offset
        # Otherwise a window of a quiet log would be a list of thousands of tiny runs, each with its own arrays.
        if self._runs and self._runs[-1].size + run.size <= _JOIN_BELOW:
            self._runs[-1] = self._runs[-1].joined(run)
        else:
            self._runs.append(run)
        self.end = run.end_offset
        self.size += run.size

    def drop(self, offset: int, size: int) -> None:
        """Discard the oldest runs that end at or below `offset`, until at most `size` bytes remain."""
        while self._runs and self.size > size and self._runs[0].end_offset <= offset:
            gone = self._runs.pop(0)
            self.size -= gone.size
            self.start = gone.end_offset

    def read(self, offset: int, max_bytes: int) -> tuple[bytes, int] | None:
        """Return (batches from the one that contains `offset`, their end offset): at most `max_bytes`, at least one.

        None if the window does not contain the offset.
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
