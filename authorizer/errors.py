"""The errors of deciding: not ready, not allowed, and requests that cannot be decided."""

from metalog.errors import MetadataError


class AuthorizerNotReadyError(MetadataError):
    """The authorizer has not replayed to the high-water mark it first learned (KIP-801); retriable."""

    retriable = True


class InvalidRequestError(MetadataError):
    """A request that is malformed where Kafka's authorizer throws: an ANY or UNKNOWN operation, no colon, ..."""


class AuthorizationError(MetadataError):
    """A denied access (KIP-11): who, what, from where, on what."""

    def __init__(self, *, principal: str, operation: str, host: str, resource: str) -> None:
        """All four in their text form; `resource` as `TOPIC:LITERAL:orders`."""
        self.principal, self.operation, self.host, self.resource = principal, operation, host, resource
        super().__init__(f"{principal} may not {operation} on {resource} from {host}")

    def __reduce__(self) -> tuple[object, ...]:
        return (
            _restored,
            (self.principal, self.operation, self.host, self.resource),
        )


def _restored(principal: str, operation: str, host: str, resource: str) -> AuthorizationError:
    return AuthorizationError(principal=principal, operation=operation, host=host, resource=resource)
