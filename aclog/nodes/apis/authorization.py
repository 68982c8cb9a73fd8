"""Authorization of requests by the APIs of a node (kafka.server.AuthHelper)."""

from collections.abc import Iterable
from functools import lru_cache

from attrs import define

from aclog.authorizer.acl import CLUSTER_NAME, AclOperation, ResourcePattern, ResourceType
from aclog.authorizer.api_keys import api_name
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from aclog.authorizer.interface import Action, AuthorizationResult, Authorizer
from aclog.authorizer.require import require_on_cluster
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS
from aclog.nodes.apis.request import Request

_CLUSTER = ResourceType.CLUSTER, CLUSTER_NAME

_LOGGED, _UNLOGGED = (True, True), (False, False)
"""Whether an allowed and a denied access is logged (Action)."""

_MAX_ACTIONS = 1 << 14
"""To make an action takes three times as long as to decide it, and clients ask for the same ones again and again. Each
takes 0.5 kB at most: longer names than `LONGEST_REMEMBERED` are not kept."""


@define
class AuthHelper:
    """Authorizes requests; without an authorizer everything is allowed."""

    authorizer: Authorizer | None

    def pinned(self) -> "AuthHelper":
        """Return one that decides all of a request by the image of this moment (see Authorizer.pinned)."""
        return self if self.authorizer is None else AuthHelper(self.authorizer.pinned())

    def authorize_cluster_operation(self, request: Request, operation: int) -> None:
        """Require that the operation on the cluster is allowed.

        Raises:
            AclRequestError: It is denied (31, CLUSTER_AUTHORIZATION_FAILED).
            AuthorizerNotReadyError, InvalidRequestError: As Authorizer.authorize.

        """
        if self.authorizer is not None:
            require_on_cluster(self.authorizer, request.context, operation, lambda: _text(request))

    def on_cluster(
        self, request: Request, operation: int, *, log_if_allowed: bool = True, log_if_denied: bool = True
    ) -> bool:
        """Whether the operation on the cluster is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, *_CLUSTER, logged=(log_if_allowed, log_if_denied))

    def cluster_operations(self, request: Request) -> int:
        """Return the allowed cluster operations as a bit set; 0 if DESCRIBE is denied."""
        if not self.on_cluster(request, AclOperation.DESCRIBE):
            return 0
        supported: Iterable[AclOperation] = SUPPORTED_OPERATIONS[ResourceType.CLUSTER]
        return sum(1 << each for each in supported if self._allowed(request, each, *_CLUSTER, logged=_UNLOGGED))

    def topic_operations(self, request: Request, name: str) -> int:
        """Return the allowed operations on a topic as a bit set; raises as Authorizer.authorize."""
        supported: Iterable[AclOperation] = SUPPORTED_OPERATIONS[ResourceType.TOPIC]
        return sum(
            1 << each for each in supported if self._allowed(request, each, ResourceType.TOPIC, name, logged=_UNLOGGED)
        )

    def on_topic(self, request: Request, operation: int, name: str) -> bool:
        """Whether the operation on the topic is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, ResourceType.TOPIC, name)

    def on_user(self, request: Request, operation: int, principal: str) -> bool:
        """Whether the operation on a user (the full principal text) is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, ResourceType.USER, principal)

    def on_token(self, request: Request, operation: int, token_id: str) -> bool:
        """Whether the operation on a delegation token is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, ResourceType.DELEGATION_TOKEN, token_id)

    def _allowed(
        self, request: Request, operation: int, resource_type: int, name: str, *, logged: tuple[bool, bool] = _LOGGED
    ) -> bool:
        if self.authorizer is None:
            return True
        make = _kept_action if len(name) <= LONGEST_REMEMBERED else _action
        action = make(operation, resource_type, name, *logged)
        return self.authorizer.authorize(request.context, [action])[0] is AuthorizationResult.ALLOWED


def _action(operation: int, resource_type: int, name: str, log_if_allowed: bool, log_if_denied: bool, /) -> Action:
    return Action(
        operation=operation,
        resource_pattern=ResourcePattern(resource_type=resource_type, name=name),
        log_if_allowed=log_if_allowed,
        log_if_denied=log_if_denied,
    )


_kept_action = lru_cache(_MAX_ACTIONS)(_action)


def _text(request: Request) -> str:
    """Describe a request for an error message (RequestChannel.Request.toString without its JVM-specific fields)."""
    header = request.header
    return (
        f"Request(apiKey={api_name(header.api_key)}, apiVersion={header.api_version}, "
        f"clientId={header.client_id}, correlationId={header.correlation_id})"
    )
