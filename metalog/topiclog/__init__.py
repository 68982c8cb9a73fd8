"""A metadata log in a one-partition topic of a real Kafka: one writer whom Kafka fences, readers, an election.

Nothing here is consensus of our own: the transactional id decides who may write, the consumer group of the topic who
should, and the last stable offset what is committed (docs/decisions/0009-topic-log.md). It needs the extra `kafka`.
"""

from metalog.errors import FencedError
from metalog.topiclog.creating import ensure_topic
from metalog.topiclog.election import Election
from metalog.topiclog.leaders import Leader
from metalog.topiclog.opening import open_topic_log
from metalog.topiclog.reader import TopicReader
from metalog.topiclog.settings import TopicSettings
from metalog.topiclog.topic_log import TopicLog

__all__ = [
    "Election",
    "FencedError",
    "Leader",
    "TopicLog",
    "TopicReader",
    "TopicSettings",
    "ensure_topic",
    "open_topic_log",
]
