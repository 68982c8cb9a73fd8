"""The shared log on a topic of a Kafka cluster (aclog.metalog.topiclog)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from aclog.metalog import topiclog
from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import TopicId, TopicSettings
from aclog.nodes.controller.shared.fenced_log import Candidacy, FencedLog, SharedReader

if TYPE_CHECKING:
    from aclog.metalog.topiclog import TopicInspector

_INSPECT_SECONDS = 5.0
_OPEN_SECONDS = 20.0
"""Timeout of one attempt. Short, so that the caller can check between attempts whether it is still elected."""


def check_installed() -> None:
    """Check that confluent-kafka is installed before a node starts.

    Raises:
        ConfigError: It is not; the text says what to install.

    """
    topiclog.ensure_topic  # noqa: B018 - the attribute is imported lazily; accessing it imports confluent-kafka


@frozen(kw_only=True)
class KafkaTopic:
    """Implements SharedLog for controller `node_id`, one of `voters`. confluent-kafka is imported on first use."""

    settings: TopicSettings
    node_id: int
    voters: Sequence[int]
    _inspector: "TopicInspector" = field(init=False)

    @_inspector.default
    def _of_topic(self) -> "TopicInspector":
        return topiclog.TopicInspector(self.settings)

    @property
    def name(self) -> str:
        """The name in messages: kafka://SERVERS/TOPIC."""
        return self.settings.name

    def identify(self) -> TopicId | None:
        """See SharedLog."""
        return self._inspector.identify(_INSPECT_SECONDS)

    def check_settings(self) -> None:
        """See SharedLog."""
        self._inspector.check_settings(_INSPECT_SECONDS)

    def create(self) -> None:
        """See SharedLog."""
        self._inspector.create(_INSPECT_SECONDS)

    def open_reader(self) -> SharedReader:
        """See SharedLog."""
        return topiclog.TopicReader(self.settings)

    def open(self, reader: SharedReader, on_failure: Callable[[LogError], None]) -> FencedLog:
        """See SharedLog."""
        return topiclog.open_topic_log(
            self.settings,
            node_id=self.node_id,
            voters=self.voters,
            reader=reader,
            on_failure=on_failure,
            timeout=_OPEN_SECONDS,
        )

    def join_election(self, on_elected: Callable[[], None], on_deposed: Callable[[], None]) -> Candidacy:
        """See SharedLog."""
        return topiclog.Election(self.settings, on_elected, on_deposed)
