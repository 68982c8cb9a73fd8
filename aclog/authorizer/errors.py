"""The errors of authorization: not ready, not authorized, and requests that cannot be decided."""

from typing import ClassVar

from aclog.metalog.errors import MetadataError
from aclog.metalog.printable import printable


class AuthorizerNotReadyError(MetadataError):
    """The authorizer has not replayed up to its first high-water mark yet (KIP-801); retriable."""

    retriable = True


class InvalidRequestError(MetadataError):
    """A request on which Kafka's authorizer throws: an ANY or UNKNOWN operation, a principal without a colon, ..."""


class AuthorizationError(MetadataError):
    """A denied access (KIP-11): principal, operation, host and resource."""

    def __init__(self, *, principal: str, operation: str, host: str, resource: str) -> None:
        """All four as text; `resource` such as `TOPIC:LITERAL:orders`.

        The message escapes unprintable characters: clients choose resource names and must not be able to forge log
        lines.
        """
        self.principal, self.operation, self.host, self.resource = principal, operation, host, resource
        super().__init__(printable(f"{principal} is not authorized to {operation} on {resource} from {host}"))

    def __reduce__(self) -> tuple[object, ...]:
        # By default an exception is unpickled from `args`, which hold the message and not the keyword arguments.
        return _restored, (self.principal, self.operation, self.host, self.resource)


class AclRequestError(MetadataError):
    """A request about ACLs that Kafka rejects, with the error code of its response.

    `code` and `name` are those of org.apache.kafka.common.protocol.Errors; `message` is the text in the response, None
    if Kafka sends none.
    """

    NAMES: ClassVar[dict[int, str]] = {
        -1: "UNKNOWN_SERVER_ERROR",
        31: "CLUSTER_AUTHORIZATION_FAILED",
        35: "UNSUPPORTED_VERSION",
        42: "INVALID_REQUEST",
        44: "POLICY_VIOLATION",
    }

    def __init__(self, code: int, message: str | None = None) -> None:
        """`code` is one of NAMES."""
        self.code, self.name, self.message = code, self.NAMES[code], message
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.name if self.message is None else self.message


def _restored(principal: str, operation: str, host: str, resource: str) -> AuthorizationError:
    return AuthorizationError(principal=principal, operation=operation, host=host, resource=resource)
