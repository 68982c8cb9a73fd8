"""A log in memory whose appends are committed, or fail, when a test says so."""

from concurrent.futures import Future

from aclog.metalog.batches import iter_batches
from aclog.metalog.committed_log import Appended
from aclog.metalog.errors import LogError
from tests.support.fakes.memory_log import MemoryLog


class HeldLog(MemoryLog):
    """`hold` from some moment on; then `release(n)` commits the next n batches and `break_down` fails all that wait."""

    def __init__(self):
        super().__init__()
        self.held, self.holding, self.mark, self.broken = [], False, None, None

    def hold(self):
        self.holding, self.mark = True, self._end

    def high_watermark(self):
        return self._end if self.mark is None else self.mark

    def read(self, offset, max_bytes=1 << 20):
        data = super().read(offset, max_bytes)
        sizes = [header.size for _, header in iter_batches(data) if header.end_offset <= self.high_watermark()]
        return data[: sum(sizes)]

    def append(self, values, *, timestamp):
        self._check_works()
        return self._answered(super().append(values, timestamp=timestamp))

    def append_batch(self, batch):
        self._check_works()
        return self._answered(super().append_batch(batch))

    def _check_works(self):
        if self.broken:
            raise LogError(self.broken)

    def _answered(self, done):
        if not self.holding:
            return done
        future: Future[Appended] = Future()
        self.held.append((future, done.result()))
        return future

    def release(self, count=1 << 30):
        """As a group commit does: the mark first, then each future."""
        group, self.held = self.held[:count], self.held[count:]
        if group:
            self.mark = group[-1][1].last_offset + 1
        for future, appended in group:
            future.set_result(appended)

    def break_down(self, error="no space left"):
        self.broken = error
        group, self.held = self.held, []
        for future, _ in group:
            future.set_exception(LogError(error))
