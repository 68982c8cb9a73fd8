"""A topic log, open for writing (metalog.log.Log). Made by `open_topic_log`."""

from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from attrs import define

from metalog.control import ControlRecord
from metalog.errors import LogError
from metalog.log import Appended
from metalog.topiclog.settings import TopicSettings


@define(eq=False)
class TopicLog:
    """The one writer of a topic, until Kafka fences it, and a reader of it. Safe for many threads.

    One transaction holds all batches that wait. Once anything about a transaction is in doubt, the log is dead: whoever
    waits, and whoever comes later, gets the `failure`. What became of the transaction is seen by opening it again.
    """

    settings: TopicSettings
    leader_epoch: int

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    @property
    def failure(self) -> LogError | None:
        """Why nothing can be appended any more, a FencedError where another writer took over; None while all is well.

        A close is no failure.
        """
        raise NotImplementedError

    def start_offset(self) -> int:
        """The offset of the first batch that is there whole."""
        raise NotImplementedError

    def high_watermark(self) -> int:
        """The end of what this writer found committed, and has committed since. Known from the start."""
        raise NotImplementedError

    def end_offset(self) -> int:
        """The offset that the next record gets."""
        raise NotImplementedError

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (metalog.log.Log.append)."""
        raise NotImplementedError

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a batch as it is (metalog.log.Log.append_batch)."""
        raise NotImplementedError

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises what `append` raises."""
        raise NotImplementedError

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that holds `offset` (metalog.log.LogReader.read)."""
        raise NotImplementedError

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset` (metalog.log.LogReader.wait)."""
        raise NotImplementedError

    def abandon(self, why: str) -> None:
        """Give up at once, without waiting for any broker: all who wait get a LogError that says why.

        For a writer who hears that it is deposed. What it had sent may be committed still, or not.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Commit what waits, then let go; a second close is nothing.

        Raises:
            LogError: called by a future's callback, in the thread that has to do the committing.

        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
