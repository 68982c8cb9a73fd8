"""Which state of a log a time names, without reading the whole log for each question."""

import threading
from bisect import bisect_right

from attrs import define, field

from aclog.metalog.log import LogReader
from aclog.snapshots.moments import first_later

_MOST = 1_000


@define(eq=False, kw_only=True)
class TimeOffsets:
    """Times of a log that were asked for, and where it goes on after each. Safe for any number of threads."""

    log: LogReader
    _times: list[int] = field(factory=list, init=False)
    _offsets: list[int] = field(factory=list, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def after(self, time: int) -> int:
        """Return the offset of the first batch later than a time (ms since 1970); the high-water mark without one.

        The state at that time is the one that ends there (aclog.snapshots.moments.end_offset_at).

        Raises:
            MetadataError: the log is damaged, or cannot be read.

        """
        with self._lock:
            number = bisect_right(self._times, time)
            known = self._offsets[number - 1] if number else 0
        # A later time has no earlier answer, so what was found for an earlier one is where to begin.
        found = first_later(self.log, time, max(known, self.log.start_offset()))
        with self._lock:
            if len(self._times) >= _MOST:
                self._times.clear()
                self._offsets.clear()
            number = bisect_right(self._times, time)
            if not number or self._times[number - 1] != time:
                self._times.insert(number, time)
                self._offsets.insert(number, found.offset)
            else:
                self._offsets[number - 1] = found.offset
        return found.offset
