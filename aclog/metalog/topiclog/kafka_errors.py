"""confluent-kafka's errors, classified and translated to aclog's."""

from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException

from aclog.metalog.errors import FencedError, LogError


class RefusedError(LogError):
    """A broker refuses this client or is not trusted: a password, a certificate or an ACL has to change first."""


_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""The broker knows a newer producer of this transactional id, or (the last one) has expired the id."""

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
"""What a client call raises: a fatal error arrives as SystemError if a Python callback ran during the call."""


def kafka_error(error: KafkaError | BaseException, where: str) -> LogError:
    """Translate an error that a client reports or raises; `where` names the log. Contains no property values."""
    found = error if isinstance(error, KafkaError) else error_in(error)
    if found is None:
        return LogError(f"{where}: {type(error).__name__}: {error}")
    return _KINDS.get(found.code(), LogError)(f"{where}: {found.name()}: {found.str()}")


def error_in(raised: BaseException) -> KafkaError | None:
    """Return the KafkaError inside an exception, or inside one of its causes."""
    seen: BaseException | None = raised
    while seen is not None:
        if isinstance(seen, KafkaException) and seen.args and isinstance(seen.args[0], KafkaError):
            return seen.args[0]
        seen = seen.__cause__ or seen.__context__
    return None


def retriable(raised: BaseException) -> bool:
    """Whether the same call may be repeated and may then succeed."""
    found = error_in(raised)
    # librdkafka does not mark its own timeouts as retriable; callers' deadlines bound the retries.
    return found is not None and (found.retriable() or found.code() == KafkaError._TIMED_OUT) and not found.fatal()
