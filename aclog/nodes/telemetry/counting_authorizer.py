"""An authorizer that counts decisions."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

from attrs import evolve, frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.errors import AuthorizerNotReadyError, InvalidRequestError
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizationResult,
    Authorizer,
    RequestContext,
)
from aclog.nodes.telemetry.counters import Decisions

_ALLOWED = AuthorizationResult.ALLOWED


@frozen(kw_only=True, eq=False)
class CountingAuthorizer(Authorizer):
    """Delegates to another authorizer and counts its decisions, one per action."""

    authorizer: Authorizer
    decisions: Decisions

    def configure(self, properties: Mapping[str, str]) -> None:
        """See Authorizer.configure."""
        self.authorizer.configure(properties)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """See Authorizer.authorize."""
        decisions = self.decisions
        try:
            results = self.authorizer.authorize(context, actions)
        except AuthorizerNotReadyError:
            decisions.count(not_ready=len(actions))
            raise
        except InvalidRequestError:
            decisions.count(failed=len(actions))
            raise
        allowed = results.count(_ALLOWED)
        decisions.count(allowed, len(results) - allowed)
        return results

    def pinned(self) -> Authorizer:
        """See Authorizer.pinned."""
        return evolve(self, authorizer=self.authorizer.pinned())

    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """See Authorizer.authorize_by_resource_type."""
        decisions = self.decisions
        try:
            result = self.authorizer.authorize_by_resource_type(context, operation, resource_type)
        except AuthorizerNotReadyError:
            decisions.count(not_ready=1)
            raise
        except InvalidRequestError:
            decisions.count(failed=1)
            raise
        decisions.count(int(result is _ALLOWED), int(result is not _ALLOWED))
        return result

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """See Authorizer.acls."""
        return self.authorizer.acls(acl_filter)

    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """See Authorizer.create_acls."""
        return self.authorizer.create_acls(context, acls)

    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """See Authorizer.delete_acls."""
        return self.authorizer.delete_acls(context, filters)

    def acl_count(self) -> int:
        """See Authorizer.acl_count."""
        return self.authorizer.acl_count()
