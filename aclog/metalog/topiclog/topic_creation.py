"""Creation of a log's topic with the settings it needs, and the check of an existing one."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.topic_admin import TopicAdmin
from aclog.metalog.topiclog.transactions import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from confluent_kafka.admin import TopicDescription  # type: ignore[attr-defined]

_NO_LIMIT = str((1 << 63) - 1)


@frozen(kw_only=True)
class _Requirement:
    """What a topic's setting must be: the value of a new topic, the accepted values, and the text of an error."""

    value: str
    accepts: Callable[[str], bool]
    expected: str


def _exactly(value: str) -> _Requirement:
    return _Requirement(value=value, accepts=lambda found: found == value, expected=value)


def _at_least(least: int) -> _Requirement:
    return _Requirement(value=str(least), accepts=lambda found: int(found) >= least, expected=f"{least} or more")


def _requirements(replication_factor: int) -> Mapping[str, _Requirement]:
    """Return the requirements by the names of TopicConfig."""
    return MappingProxyType(
        {
            # Every record is needed to rebuild the state: none may be compacted, expired, or lost by unclean election.
            "cleanup.policy": _exactly("delete"),
            "retention.ms": _exactly("-1"),
            "retention.bytes": _exactly("-1"),
            "unclean.leader.election.enable": _exactly("false"),
            "min.insync.replicas": _at_least(replication_factor // 2 + 1),
            # Records keep the log's own timestamps, however old.
            "message.timestamp.type": _exactly("CreateTime"),
            "message.timestamp.before.max.ms": _exactly(_NO_LIMIT),
            "message.timestamp.after.max.ms": _exactly(_NO_LIMIT),
            "max.message.bytes": _at_least(MAX_MESSAGE_BYTES),
        }
    )


def ensure_topic(settings: TopicSettings, *, timeout: float = 30.0) -> bool:
    """Create the topic, or check that an existing one can hold a log; return whether it was created. Blocks.

    Raises:
        ConfigError: its settings could lose or hide records; lists each one and the expected value.
        LogError: no broker responds within `timeout` seconds, or one refuses.

    """
    admin = TopicAdmin(settings.name, settings.properties, timeout)
    found = admin.describe(settings.topic)
    created = found is None and create_topic(admin, settings)
    check_topic(admin, found or admin.wait_for(settings.topic), settings)
    return created


def create_topic(admin: TopicAdmin, settings: TopicSettings) -> bool:
    """Create the topic; return False if it was created by somebody else meanwhile.

    Raises:
        LogError: as ensure_topic.

    """
    requirements = _requirements(settings.replication_factor)
    config = {name: requirement.value for name, requirement in requirements.items()}
    return admin.create(settings.topic, settings.replication_factor, config)


def check_topic(admin: TopicAdmin, found: "TopicDescription", settings: TopicSettings) -> None:
    """Check that an existing topic can hold a log. Raises as ensure_topic."""
    wrong = [*_wrong_layout(found, settings), *_wrong_settings(admin.configuration(settings.topic), settings)]
    if wrong:
        raise ConfigError(f"{settings.name}: unsuitable for a log: {'; '.join(wrong)}")


def _wrong_layout(topic: "TopicDescription", settings: TopicSettings) -> list[str]:
    wrong, count = [], len(topic.partitions)
    if count != 1:
        wrong.append(f"it has {count} partitions: expected 1")
    fewest = min(len(partition.replicas) for partition in topic.partitions)
    if fewest < settings.replication_factor:
        wrong.append(f"it has {fewest} replica(s): expected {settings.replication_factor} or more")
    return wrong


def _wrong_settings(found: Mapping[str, str | None], settings: TopicSettings) -> list[str]:
    return [
        f"{name} is {found.get(name)}: expected {requirement.expected}"
        for name, requirement in _requirements(settings.replication_factor).items()
        if not _accepted(requirement, found.get(name))
    ]


def _accepted(requirement: _Requirement, found: str | None) -> bool:
    try:
        return found is not None and requirement.accepts(found)
    except ValueError:
        return False
