"""Authorization that raises an error instead of returning a result."""

from collections.abc import Callable
from functools import cache

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    code_name,
)
from aclog.authorizer.errors import AclRequestError, AuthorizationError
from aclog.authorizer.interface import Action, AuthorizationResult, Authorizer, RequestContext

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
        name = code_name(AclOperation, operation)
        raise AclRequestError(CLUSTER_AUTHORIZATION_FAILED, f"Request {request()} needs {name} permission.")


@cache
def _on_cluster(operation: int) -> Action:
    return Action(
        operation=operation, resource_pattern=ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)
    )
