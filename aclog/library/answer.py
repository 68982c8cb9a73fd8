"""A decision and the reason for it."""

from attrs import field, frozen

from aclog.analysis.answers.set_decision import explained
from aclog.analysis.policy import Policy
from aclog.analysis.rows.table_forms import html_text
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAclWithId, acl_text, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.decision import Decision
from aclog.authorizer.explain import explain
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Explanation
from aclog.authorizer.explanation_text import explanation_lines
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.name_notation import is_set, pattern_text
from aclog.authorizer.premises import Premises
from aclog.metalog.printable import printable


@frozen(repr=False)
class Answer:
    """A decision and the reason for it."""

    context: RequestContext
    action: Action
    decision: Decision
    _acls: AclsImage = field(repr=False)
    _options: ExplainOptions = field(repr=False)
    _policy: Policy | None = field(default=None, repr=False, eq=False)
    """Of a request for all names that begin so."""

    def __repr__(self) -> str:
        return f"Answer({self})"

    def __str__(self) -> str:
        operation = code_name(AclOperation, self.action.operation)
        pattern, rule = self.action.resource_pattern, self.decision.rule
        name = pattern_text(pattern) if is_set(pattern) else repr(pattern.name)
        by = self.decision.text if rule is None else acl_text(rule.acl)
        return printable(
            f"{self.premises.decided(self.decision.result.value)}: {self.context.principal} {operation} "
            f"{code_name(ResourceType, pattern.resource_type)} {name} from {self.context.host} by {by}"
        )

    def _repr_html_(self) -> str:
        return html_text(self.explain())

    def __bool__(self) -> bool:
        """Return whether the request is allowed, so that `if authorizer.check(...)` cannot let a denied one in."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def premises(self) -> Premises:
        """What is unknown of a running cluster's settings, and could turn the decision."""
        unknown = self._options.premises
        if not unknown:
            return unknown
        return unknown.bearing_on(allowed=self.allowed, has_candidate=self._acls.covers(self.action.resource_pattern))

    @property
    def rule(self) -> str:
        """The determining rule, as Kafka's audit log names it."""
        return self.decision.text

    @property
    def acl(self) -> StandardAclWithId | None:
        """The ACL that determined the decision, if any."""
        return self.decision.rule

    def explain(self) -> str:
        """Return as text every ACL that takes part, the determining one, and what would reverse the decision."""
        return "\n".join(explanation_lines(self.explanation()))

    def to_dict(self) -> dict[str, object]:
        """Return the object of `aclog explain --format json`."""
        return self.explanation().to_dict()

    def explanation(self) -> Explanation:
        """Return the same as a value."""
        if self._policy is not None:
            return explained(self._policy, self.context, self.action, self._options)
        return explain(self._acls, self.decision, self.context, self.action, options=self._options)
