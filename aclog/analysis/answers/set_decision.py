"""One decision on all names that begin with a prefix: there is one only if all of them are decided alike."""

from collections.abc import Iterator

from attrs import frozen

from aclog.analysis.answers.extent import names_that_exist
from aclog.analysis.answers.rules_about import rule_order, rules_on
from aclog.analysis.difference import allowed, denied
from aclog.analysis.policy import Policy
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.witness import witness
from aclog.authorizer.acl import AclOperation, ResourcePattern, ResourceType, code_name
from aclog.authorizer.decision import Decision
from aclog.authorizer.explain import explain, explain_set
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Explanation
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.name_notation import is_set, pattern_text
from aclog.metalog.errors import ConfigError


class NamesDifferError(ConfigError):
    """Some of the names are allowed and some denied."""


@frozen(kw_only=True)
class SetDecision:
    """The decision on all names of a set; the reason is that of one of them."""

    decision: Decision
    example: str


def decide_set(policy: Policy, context: RequestContext, action: Action) -> SetDecision:
    """Return the decision on all names that begin with the prefix of an action.

    Names that no topic can have do not count, unless the prefix itself is none of a topic's.

    Raises:
        NamesDifferError: the decision differs between names; it names one that is allowed and one that is denied.
        ConfigError: not one of the operations that requests have, or no resource can have such a name.
        InvalidRequestError: Kafka's authorizer throws on them.

    """
    resource = action.resource_pattern
    if not REQUESTED >> max(action.operation, 0) & 1:
        name = code_name(AclOperation, action.operation)
        raise ConfigError(f"operation {name} on {_text(resource)}: expected one that requests have, such as READ")
    query = Query(
        resources=(resource,), operations=1 << action.operation, principals=only(context.principal), host=context.host
    )
    let_in, kept_out = _example(resource, allowed(policy, query)), _example(resource, denied(policy, query))
    if let_in is not None and kept_out is not None and let_in[1] != kept_out[1]:
        # One of both is about names that no topic can have.
        let_in, kept_out = (let_in, None) if let_in[1] else (None, kept_out)
    if let_in is not None and kept_out is not None:
        operation = code_name(AclOperation, action.operation)
        raise NamesDifferError(
            f"{_text(resource)}: the decision differs between names: {context.principal} {operation} is "
            f"ALLOWED on {let_in[0]!r} and DENIED on {kept_out[0]!r}: ask about one name, or who can {operation} "
            f"{pattern_text(resource)}"
        )
    found = let_in or kept_out
    if found is None:
        raise ConfigError(f"{_text(resource)}: no resource can have such a name")
    asked = Action(
        operation=action.operation,
        resource_pattern=ResourcePattern(resource_type=resource.resource_type, name=found[0]),
    )
    return SetDecision(decision=policy.authorizer.decide(context, asked), example=found[0])


def explained(policy: Policy, context: RequestContext, action: Action, options: ExplainOptions) -> Explanation:
    """Return the explanation of the decision on a name, or on all that begin so.

    Raises:
        NamesDifferError, ConfigError: as `decide_set`.
        InvalidRequestError: Kafka's authorizer throws on it.

    """
    if not is_set(action.resource_pattern):
        decision = policy.authorizer.decide(context, action)
        return explain(policy.acls, decision, context, action, options=options)
    found = decide_set(policy, context, action)
    rules = sorted(dict.fromkeys(rules_on(policy, action.resource_pattern)), key=lambda found: rule_order(found.acl))
    return explain_set(
        policy.acls, found.decision, context, action, example=found.example, rules=rules, options=options
    )


def _example(resource: ResourcePattern, regions: Iterator[Region]) -> tuple[str, bool] | None:
    """Return a name of regions, and whether a resource can have it: one that can, if there is one."""
    illegal: tuple[str, bool] | None = None
    for region in regions:
        name = witness(region).resource_name
        if names_that_exist(ResourceType(resource.resource_type), region.names):
            return name, True
        illegal = illegal or (name, False)
    return illegal


def _text(resource: ResourcePattern) -> str:
    return f"{code_name(ResourceType, resource.resource_type)} {pattern_text(resource)}"
