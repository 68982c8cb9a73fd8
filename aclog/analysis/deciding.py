"""What decides a request: a rule, or one of the reasons that Kafka names without one."""

from aclog.analysis.policy import Policy
from aclog.analysis.region import Request
from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.interface import Action, RequestContext


def deciding(policy: Policy, request: Request) -> StandardAcl | str | None:
    """Return the rule that Kafka names for a request, or `SuperUser`, `DefaultAllow` or `DefaultDeny`.

    None if Kafka's authorizer throws: a rule on the resource has a principal without a colon.
    """
    resource = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
    action = Action(operation=request.operation, resource_pattern=resource)
    try:
        found = policy.authorizer.decide(RequestContext(principal=request.principal, host=request.host), action)
    except InvalidRequestError:
        return None
    return found.basis.value if found.rule is None else found.rule.acl
