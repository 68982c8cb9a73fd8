"""The pluggable Authorizer (KIP-11, KIP-504; org.apache.kafka.server.authorizer.Authorizer) and its values."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum

from attrs import frozen

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, StandardAclWithId
from aclog.metalog.errors import MetadataError


class AuthorizationResult(Enum):
    """The answer to one action."""

    ALLOWED = "ALLOWED"
    DENIED = "DENIED"


@frozen(kw_only=True)
class RequestContext:
    """Who asks (AuthorizableRequestContext).

    `principal` is `Type:name`; `host` the client's address in Java's getHostAddress form (aclog.authorizer.hosts makes
    it); `request_type` the apiKey of the request, for the audit line (1 is Fetch).
    """

    principal: str
    host: str
    request_type: int = 1
    listener_name: str = ""
    client_id: str = ""
    correlation_id: int = 0


@frozen(kw_only=True)
class Action:
    """What is asked (Action): an operation on a LITERAL resource, and what of the answer goes to the audit log."""

    operation: int
    resource_pattern: ResourcePattern
    resource_reference_count: int = 1
    log_if_allowed: bool = True
    log_if_denied: bool = True


@frozen(kw_only=True)
class AclCreateResult:
    """What became of one rule to create: None, or why it was refused."""

    error: MetadataError | None = None


@frozen(kw_only=True)
class AclDeleteResult:
    """What one filter deleted, or why it was refused."""

    deleted: tuple[StandardAclWithId, ...] = ()
    error: MetadataError | None = None


class AclMutator(ABC):
    """Turns requests into committed records (AclMutator of ClusterMetadataAuthorizer): the controller, or a log."""

    @abstractmethod
    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """One result a rule, in order, when the records and all before them are committed."""

    @abstractmethod
    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """One result a filter, in order, when the records and all before them are committed."""


class Authorizer(ABC):
    """Decides, lists and changes rules; named by `authorizer.class.name`."""

    @abstractmethod
    def configure(self, properties: Mapping[str, str]) -> None:
        """Take the server's properties.

        Raises:
            ConfigError: a value that cannot be honoured.

        """

    @abstractmethod
    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """One answer an action, in order, all from the same image.

        Raises:
            AuthorizerNotReadyError: not replayed to the high-water mark yet, and not a super user.
            InvalidRequestError: a request on which Kafka's authorizer throws.

        """

    @abstractmethod
    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """Whether the operation is allowed on at least one resource of the type. Raises as `authorize`."""

    @abstractmethod
    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """The rules that the filter takes, lazily, from one image."""

    @abstractmethod
    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """Create rules; see AclMutator."""

    @abstractmethod
    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """Delete what the filters take; see AclMutator."""

    def acl_count(self) -> int:
        """The number of rules (KIP-801), or -1 where an authorizer does not tell."""
        return -1

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Let go of what it holds, connections and threads; nothing is asked afterwards."""
