"""A metadata log in memory: the Log protocol without a disk, for tests, for embedding and for what-if replays."""

import threading
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future

from attrs import define, field

from aclog.metalog.batches import build_batch
from aclog.metalog.committed_log import Appended
from aclog.metalog.control_records import ControlRecord, control_batch
from aclog.metalog.errors import LogError
from aclog.metalog.group_commit import check_base_offset, read_prebuilt_header

_MAX_BATCH_BYTES = 8 << 20


@define(eq=False)
class MemoryLog:
    """Implements aclog.metalog.committed_log.Log: an append is committed when it returns. Safe for many threads."""

    name: str = "memory"
    leader_epoch: int = 1
    _batches: list[bytes] = field(init=False, factory=list)
    _bases: list[int] = field(init=False, factory=list)
    _end: int = field(init=False, default=0)
    _closed: bool = field(init=False, default=False)
    _grown: threading.Condition = field(init=False, factory=threading.Condition)

    def start_offset(self) -> int:
        """Always 0."""
        return 0

    def high_watermark(self) -> int:
        """The end: what is appended is committed."""
        return self._end

    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._end

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (Log.append); the future is done already."""
        with self._grown:
            batch = build_batch(values, base_offset=self._end, leader_epoch=self.leader_epoch, timestamp=timestamp)
            return self._appended(batch, len(values))

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a batch as it is (aclog.metalog.committed_log.Log.append_batch); the future is done already."""
        header = read_prebuilt_header(self.name, batch, self.leader_epoch)
        with self._grown:
            check_base_offset(self.name, header.base_offset, self._end)
            return self._appended(batch, header.record_count)

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises what `append` raises."""
        with self._grown:
            epoch = self.leader_epoch
            batch = control_batch(*records, base_offset=self._end, leader_epoch=epoch, timestamp=timestamp)
            return self._appended(batch, len(records))

    def _appended(self, batch: bytes, count: int) -> Future[Appended]:
        self._check_open()
        if len(batch) > _MAX_BATCH_BYTES:
            raise LogError(f"{self.name}: a batch of {len(batch)} bytes: at most {_MAX_BATCH_BYTES} are expected")
        base, self._end = self._end, self._end + count
        self._bases.append(base)
        self._batches.append(batch)
        self._grown.notify_all()
        future: Future[Appended] = Future()
        future.set_result(Appended(base_offset=base, last_offset=self._end - 1, leader_epoch=self.leader_epoch))
        return future

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole batches from the one that holds `offset` (aclog.metalog.committed_log.LogReader.read)."""
        with self._grown:
            self._check_open()
            if not 0 <= offset <= self._end:
                raise LogError(f"{self.name}: offset {offset} is outside 0..{self._end}, the log's start and end")
            if offset == self._end:
                return b""
            first = bisect_right(self._bases, offset) - 1
            end, size = first + 1, len(self._batches[first])
            while end < len(self._batches) and size + len(self._batches[end]) <= max_bytes:
                size += len(self._batches[end])
                end += 1
            return b"".join(self._batches[first:end])

    def read_local(self, offset: int, max_bytes: int = 1 << 20) -> bytes | None:
        """Read as `read`: all is in memory (aclog.metalog.committed_log.ServedLog)."""
        return self.read(offset, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset` (aclog.metalog.committed_log.LogReader.wait)."""
        with self._grown:
            self._grown.wait_for(lambda: self._end > offset or self._closed, min(timeout, threading.TIMEOUT_MAX))
            return self._end > offset

    def close(self) -> None:
        """No more reads and appends; a second close is nothing."""
        with self._grown:
            self._closed = True
            self._grown.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"{self.name}: closed")
