"""The decision on one request, and what decides it."""

from attrs import frozen

from aclog.analysis.policy import Policy
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Request
from aclog.analysis.rows.row_report import request_text
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.rule_text import RuleText
from aclog.authorizer.acl import PatternType, ResourcePattern, StandardAcl
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings

ERROR = "ERROR"
"""What `aclog authorize --requests` answers where Kafka's authorizer throws."""


@frozen(kw_only=True)
class Decides:
    """A request has a decision; if it is said, by a rule. A line of a file of requests."""

    test: str
    origin: FileOrigin
    request: Request
    by_type: bool = False
    """Whether it asks for any resource of the type (authorizeByResourceType), and its name does not count."""
    decision: str
    """ALLOWED, DENIED or ERROR."""
    rule: str | RuleText | None = None
    """Kafka's text (aclog.authorizer.decision), or the short form."""

    @property
    def text(self) -> str:
        """What is expected."""
        by = "" if self.rule is None else f" by {self.rule}"
        return f"{request_text(self.request)} is {self.decision}{by}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:  # noqa: ARG002  # of Case
        """Return what is asked."""
        asked = self.request
        pattern = PatternType.PREFIXED if self.by_type else PatternType.LITERAL
        resource = ResourcePattern(resource_type=asked.resource_type, name=asked.resource_name, pattern_type=pattern)
        query = Query(
            resources=(resource,),
            operations=1 << asked.operation,
            principals=only(asked.principal),
            host=asked.host,
        )
        return (query,)

    def run(self, policy: Policy) -> Outcome:
        """Return whether it is decided so."""
        asked = self.request
        context = RequestContext(principal=asked.principal, host=asked.host)
        try:
            if self.by_type:
                answer = policy.authorizer.authorize_by_resource_type(context, asked.operation, asked.resource_type)
                return self._judged(answer, None)
            resource = ResourcePattern(resource_type=asked.resource_type, name=asked.resource_name)
            action = Action(operation=asked.operation, resource_pattern=resource)
            if self.rule is None:
                (answer,) = policy.authorizer.authorize(context, (action,))
                if answer.value == self.decision:
                    return Outcome(case=self)
            found = policy.authorizer.decide(context, action)
        except InvalidRequestError as error:
            return self._failed(f"Kafka's authorizer throws: {error}") if self.decision != ERROR else Outcome(case=self)
        if found.rule is None:
            return self._judged(found.result, found.basis.value, found.text)
        return self._judged(found.result, found.rule.acl, found.text)

    def _judged(self, result: AuthorizationResult, rule: StandardAcl | str | None, text: str = "") -> Outcome:
        same_rule = self.rule.is_of(rule) if isinstance(self.rule, RuleText) else self.rule in (None, text)
        if result.value == self.decision and same_rule:
            return Outcome(case=self)
        by = f" by {text}" if text else ""
        return self._failed(f"{request_text(self.request)} is {result.value}{by}", rule)

    def _failed(self, found: str, rule: StandardAcl | str | None = None) -> Outcome:
        return Outcome(case=self, failures=(Failure(found=found, request=self.request, decided_by=rule),))
