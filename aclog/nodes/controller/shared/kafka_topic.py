"""The log that controllers share in a topic of a real Kafka (aclog.metalog.topiclog)."""

from collections.abc import Callable, Sequence

from attrs import frozen

from aclog.metalog import topiclog
from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import TopicSettings
from aclog.nodes.controller.shared.fenced_log import Candidacy, FencedLog, SharedReader

_ENSURE_SECONDS = 5.0
_OPEN_SECONDS = 20.0
"""How long brokers may be silent; then whoever asked looks whether it is still wanted, and asks again."""


def check_installed() -> None:
    """Stop before a node is started that could not reach its log.

    Raises:
        ConfigError: confluent-kafka is not installed; what to install.

    """
    topiclog.ensure_topic  # noqa: B018 - importing it is what is tried


@frozen(kw_only=True)
class KafkaTopic:
    """A SharedLog, for the controller `node_id`, one of `voters`. confluent-kafka is imported when it is used."""

    settings: TopicSettings
    node_id: int
    voters: Sequence[int]

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    def ensure(self) -> None:
        """See SharedLog."""
        topiclog.ensure_topic(self.settings, timeout=_ENSURE_SECONDS)

    def open_reader(self) -> SharedReader:
        """See SharedLog."""
        return topiclog.TopicReader(self.settings)

    def open(self, on_failure: Callable[[LogError], None]) -> FencedLog:
        """See SharedLog."""
        return topiclog.open_topic_log(
            self.settings, node_id=self.node_id, voters=self.voters, on_failure=on_failure, timeout=_OPEN_SECONDS
        )

    def stand(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidacy:
        """See SharedLog."""
        return topiclog.Election(self.settings, on_elected, on_deposed)
