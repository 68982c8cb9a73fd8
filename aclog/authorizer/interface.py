"""The pluggable Authorizer interface (KIP-11, KIP-504; org.apache.kafka.server.authorizer)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum

from attrs import field, frozen

from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    code_repr,
)
from aclog.metalog.errors import MetadataError


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

    `principal` is `Type:name`; `host` is the client's address as returned by aclog.authorizer.hosts.host_address;
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

    @abstractmethod
    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """Create ACLs; see AclMutator."""

    @abstractmethod
    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """Delete the ACLs that the filters match; see AclMutator."""

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
