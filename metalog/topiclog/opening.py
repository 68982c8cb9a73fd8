"""Become the one writer of a topic log."""

from collections.abc import Callable, Sequence

from metalog.errors import LogError
from metalog.topiclog.settings import TopicSettings
from metalog.topiclog.topic_log import TopicLog


def open_topic_log(
    settings: TopicSettings,
    *,
    node_id: int,
    timestamp: int | None = None,
    voters: Sequence[int] = (),
    on_failure: Callable[[LogError], None] | None = None,
    timeout: float = 60.0,
) -> TopicLog:
    """Fence whoever wrote before, read to the end, and begin the next leader epoch with a LeaderChange. Blocks.

    The topic must be there (`ensure_topic`). The LeaderChange names `node_id` as leader and `voters` (`node_id` alone
    by default); it is committed when this returns. `timestamp` is its, ms since 1970, now by default. `on_failure` is
    called once, in the log's own thread, when the log is dead: not by a close, and not by `abandon`.

    Raises:
        FencedError: another writer opened it in the meantime.
        LogError: no broker answers within `timeout` seconds, or refuses.
        DecodeError: the last message is no record's.
        ConfigError: a property that the client refuses; confluent-kafka is not installed.

    """
    raise NotImplementedError
