"""Clients of confluent-kafka, made in one place: their properties, their log, what they say by the way."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import define, field
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.topiclog.kafka_errors import RefusedError, kafka_error

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # else Python prints on stderr what nobody has asked to see

_T = TypeVar("_T")

_DEFAULTS = {"log_level": 2}
"""A line for each attempt to connect is too much where brokers are away for long; error_cb tells the same."""


@define(eq=False)
class ClientErrors:
    """The newest error that a client has told by the way: a connection that failed, a login that was refused."""

    where: str
    latest: LogError | None = field(default=None, init=False)

    @property
    def refused(self) -> bool:
        """Whether it does not pass by itself."""
        return isinstance(self.latest, RefusedError)

    def note(self, error: KafkaError) -> None:
        """Take it in (error_cb)."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self.latest is not None:
            return  # says less than what came before it
        before, self.latest = self.latest, kafka_error(error, self.where)
        if str(before) != str(self.latest):
            _log.warning("%s", self.latest)

    def forget(self) -> None:
        """All is well again."""
        self.latest = None


def new_consumer(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> Consumer:
    """A consumer with these properties; not connected yet.

    Raises:
        ConfigError: the client refuses them.

    """
    return _made(Consumer, where, properties, errors)


def new_producer(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> Producer:
    """A producer with these properties; raises as new_consumer."""
    return _made(Producer, where, properties, errors)


def new_admin(where: str, properties: Mapping[str, Any], errors: ClientErrors) -> AdminClient:
    """An admin client with these properties; raises as new_consumer. Keep it until its futures are done."""
    return _made(AdminClient, where, properties, errors)


def _made(kind: Callable[..., _T], where: str, properties: Mapping[str, Any], errors: ClientErrors) -> _T:
    try:
        return kind({**_DEFAULTS, **properties, "error_cb": errors.note}, logger=_log)
    except KafkaException as error:
        raise ConfigError(f"{where}: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None
