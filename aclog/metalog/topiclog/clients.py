"""Construction of confluent-kafka clients: common properties, logging, and errors reported by callback."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import define, field
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.topiclog.kafka_errors import RefusedError, kafka_error

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # without it, Python prints warnings on stderr by default

_T = TypeVar("_T")

_DEFAULTS = {"log_level": 2}
"""Only critical lines: librdkafka logs each connection attempt, and error_cb reports the same errors once."""


@define(eq=False)
class ClientErrors:
    """The latest error that a client reported by callback: a failed connection, a refused login."""

    where: str
    latest: LogError | None = field(default=None, init=False)

    @property
    def refused(self) -> bool:
        """Whether the error lasts until somebody changes something."""
        return isinstance(self.latest, RefusedError)

    def note(self, error: KafkaError) -> None:
        """Record an error (error_cb)."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self.latest is not None:
            return  # follows the errors of the individual brokers, which say why
        before, self.latest = self.latest, kafka_error(error, self.where)
        if str(before) != str(self.latest):
            _log.warning("%s", self.latest)

    def clear(self) -> None:
        """Forget the error, after a success."""
        self.latest = None


def new_consumer(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> Consumer:
    """Create a consumer; it connects in the background.

    Raises:
        ConfigError: the client rejects the properties.

    """
    return _create(Consumer, where, properties, errors)


def new_producer(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> Producer:
    """Create a producer; raises as new_consumer."""
    return _create(Producer, where, properties, errors)


def new_admin(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> AdminClient:
    """Create an admin client; raises as new_consumer. Keep it until its futures are done."""
    return _create(AdminClient, where, properties, errors)


def _create(kind: Callable[..., _T], where: str, properties: Mapping[str, Any], errors: ClientErrors) -> _T:
    try:
        return kind({**_DEFAULTS, **properties, "error_cb": errors.note}, logger=_log)
    except KafkaException as error:
        raise ConfigError(f"{where}: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None
