"""The topic itself: created with the settings that a log needs, or checked for them."""

from metalog.topiclog.settings import TopicSettings


def ensure_topic(settings: TopicSettings, *, timeout: float = 30.0) -> bool:
    """See to it that the topic is there and fit to hold a log; tells whether it was created. Blocks.

    Raises:
        ConfigError: it is there with settings that could lose or hide records; each one wrong, and what is expected.
        LogError: no broker answers within `timeout` seconds, or refuses.

    """
    raise NotImplementedError
