"""Protocols of a log that several controllers share: a reader, a writer that can be fenced, an election.

Fencing is the log's task: once another controller has opened it, no append of the previous leader can be committed,
whatever that leader believes (on a topic, by Kafka's transactional producer epochs). `LeadershipTerm` only reacts to
it.
"""

from collections.abc import Callable
from typing import Protocol

from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.log import LogReader
from aclog.metalog.topiclog import Leader, TopicId
from aclog.nodes.controller.write_path.activation import LedLog


class SharedReader(LogReader, Protocol):
    """The log as followers read it (aclog.metalog.topiclog.TopicReader)."""

    @property
    def failure(self) -> MetadataError | None:
        """Why the log can never be followed again; None while it can."""
        ...

    def leader(self) -> Leader | None:
        """The leader of the newest committed epoch; None in an empty log or while the high-water mark is unknown."""
        ...

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: It is still unknown after `timeout` seconds; the text says why.

        """
        ...


class FencedLog(LedLog, Protocol):
    """The log as its leader writes it until another controller takes over (aclog.metalog.topiclog.TopicLog)."""

    def abandon(self, why: str) -> None:
        """Stop writing at once; all pending appends fail with a LogError that contains `why`."""
        ...


class Candidacy(Protocol):
    """Membership in the election (aclog.metalog.topiclog.Election)."""

    def close(self) -> None:
        """Leave the election, so that another controller is elected at once. Blocks."""
        ...


class SharedLog(Protocol):
    """A log that several controllers share. All methods but `open_reader` block and are called in threads."""

    @property
    def name(self) -> str:
        """The location, for messages."""
        ...

    def identify(self) -> TopicId | None:
        """Return which log it is; None if there is none. Raises as TopicInspector.identify."""
        ...

    def check_settings(self) -> None:
        """Check that the place can hold a log. Raises as TopicInspector.check_settings."""
        ...

    def create(self) -> None:
        """Create an empty log. Raises as TopicInspector.create."""
        ...

    def open_reader(self) -> SharedReader:
        """Start following the log in a thread of the reader."""
        ...

    def open(self, reader: SharedReader, on_failure: Callable[[LogError], None]) -> FencedLog:
        """Take over the log, fencing the previous leader. Raises as, and uses the arguments as, open_topic_log."""
        ...

    def join_election(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidacy:
        """Join the election; the callbacks are called from a thread."""
        ...
