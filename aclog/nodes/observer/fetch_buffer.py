"""Committed batches between the task that fetches them and the threads that read them."""

import time
from collections.abc import Callable, Iterable

from attrs import define, field, frozen

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.committed_log import CommittedLog
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.fetch_messages import EpochEnd
from aclog.nodes.observer.fetch_options import ObserverOptions


@frozen(kw_only=True)
class Confirmation:
    """A fetch that a leader answered: its address, and when it was asked (aclog.metalog.clock.elapsed_seconds)."""

    server: HostPort
    asked: float


@define(kw_only=True, eq=False)
class FetchBuffer(CommittedLog):
    """A bounded buffer. Thread-safe; one thread adds.

    `made_room` is called by a reading thread when a full buffer is no longer full.
    """

    options: ObserverOptions
    made_room: Callable[[], None]
    snapshot: EpochEnd | None = field(default=None, init=False)
    """The snapshot that replaces all records below `start_offset`."""
    confirmed: Confirmation | None = field(default=None, init=False)
    """The last answer of a leader by which the mark is current."""
    _read_to: int = field(default=0, init=False)

    @property
    def full(self) -> bool:
        """Whether to stop fetching for now."""
        return self._window.size >= self.options.buffer_bytes

    def add(self, committed: Iterable[BatchRun], high_watermark: int, confirmed: Confirmation | None = None) -> None:
        """Append newly committed batches, and clear the error; `confirmed` if the mark is known to be current."""
        with self._changed:
            for run in committed:
                self._window.append(run)
            self.high_watermark = max(self.high_watermark, high_watermark)
            # After the mark: who reads the age first, then the mark, is never told too young an age.
            self.confirmed = confirmed or self.confirmed
            self._clear_error()
            self._changed.notify_all()

    def begin_at(self, snapshot: EpochEnd, high_watermark: int, confirmed: Confirmation | None = None) -> None:
        """Restart after this snapshot: batches below its end offset are dropped."""
        with self._changed:
            self.start_offset, self.snapshot = snapshot.end_offset, snapshot
            if self._window.end < snapshot.end_offset:
                self._window.restart(snapshot.end_offset)
            # An unknown mark stays unknown: the snapshot's end is committed, but more may be committed beyond it,
            # and a node that takes the snapshot for everything would report itself caught up too early.
            if max(self.high_watermark, high_watermark) >= 0:
                self.high_watermark = max(self.high_watermark, high_watermark, snapshot.end_offset)
            self.confirmed = confirmed or self.confirmed
            self._changed.notify_all()

    def start_at(self, offset: int) -> None:
        """Start at an offset below which the caller has everything; called before anything is added."""
        with self._changed:
            self.start_offset = self._read_to = offset
            self._window.restart(offset)

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """Read as LogReader.read; None if the batch is no longer, or not yet, in the buffer.

        Waits up to `read_seconds` for the next batch if it is known to be committed.
        """
        with self._changed:
            self.check_bounds(offset)
            if offset == self.high_watermark:
                return b""
            self._mark_read(offset)
            end = time.monotonic() + self.options.read_seconds
            # The mark may run ahead of the batches: a full buffer is fetched one batch at a time (Fetcher).
            while offset == self._window.end and not self.closed and not self._stuck:
                left = end - time.monotonic()
                if left <= 0:
                    raise self.reason(f"offset {offset} did not arrive within {self.options.read_seconds:g} s")
                self._changed.wait(left)
            if offset == self._window.end:
                raise self.reason("no more batches arrive")
            return self._take(offset, max_bytes)

    @property
    def _silent(self) -> str:
        return "no leader"

    def _take(self, offset: int, max_bytes: int) -> bytes | None:
        found = self._window.read(offset, max_bytes)
        if found is None:
            return None
        data, end = found
        self._mark_read(end)
        return data

    def _mark_read(self, offset: int) -> None:
        """Release batches below `offset`, except for `kept_bytes` that a second reader may want."""
        was_full = self.full
        self._read_to = max(self._read_to, offset)
        self._window.drop(self._read_to, self.options.kept_bytes)
        if was_full and not self.full:
            self.made_room()
