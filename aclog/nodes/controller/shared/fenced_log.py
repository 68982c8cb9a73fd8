"""What controllers need of a log that several of them share: a reader, a writer that can be fenced, an election."""

from collections.abc import Callable
from typing import Protocol

from aclog.metalog.errors import LogError
from aclog.metalog.log import LogReader
from aclog.metalog.topiclog import Leader
from aclog.nodes.controller.write_path.activation import LedLog


class SharedReader(LogReader, Protocol):
    """The log as it is followed (aclog.metalog.topiclog.TopicReader)."""

    def leader(self) -> Leader | None:
        """Who wrote the newest epoch that is committed; None in an empty log, or while the mark is not known."""
        ...

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not within `timeout` seconds; why.

        """
        ...


class FencedLog(LedLog, Protocol):
    """The log as its leader has it, until another takes it over (aclog.metalog.topiclog.TopicLog)."""

    def abandon(self, why: str) -> None:
        """Give up at once: all who wait get a LogError that says why."""
        ...


class Candidacy(Protocol):
    """A candidate that stands (aclog.metalog.topiclog.Election)."""

    def close(self) -> None:
        """Stand no more, so that another takes over at once. Blocks."""
        ...


class SharedLog(Protocol):
    """Where several controllers have their log. All but `open_reader` blocks, and is called in threads."""

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        ...

    def ensure(self) -> None:
        """See to it that it is there, and fit. Raises as aclog.metalog.topiclog.ensure_topic."""
        ...

    def open_reader(self) -> SharedReader:
        """Begin to follow it, in a thread of the reader's own."""
        ...

    def open(self, on_failure: Callable[[LogError], None]) -> FencedLog:
        """Lead it, whoever did before. Raises as metalog.topiclog.open_topic_log, which tells of `on_failure` too."""
        ...

    def stand(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidacy:
        """Stand for its leadership; the callbacks come from a thread."""
        ...
