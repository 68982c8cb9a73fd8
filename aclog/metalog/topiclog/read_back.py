"""What a topic log's writer has committed, read back before it is acknowledged."""

import threading
import time
from collections.abc import Sequence

from attrs import define, field

from aclog.metalog.batches import read_header
from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.log import LogReader

_SLICE_SECONDS = 0.5
_PAUSE_SECONDS = 0.01


@define(eq=False)
class ReadBack(Closeable):
    """Proves that batches can be read, by a read_committed reader that learns of them from the topic alone.

    Kafka takes messages from anyone with the right to write. What follows a message that is not a record can be
    committed, but never read again: acknowledging it would be a lie. Only `abandon` is thread-safe.
    """

    _reader: LogReader
    _owned: bool = field(kw_only=True)
    """Whether the reader is closed with this object."""
    _abandoned: threading.Event = field(factory=threading.Event, init=False)

    def check(self, batches: Sequence[bytes], deadline: float) -> None:
        """Wait until the reader has passed these contiguous batches, and compare what it has read.

        `deadline` is of time.monotonic.

        Raises:
            LogError: the reader has met something else, or has not come that far in time. The batches are committed.

        """
        start, end = read_header(batches[0]).base_offset, read_header(batches[-1]).end_offset
        written = b"".join(batches)
        try:
            self._wait(end, deadline)
            found = self._reader.read(start, len(written))
        except DecodeError as error:
            raise self._unread(start, end, f"this writer's own reader stopped before: {error}") from error
        if found != written:
            raise self._unread(start, end, "other records stand at these offsets")

    def _wait(self, end: int, deadline: float) -> None:
        while not self._reader.wait(end - 1, _SLICE_SECONDS):
            if self._abandoned.wait(_PAUSE_SECONDS):
                raise LogError(f"{self._reader.name}: abandoned")
            if time.monotonic() > deadline:
                what = f"committed, but the offsets up to {end} did not become readable in time"
                raise LogError(f"{self._reader.name}: {what}")

    def _unread(self, start: int, end: int, why: str) -> LogError:
        what = f"offsets {start} to {end - 1} are committed and not acknowledged"
        return LogError(f"{self._reader.name}: {what}: {why}")

    def abandon(self) -> None:
        """Make a thread inside `check` give up soon."""
        self._abandoned.set()

    def close(self) -> None:
        """Close the reader, if it is owned."""
        if self._owned:
            self._reader.close()
