"""Decisions on single requests, and what decides them: a rule, or a reason that Kafka names without one."""

from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Request
from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.interface import Action, RequestContext


def is_allowed(policy: Policy, request: Request) -> bool:
    """Return whether a request is allowed; what Kafka's authorizer throws on is not (see `deciding`)."""
    try:
        (result,) = policy.authorizer.authorize(_context(request), (_action(request),))
    except InvalidRequestError:
        return False
    return bool(result)


def deciding(policy: Policy, request: Request) -> StandardAcl | str | None:
    """Return the rule that Kafka names for a request, or `SuperUser`, `DefaultAllow` or `DefaultDeny`.

    None if Kafka's authorizer throws: a rule on the resource has a principal without a colon.
    """
    try:
        found = policy.authorizer.decide(_context(request), _action(request))
    except InvalidRequestError:
        return None
    return found.basis.value if found.rule is None else found.rule.acl


def _context(request: Request) -> RequestContext:
    return RequestContext(principal=request.principal, host=request.host)


def _action(request: Request) -> Action:
    resource = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
    return Action(operation=request.operation, resource_pattern=resource)
