"""A topic log as those read it who do not write it (metalog.log.LogReader)."""

from types import TracebackType
from typing import Self

from attrs import define, field

from metalog.errors import MetadataError
from metalog.topiclog.leaders import Leader
from metalog.topiclog.settings import TopicSettings


@define(eq=False)
class TopicReader:
    """Follows the topic in a thread of its own, read_committed. Safe for many threads.

    Holds what came last; what is older is read from the topic when it is asked for. Losses of brokers are overcome.
    """

    settings: TopicSettings
    window_bytes: int = field(default=32 << 20, kw_only=True)
    """How much of what came last is held in memory."""

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    @property
    def trouble(self) -> MetadataError | None:
        """Why nothing comes, while nothing does (no broker answers); None while all is well."""
        raise NotImplementedError

    def leader(self) -> Leader | None:
        """Who wrote the newest epoch that is committed; None in an empty log, or while the mark is not known."""
        raise NotImplementedError

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not within `timeout` seconds, or will not be; why.

        """
        raise NotImplementedError

    def start_offset(self) -> int:
        """The offset of the first batch that is there whole; 0 in an empty log."""
        raise NotImplementedError

    def high_watermark(self) -> int:
        """The offset after the last batch below the last stable offset; -1 while it is not known."""
        raise NotImplementedError

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that holds `offset` (metalog.log.LogReader.read).

        Waits for the network, but not for ever.

        Raises:
            LogError: outside of the log, closed, or no broker answers.
            DecodeError: a message that is no record's, a ReplayError where one is missing.

        """
        raise NotImplementedError

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`; tell whether it is.

        Raises:
            MetadataError: the log cannot be followed any more, and that will not pass by itself.

        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the connections and the thread; a second close is nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
