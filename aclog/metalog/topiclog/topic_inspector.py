"""What the brokers say a log's topic is: its id, and whether it can hold a log."""

import threading

from attrs import define, field

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog.settings import TopicId, TopicSettings
from aclog.metalog.topiclog.topic_admin import TopicAdmin
from aclog.metalog.topiclog.topic_creation import check_topic, create_topic


@define(eq=False)
class TopicInspector:
    """Asks about the topic; connects with the first question. Thread-safe."""

    settings: TopicSettings
    _known: TopicAdmin | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def identify(self, timeout: float) -> TopicId | None:
        """Return which topic it is; None if there is none. Never creates it.

        Raises:
            LogError: no broker responds within `timeout` seconds, or one refuses.
            ConfigError: the client rejects the properties.

        """
        with self._lock:
            admin = self._admin(timeout)
            found = admin.describe(self.settings.topic)
            if found is None:
                return None
            return TopicId(kafka_cluster_id=admin.kafka_cluster_id(), topic_id=_url_safe(str(found.topic_id)))

    def check_settings(self, timeout: float) -> None:
        """Check that the topic can hold a log.

        Raises:
            ConfigError: its settings could lose or hide records; lists each one and the expected value.
            LogError: as `identify`; or there is no such topic.

        """
        with self._lock:
            admin = self._admin(timeout)
            found = admin.describe(self.settings.topic)
            if found is None:
                raise LogError(f"{self.settings.name}: there is no such topic")
            check_topic(admin, found, self.settings)

    def create(self, timeout: float) -> None:
        """Create the topic; nothing if it exists. Raises as `identify`."""
        with self._lock:
            admin = self._admin(timeout)
            create_topic(admin, self.settings)
            admin.wait_for(self.settings.topic)

    def _admin(self, timeout: float) -> TopicAdmin:
        if self._known is None:
            self._known = TopicAdmin(self.settings.name, self.settings.properties, timeout)
        self._known.allow(timeout)
        return self._known


def _url_safe(text: str) -> str:
    """Return an id as Kafka writes it: librdkafka has the other alphabet of base64."""
    return text.replace("+", "-").replace("/", "_")
