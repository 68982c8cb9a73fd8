"""A failing case as lines for people: where it is written, what is so instead, why, and what would mend it."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Request
from aclog.analysis.rows.row_report import decided_by_text, request_text
from aclog.analysis.rule_tests.nearest_change import nearest_change
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.authorizer.acl import ResourcePattern, acl_text
from aclog.authorizer.acl_command import acl_command
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.explain import explain
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Explanation, Role
from aclog.authorizer.generation import Generation
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.origin import Origins
from aclog.authorizer.rule_change import RuleChange

_SHOWN = 5
"""Failures of one case, and rules of one explanation; the JSON lines have all failures."""

NEAREST_CHANGE = "the nearest change:"
"""After this line stands what would mend a case."""


@frozen(kw_only=True, eq=False)
class TestedState:
    """What cases were run on, and what is known of it."""

    __test__ = False
    """It is none for pytest."""

    policy: Policy
    """With ids (aclog.analysis.rule_tests.changed_policy.with_ids), so that changes are tried quickly."""
    policies: Mapping[Generation, Policy] = field(factory=dict)
    """By the generation of Kafka that may decide, if several may; with ids, too."""
    origins: Origins
    place: ChangePlace
    """Where its rules are changed."""

    def failing(self, outcome: Outcome) -> Policy:
        """Return the policy on which a case fails: of several the first one."""
        return self.policy_of(outcome.failures[0]) if outcome.failures else self.policy

    def policy_of(self, failure: Failure) -> Policy:
        """Return a policy on which a case fails so: of several the first one."""
        return self.policy if failure.only is None else self.policies[failure.only]


def failure_lines(outcome: Outcome, state: TestedState) -> Iterator[str]:
    """Yield the lines of a failing case."""
    case = outcome.case
    yield f"FAILED {case.origin.file}:{case.origin.line}: {case.test}"
    yield f"  expected: {case.text}"
    for failure in outcome.failures[:_SHOWN]:
        yield f"  found: {failure.found}"
        yield from _why(failure, state)
    if len(outcome.failures) > _SHOWN:
        yield f"  and {len(outcome.failures) - _SHOWN:,} more: --format jsonl has all"
    for failure in outcome.failures:
        if failure.request is not None:
            yield from (f"  {line}" for line in _explanation(failure.request, state.policy_of(failure), state.origins))
            break
    changes = nearest_change(case, state.failing(outcome))
    if changes:
        yield f"  {NEAREST_CHANGE}"
        yield from (f"    {line}" for change in changes for line in change_lines(change, state.place))


def change_lines(change: RuleChange, place: ChangePlace) -> Iterator[str]:
    """Yield a change and the command that makes it."""
    yield f"{'adding' if change.added else 'removing'} {acl_text(change.acl)}"
    command = acl_command(change.acl, add=change.added, place=place)
    if command is not None:
        yield f"  {command}"


def _why(failure: Failure, state: TestedState) -> Iterator[str]:
    if failure.request is not None:
        such_as = "" if failure.region is None else f"such as {request_text(failure.request)}, "
        yield f"    {such_as}decided by {decided_by_text(failure.decided_by, state.origins)}"


def _explanation(request: Request, policy: Policy, origins: Origins) -> Iterator[str]:
    """Yield the rules that cover what is asked for, the most important first, and what to know about them."""
    found = _explained(request, policy)
    if found is None:
        return
    total = sum(found.counts.values())
    if not total:
        yield "no ACL covers this resource"
        return
    parts = ", ".join(f"{found.counts[role]:,} {role.value}" for role in Role if found.counts.get(role))
    yield f"explained: {total:,} ACL(s) cover {request.resource_name!r}: {parts}"
    for examined in found.rules:
        yield f"  {examined.role.value}: {decided_by_text(examined.rule.acl, origins)}"
        yield from (f"    ({note})" for note in examined.notes)
    for text in (*found.quirks, *found.near_misses):
        yield f"  note: {text}"


def _explained(request: Request, policy: Policy) -> Explanation | None:
    if not request.resource_name:  # of any resource of a type, or of none
        return None
    context = RequestContext(principal=request.principal, host=request.host)
    resource = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
    action = Action(operation=request.operation, resource_pattern=resource)
    settings = policy.settings
    image = policy.acls.with_options(documented=settings.documented, cidr=settings.cidr)
    options = ExplainOptions(allow_everyone=settings.allow_everyone, limit=_SHOWN)
    try:
        return explain(image, policy.authorizer.decide(context, action), context, action, options=options)
    except InvalidRequestError:
        return None


def failing(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return those that do not hold."""
    return [outcome for outcome in outcomes if not outcome.passed]
