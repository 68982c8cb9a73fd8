"""What confluent-kafka says, in our words: one function, and what its errors are wrapped in."""

from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException

from aclog.metalog.errors import FencedError, LogError


class RefusedError(LogError):
    """A broker refuses, or is not trusted: a password, a certificate or a rule has to change before it will not."""


_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""The broker knows a newer writer, or (the last one) has let go of this one's transactional id."""

_REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

_KINDS = MappingProxyType(dict.fromkeys(_FENCED, FencedError) | dict.fromkeys(_REFUSED, RefusedError))

RAISED = (KafkaException, SystemError)
"""What a call raises: a fatal error comes as a SystemError where a callback of Python's ran in the same call."""


def kafka_error(error: KafkaError | BaseException, where: str) -> LogError:
    """What a client of Kafka says or raises, as ours; `where` names the log. No property's value is in it."""
    said = error if isinstance(error, KafkaError) else error_in(error)
    if said is None:
        return LogError(f"{where}: {type(error).__name__}: {error}")
    return _KINDS.get(said.code(), LogError)(f"{where}: {said.name()}: {said.str()}")


def error_in(raised: BaseException) -> KafkaError | None:
    """The error that an exception of the client's carries, or one that it was raised from."""
    seen: BaseException | None = raised
    while seen is not None:
        if isinstance(seen, KafkaException) and seen.args and isinstance(seen.args[0], KafkaError):
            return seen.args[0]
        seen = seen.__cause__ or seen.__context__
    return None


def retriable(raised: BaseException) -> bool:
    """Whether the same call may be made again, and may then succeed."""
    said = error_in(raised)
    return said is not None and (said.retriable() or said.code() == KafkaError._TIMED_OUT) and not said.fatal()
