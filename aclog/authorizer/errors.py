"""The errors of deciding: not ready, not allowed, and requests that cannot be decided."""

from typing import ClassVar

from aclog.metalog.errors import MetadataError


class AuthorizerNotReadyError(MetadataError):
    """The authorizer has not replayed to the high-water mark it first learned (KIP-801); retriable."""

    retriable = True


class InvalidRequestError(MetadataError):
    """A request that is malformed where Kafka's authorizer throws: an ANY or UNKNOWN operation, no colon, ..."""


class AuthorizationError(MetadataError):
    """A denied access (KIP-11): who, what, from where, on what."""

    def __init__(self, *, principal: str, operation: str, host: str, resource: str) -> None:
        """All four in their text form; `resource` as `TOPIC:LITERAL:orders`.

        The attributes keep them as they are. In the text, characters that do not print are spelled out: whoever asks
        chooses the resource's name, and must not be able to forge a line of a log.
        """
        self.principal, self.operation, self.host, self.resource = principal, operation, host, resource
        super().__init__(_printable(f"{principal} may not {operation} on {resource} from {host}"))

    def __reduce__(self) -> tuple[object, ...]:
        return (
            _restored,
            (self.principal, self.operation, self.host, self.resource),
        )


class AclRequestError(MetadataError):
    """A request about ACLs that Kafka refuses, with the error code that its answer carries.

    `code` and `name` are those of org.apache.kafka.common.protocol.Errors; `message` is the text in the answer, None
    where Kafka sends none.
    """

    NAMES: ClassVar[dict[int, str]] = {
        -1: "UNKNOWN_SERVER_ERROR",
        31: "CLUSTER_AUTHORIZATION_FAILED",
        42: "INVALID_REQUEST",
        44: "POLICY_VIOLATION",
    }

    def __init__(self, code: int, message: str | None = None) -> None:
        """`code` is one of NAMES."""
        self.code, self.name, self.message = code, self.NAMES[code], message
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.name if self.message is None else self.message


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _restored(principal: str, operation: str, host: str, resource: str) -> AuthorizationError:
    return AuthorizationError(principal=principal, operation=operation, host=host, resource=resource)
