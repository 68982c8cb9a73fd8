"""The pluggable Authorizer interface (KIP-11, KIP-504; org.apache.kafka.server.authorizer), and its errors."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from attrs import field

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, StandardAclWithId, code_name, code_repr
from aclog.authorizer.codes import CLUSTER_NAME, AclOperation, PatternType, ResourceType
from aclog.metalog.errors import MetadataError, printable
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

    from aclog.metalog.columns import Bytes, Int64s

# The pluggable Authorizer interface (KIP-11, KIP-504; org.apache.kafka.server.authorizer).


class AuthorizationResult(Enum):
    """The result for one action (AuthorizationResult)."""

    ALLOWED = "ALLOWED"
    DENIED = "DENIED"

    def __bool__(self) -> bool:
        """Return whether it is ALLOWED: any other member of an enum would be true."""
        return self is AuthorizationResult.ALLOWED


@frozen(kw_only=True)
class RequestContext:
    """The context of a request (AuthorizableRequestContext).

    `principal` is `Type:name`; `host` is the client's address as returned by aclog.authorizer.acl.host_address;
    `request_type` is the apiKey of the request, for the audit log (1 is Fetch).
    """

    principal: str
    host: str
    request_type: int = 1
    listener_name: str = ""
    client_id: str = ""
    correlation_id: int = 0


@frozen(kw_only=True)
class Action:
    """An operation on a LITERAL resource, and how its result is logged (Action)."""

    operation: int = field(repr=lambda code: code_repr(AclOperation, code))
    resource_pattern: ResourcePattern
    resource_reference_count: int = 1
    log_if_allowed: bool = True
    log_if_denied: bool = True


@frozen(kw_only=True)
class AclCreateResult:
    """The result for one ACL to create (AclCreateResult): no error, or the reason it was rejected."""

    error: MetadataError | None = None


@frozen(kw_only=True)
class AclDeleteResult:
    """The ACLs that one filter deleted, or the reason it was rejected (AclDeleteResult)."""

    deleted: tuple[StandardAclWithId, ...] = ()
    error: MetadataError | None = None


@frozen(eq=False, kw_only=True, repr=False)
class ResourceGroups:
    """ACLs by resource pattern, each ACL once, in columns of the bytes that their records have."""

    resources: "Bytes"
    resource_offsets: "Int64s"
    """By group: where its resource begins in `resources`, and the end: type, name as a compact string, pattern type."""
    firsts: "Int64s"
    """By group: its first ACL; and the number of ACLs."""
    pairs: "Bytes"
    pair_offsets: "Int64s"
    """By pair of a principal and a host, as compact strings: where it begins in `pairs`; and the end."""
    pair_of: "Int64s"
    """By ACL: the number of its pair."""
    codes: "NDArray[np.uint8]"
    """By ACL: the codes of operation and permission type."""


class AclMutator(ABC):
    """Writes ACL changes to the log (AclMutator of ClusterMetadataAuthorizer); a controller, or a command on a log."""

    @abstractmethod
    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """Return a future of one result per ACL, in order; it completes when the records are committed."""

    @abstractmethod
    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """Return a future of one result per filter, in order; it completes when the records are committed."""


class AuthorizerSession(Protocol):
    """Decisions on the requests of one client, which a handler keeps for a connection. Safe for any thread."""

    def decide(
        self, operation: int, resource_type: int, name: str, *, log_if_allowed: bool = True, log_if_denied: bool = True
    ) -> bool | None:
        """Return whether an operation is allowed on the LITERAL resource of this type and name, by the newest image.

        The flags are those of Action. None where more than a decision is to be done: `authorize` then decides, and
        audits, or raises.
        """
        ...


class UndecidedSession:
    """A session that leaves every decision to `authorize`."""

    def decide(
        self, operation: int, resource_type: int, name: str, *, log_if_allowed: bool = True, log_if_denied: bool = True
    ) -> None:
        """See AuthorizerSession."""


class Authorizer(ABC):
    """Authorizes actions, lists and changes ACLs; the class that `authorizer.class.name` names implements it."""

    @abstractmethod
    def configure(self, properties: Mapping[str, str]) -> None:
        """Configure the authorizer from the server's properties.

        Raises:
            ConfigError: a value is invalid.

        """

    @abstractmethod
    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """Return one result per action, in order, all from the same image.

        Raises:
            AuthorizerNotReadyError: the log is not replayed up to the high-water mark yet; super users are exempt.
            InvalidRequestError: a request on which Kafka's authorizer throws.

        """

    @abstractmethod
    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """Return whether the operation is allowed on at least one resource of the type. Raises as `authorize`."""

    @abstractmethod
    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """Yield the ACLs that the filter matches, lazily, from one image."""

    def acl_groups(self, acl_filter: AclBindingFilter) -> ResourceGroups | None:  # noqa: ARG002  # others use it
        """Return the same ACLs by resource pattern, in columns and from one image; None if only `acls` lists them."""
        return None

    @abstractmethod
    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """Create ACLs; see AclMutator."""

    @abstractmethod
    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """Delete the ACLs that the filters match; see AclMutator."""

    def session(self, principal: str, host: str) -> AuthorizerSession:  # noqa: ARG002  # others use them
        """Return decisions on the requests of one client, as `authorize` takes it from a context."""
        return UndecidedSession()

    def pinned(self) -> "Authorizer":
        """Return an authorizer that answers every call from the image of this moment, for an answer of many calls.

        One that cannot do so returns itself.
        """
        return self

    def acl_count(self) -> int:
        """Return the number of ACLs (KIP-801); -1 if the authorizer does not support it."""
        return -1

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Release connections and threads; no method is called afterwards."""


# The errors of authorization: not ready, not authorized, and requests that cannot be decided.


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


# Authorization that raises an error instead of returning a result.


CLUSTER_AUTHORIZATION_FAILED = 31


def require(authorizer: Authorizer, context: RequestContext, action: Action) -> None:
    """Check that an action is allowed.

    Raises:
        AuthorizationError: it is denied (KIP-11).
        AuthorizerNotReadyError, InvalidRequestError: as `authorize`.

    """
    if authorizer.authorize(context, [action])[0] is AuthorizationResult.ALLOWED:
        return
    pattern = action.resource_pattern
    raise AuthorizationError(
        principal=context.principal,
        operation=code_name(AclOperation, action.operation),
        host=context.host,
        resource=(
            f"{code_name(ResourceType, pattern.resource_type)}:{code_name(PatternType, pattern.pattern_type)}:"
            f"{pattern.name}"
        ),
    )


def require_on_cluster(
    authorizer: Authorizer, context: RequestContext, operation: int, request: Callable[[], str]
) -> None:
    """Check that an operation on the cluster is allowed: ALTER to create or delete ACLs, DESCRIBE to list them.

    `request` returns how the error names the request (AuthHelper.authorizeClusterOperation).

    Raises:
        AclRequestError: it is denied (31, CLUSTER_AUTHORIZATION_FAILED).
        AuthorizerNotReadyError, InvalidRequestError: as `authorize`.

    """
    if authorizer.authorize(context, [_on_cluster(operation)])[0] is not AuthorizationResult.ALLOWED:
        raise denied_on_cluster(operation, request())


def denied_on_cluster(operation: int, request: str) -> AclRequestError:
    """Return the error of a request that needs an operation on the cluster, and may not."""
    return AclRequestError(
        CLUSTER_AUTHORIZATION_FAILED, f"Request {request} needs {code_name(AclOperation, operation)} permission."
    )


@cache
def _on_cluster(operation: int) -> Action:
    return Action(
        operation=operation, resource_pattern=ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)
    )
