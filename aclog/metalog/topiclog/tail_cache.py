"""The newest committed batches of a topic log, in memory, and its newest leader."""

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.committed_log import CommittedLog
from aclog.metalog.topiclog.leader_change import Leader


@define(kw_only=True, eq=False)
class TailCache(CommittedLog):
    """Holds the newest `window_bytes` of the log. Thread-safe; one thread adds."""

    window_bytes: int
    leader: Leader | None = field(default=None, init=False)

    def begin(self, start_offset: int, high_watermark: int, cached_from: int) -> None:
        """Set the log's start offset and high-water mark; the first batch added begins at `cached_from`."""
        with self._changed:
            self.start_offset, self.high_watermark = start_offset, high_watermark
            self._window.restart(cached_from)
            self._changed.notify_all()

    def add(self, run: BatchRun) -> None:
        """Append batches that were committed, and move the high-water mark past them."""
        with self._changed:
            self._window.append(run)
            self._window.drop(self._window.end, self.window_bytes)
            self.high_watermark = max(self.high_watermark, run.end_offset)
            self._changed.notify_all()

    def set_leader(self, leader: Leader) -> None:
        """Record the newest leader; batches arrive in order, and with them epochs."""
        with self._changed:
            self.leader = leader

    def back_off(self, seconds: float) -> None:
        """Sleep, unless the log is closed meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed, seconds)

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """Read as aclog.metalog.log.LogReader.read; None if the batch is no longer, or not yet, cached.

        Raises:
            LogError: the offset is out of range, or the log is closed.

        """
        with self._changed:
            self.check_bounds(offset)
            if offset == self.high_watermark:
                return b""
            found = self._window.read(offset, max_bytes)
            return None if found is None else found[0]

    @property
    def _silent(self) -> str:
        return "no broker responds"

    @property
    def _ends_wait(self) -> bool:
        # A refused login does not end a wait: a standby controller keeps following until an operator fixes it.
        return self.failure is not None and not self.closed
