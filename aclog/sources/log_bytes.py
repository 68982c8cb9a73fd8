"""Progress of the replay of a directory in bytes, of which offsets tell only roughly how long they take."""

from bisect import bisect_right
from pathlib import Path

from aclog.metalog.filelog.file_names import list_segments
from aclog.snapshots.recovery import Progress
from aclog.terminal.progress import Advance


def in_bytes(directory: Path, advance: Advance) -> Progress:
    """Return what reports offsets as bytes since the first one; within a segment they are as if evenly spread."""
    segments = list_segments(directory)
    starts = [each.base_offset for each in segments]
    sizes = [each.path.stat().st_size for each in segments]
    began: list[int] = []

    def bytes_below(offset: int, end: int) -> int:
        """Return how many bytes stand before an offset of a log that ends at `end`."""
        number = max(bisect_right(starts, offset) - 1, 0)
        last = starts[number + 1] if number + 1 < len(starts) else max(end, offset)
        share = (offset - starts[number]) / max(last - starts[number], 1)
        return sum(sizes[:number]) + round(sizes[number] * min(max(share, 0), 1))

    def report(reached: int, limit: int) -> None:
        """Report what is done and what there is to do. See aclog.snapshots.recovery.Progress."""
        done, total = bytes_below(reached, limit), bytes_below(limit, limit)
        if not began:
            began.append(done)
        advance(done - began[0], total - began[0])

    return report if segments else lambda _reached, _limit: None
