"""Who should write a topic log: whoever the topic's consumer group assigns its one partition to."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from attrs import define

from metalog.topiclog.settings import TopicSettings


@define(eq=False)
class Election:
    """A candidate; it stands from its making until `close`, in a thread of its own.

    `on_elected` and `on_deposed` are called in turn, the former first, in that thread. They must return soon: while
    they run no heartbeat's answer is seen. The assignment is advice: that there is one writer only is the work of the
    fence, so whoever is elected opens the log (`open_topic_log`), and whoever is deposed abandons it.

    A newcomer deposes nobody (cooperative-sticky assignment). Whoever cannot reach the group for the session timeout is
    deposed, at its own clock and at the group's.
    """

    settings: TopicSettings
    on_elected: Callable[[], None]
    on_deposed: Callable[[], None]

    @property
    def elected(self) -> bool:
        """Whether this candidate is elected now."""
        raise NotImplementedError

    def close(self) -> None:
        """Stand no more: `on_deposed` first, if elected, then leave the group, so that another takes over at once.

        A second close is nothing. Not to be called by the callbacks.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
