"""A metadata log in a one-partition topic of a real Kafka: one fenced writer, any number of readers, an election.

Begin with `topic_log.py` and `reader.py`. Kafka's transactional id fences writers, and the last stable offset commits
(docs/decisions/0009-topic-log.md). confluent-kafka, an extra, is imported with the first name that needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from aclog.installation import needs_extra
from aclog.metalog.errors import ConfigError, FencedError
from aclog.metalog.topiclog.positions import Leader
from aclog.metalog.topiclog.settings import TopicId, TopicSettings

if TYPE_CHECKING:
    from aclog.metalog.topiclog.reader import TopicReader
    from aclog.metalog.topiclog.records import TopicRecords
    from aclog.metalog.topiclog.topic import TopicInspector, ensure_topic
    from aclog.metalog.topiclog.topic_log import Election, TopicLog, open_topic_log

__all__ = [
    "Election",
    "FencedError",
    "Leader",
    "TopicId",
    "TopicInspector",
    "TopicLog",
    "TopicReader",
    "TopicRecords",
    "TopicSettings",
    "ensure_topic",
    "open_topic_log",
]


def __getattr__(name: str) -> object:
    homes = {
        "Election": "aclog.metalog.topiclog.topic_log",
        "TopicLog": "aclog.metalog.topiclog.topic_log",
        "TopicInspector": "aclog.metalog.topiclog.topic",
        "TopicReader": "aclog.metalog.topiclog.reader",
        "TopicRecords": "aclog.metalog.topiclog.records",
        "ensure_topic": "aclog.metalog.topiclog.topic",
        "open_topic_log": "aclog.metalog.topiclog.topic_log",
    }
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(homes[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("confluent_kafka"):
            raise
        raise ConfigError(needs_extra("a topic log", "confluent-kafka", "kafka")) from None
