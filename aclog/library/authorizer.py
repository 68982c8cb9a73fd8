"""An authorizer on one state."""

from attrs import evolve, field, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclOperation, ResourcePattern, ResourceType
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.hosts import host_address
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.origin import TwoOrigins
from aclog.authorizer.standard import StandardAuthorizer
from aclog.library.answer import Answer
from aclog.library.enum_name import enum_code

LOCALHOST = "127.0.0.1"


@frozen
class Authorizer:
    """An authorizer on one state; thread-safe. `standard` is the underlying authorizer, for hot paths."""

    standard: StandardAuthorizer = field(repr=False)
    _acls: AclsImage = field(repr=False)
    _options: ExplainOptions = field(repr=False)
    _policy: Policy = field(repr=False)

    def diff(self, other: "Authorizer") -> Comparison:
        """Return the requests that `other` decides differently (`aclog diff`): regions, rows, and both as text."""
        origins = TwoOrigins(old=self._options.origins, new=other._options.origins)
        return Comparison.of(self._policy, other._policy, origins=origins)

    def check(
        self, principal: str, operation: str | AclOperation, resource: ResourcePattern, *, host: str | None = None
    ) -> Answer:
        """Decide one request; `host` is an IP address in any textual form, 127.0.0.1 unless given.

        Raises:
            ConfigError: an unknown operation, or an invalid address.
            InvalidRequestError: a request for which Kafka's authorizer throws.

        """
        context = RequestContext(principal=principal, host=host_address(LOCALHOST if host is None else host))
        action = Action(operation=enum_code(AclOperation, operation), resource_pattern=resource)
        decision = self.standard.decide(context, action)
        options = evolve(self._options, host_given=host is not None)
        return Answer(context, action, decision, acls=self._acls, options=options)

    def check_any(
        self,
        principal: str,
        operation: str | AclOperation,
        resource_type: str | ResourceType,
        *,
        host: str = LOCALHOST,
    ) -> bool:
        """Return whether the operation is allowed on at least one resource of the type. Raises as `check`."""
        context = RequestContext(principal=principal, host=host_address(host))
        result = self.standard.authorize_by_resource_type(
            context, enum_code(AclOperation, operation), enum_code(ResourceType, resource_type)
        )
        return result is AuthorizationResult.ALLOWED
