"""StandardAuthorizer: decisions from an image, as Kafka's (org.apache.kafka.metadata.authorizer) makes them."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from copy import copy

from attrs import Factory, define, field
from attrs.converters import optional

from aclog.authorizer.access_observer import AccessObserver
from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    PatternType,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import PROBE, AclsImage, check_by_resource_type
from aclog.authorizer.audit_hook import (
    ALLOWED_LOGGED,
    ALLOWED_UNLOGGED,
    DENIED_LOGGED,
    DENIED_UNLOGGED,
    EVERY_OUTCOME,
    AuditHook,
    SelectiveHook,
    outcome_of,
    selective,
)
from aclog.authorizer.config import (
    ALLOW_EVERYONE_CONFIG,
    CIDR_CONFIG,
    SUPER_USERS_CONFIG,
    parse_allow_everyone,
    parse_cidr_enabled,
    parse_super_users,
)
from aclog.authorizer.decision import Decision
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.masks import ALLOWED, DENIED
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclMutator,
    Action,
    AuthorizationResult,
    Authorizer,
    RequestContext,
)
from aclog.authorizer.view import View, check_literal
from aclog.metalog.errors import ConfigError

_OPERATIONS = frozenset(AclOperation)
_LITERAL = PatternType.LITERAL
_EITHER = ALLOWED | DENIED
_ALLOWED, _DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED


@define(eq=False, kw_only=True, repr=False)
class StandardAuthorizer(Authorizer):
    """Decides from one image at a time; `load` swaps it atomically. Safe for any number of threads."""

    documented: bool = False
    """Whether LITERAL `*` covers names that begin with `*`, too, as documented; in Kafka it does not."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range (KIP-1276)."""
    cache: bool = True
    """Whether answers are remembered until the next `load`; the native core needs no memory and has none."""
    _mutator: AclMutator | None = None
    _audit: SelectiveHook | None = field(default=None, converter=optional(selective))
    _observer: AccessObserver | None = None
    _super_users: frozenset[str] = frozenset()
    _allow_everyone: bool = False
    _ready: bool = False
    _swapping: threading.Lock = field(factory=threading.Lock, init=False)
    """Held while a new view is made from the current one, so that concurrent changes are not lost. Readers need no
    lock."""
    _view: View = field(init=False, default=Factory(lambda self: self._new_view(AclsImage.empty()), takes_self=True))

    def __repr__(self) -> str:
        return f"StandardAuthorizer(acls={self.acl_count()}, ready={self._ready})"

    def configure(self, properties: Mapping[str, str]) -> None:
        """Set `super.users`, `allow.everyone.if.no.acl.found` and, if given, `aclog.cidr.enabled`.

        ACLs and readiness are unchanged.

        Raises:
            ConfigError: a super user has no colon, or `aclog.cidr.enabled` is neither true nor false.

        """
        super_users = parse_super_users(properties.get(SUPER_USERS_CONFIG))
        allow_everyone = parse_allow_everyone(properties.get(ALLOW_EVERYONE_CONFIG))
        cidr = parse_cidr_enabled(properties[CIDR_CONFIG]) if CIDR_CONFIG in properties else self.cidr
        with self._swapping:
            self._super_users, self._allow_everyone, self.cidr = super_users, allow_everyone, cidr
            self._view = self._new_view(self._view.image)

    def set_acl_mutator(self, mutator: AclMutator) -> None:
        """Set the mutator for create_acls and delete_acls (ClusterMetadataAuthorizer.setAclMutator)."""
        self._mutator = mutator

    def set_audit(self, audit: AuditHook | None) -> None:
        """Set the hook that is called with every decision, or those that it wants (SelectiveHook); None for none."""
        with self._swapping:
            self._audit = None if audit is None else selective(audit)
            self._view = self._new_view(self._view.image)

    def set_observer(self, observer: AccessObserver | None) -> None:
        """Set who is told of accesses and of the images that decide them; None for nobody."""
        with self._swapping:
            self._observer = observer
            self._view = self._new_view(self._view.image)

    def load(self, image: AclsImage) -> None:
        """Decide from this image from now on (Kafka's loadSnapshot, addAcl and removeAcl in one)."""
        with self._swapping:
            self._view = self._new_view(image)

    def pinned(self) -> "StandardAuthorizer":
        """Return an authorizer with the current image, settings and readiness, which nobody changes any more."""
        return copy(self)

    def complete_initial_load(self) -> None:
        """Mark the authorizer as ready: the image has reached the high-water mark. It stays ready."""
        self._ready = True

    @property
    def ready(self) -> bool:
        """Whether principals other than super users can be authorized."""
        return self._ready

    def _new_view(self, image: AclsImage) -> View:
        image, observer = image.with_options(documented=self.documented, cidr=self.cidr), self._observer
        return View.of(
            image,
            super_users=self._super_users,
            allow_everyone=self._allow_everyone,
            audit=self._audit,
            tally=None if observer is None else observer.begin(image),
            cache=self.cache,
        )

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """Return one result per action, all from the same image.

        Raises:
            AuthorizerNotReadyError: not ready; super users are exempt.
            InvalidRequestError: the pattern is not LITERAL, the principal has no colon or is `User:*`, or the principal
                of an ACL that Kafka would visit has no colon.

        """
        # The hot path of a server. One reference is read: all actions of a call are decided, and their reasons found,
        # on the same image. What does not change from action to action is read once, and little is called.
        view, principal = self._view, context.principal
        if principal in view.super_users:
            return view.allow_all(context, actions)
        if not self._ready:
            raise view.not_ready(actions)
        host, core, mask_of, has_colonless = context.host, view.core, view.mask_of, view.has_colonless
        results: list[AuthorizationResult] = []
        seen = 0
        try:
            for action in actions:
                pattern, operation = action.resource_pattern, action.operation
                resource_type, name = pattern.resource_type, pattern.name
                if pattern.pattern_type is not _LITERAL:
                    check_literal(pattern)
                # Kafka reads an unknown code as UNKNOWN; it must not shift the mask.
                if operation not in _OPERATIONS:
                    operation = AclOperation.UNKNOWN
                mask = -1 if core is None else core.mask(principal, host, resource_type, name, view.semantics)
                if mask < 0:
                    mask = mask_of(principal, host, resource_type, name)
                if has_colonless:
                    view.image.check_principals(principal, host, operation, resource_type, name)
                if mask >> operation & _EITHER == ALLOWED or (
                    not mask and view.allow_everyone and not view.image.has_candidate(resource_type, name)
                ):
                    seen |= ALLOWED_LOGGED if action.log_if_allowed else ALLOWED_UNLOGGED
                    results.append(_ALLOWED)
                else:
                    seen |= DENIED_LOGGED if action.log_if_denied else DENIED_UNLOGGED
                    results.append(_DENIED)
        except InvalidRequestError:
            # As in Kafka, the actions before have been reported by then.
            view.tell(context, actions, results, EVERY_OUTCOME)
            raise
        if view.is_heard:
            view.tell(context, actions, results, seen)
        return results

    def decide(self, context: RequestContext, action: Action) -> Decision:
        """Return the result for one action and its reason, without telling the audit hook. Raises as `authorize`."""
        view = self._view
        return view.decision(context, action, view.result(context, action, ready=self._ready))

    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """Return whether the operation is allowed on at least one resource of the type.

        As in Kafka, a resource named `hardcode` is authorized first, and only that decision is audited.

        Raises:
            AuthorizerNotReadyError, InvalidRequestError: as `authorize`; also if the operation or the type is ANY or
                UNKNOWN, or an ACL holds ANY or MATCH.

        """
        view = self._view
        check_by_resource_type(operation, resource_type)
        pattern = ResourcePattern(resource_type=resource_type, name=PROBE)
        probe = Action(operation=operation, resource_pattern=pattern, resource_reference_count=0, log_if_denied=False)
        answer = view.result(context, probe, ready=self._ready)
        if context.principal in view.super_users:
            view.allow_all(context, (probe,))
        else:
            view.tell(context, (probe,), (answer,), outcome_of(probe, answer))
        if answer is _ALLOWED:
            return answer  # super users, allow.everyone and implied operations count in this step only
        allowed = view.image.by_resource_type(context.principal, context.host, operation, resource_type)
        return _ALLOWED if allowed else _DENIED

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """Yield the ACLs that the filter matches, lazily, from one image, in no particular order."""
        return self._view.image.matching(acl_filter)

    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """Create ACLs through the mutator; raises ConfigError if none is set."""
        return self._checked_mutator().create_acls(context, acls)

    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """Delete ACLs through the mutator; raises ConfigError if none is set."""
        return self._checked_mutator().delete_acls(context, filters)

    def _checked_mutator(self) -> AclMutator:
        if self._mutator is None:
            raise ConfigError("this authorizer cannot change ACLs: no controller or log to write to is configured")
        return self._mutator

    def acl_count(self) -> int:
        """Return the number of ACLs (KIP-801)."""
        return len(self._view.image)


def build_authorizer(
    acls: AclsImage,
    *,
    super_users: str = "",
    allow_everyone: bool = False,
    documented: bool = False,
    cidr: bool = False,
    cache: bool = True,
) -> StandardAuthorizer:
    """Return a ready authorizer with these ACLs; `super_users` is the text of the broker property.

    Raises:
        ConfigError: a super user has no colon.

    """
    authorizer = StandardAuthorizer(documented=documented, cidr=cidr, cache=cache)
    authorizer.configure({SUPER_USERS_CONFIG: super_users, ALLOW_EVERYONE_CONFIG: str(allow_everyone).lower()})
    authorizer.load(acls)
    authorizer.complete_initial_load()
    return authorizer
