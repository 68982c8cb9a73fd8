"""StandardAuthorizer: decisions from an image, as Kafka's (org.apache.kafka.metadata.authorizer) makes them."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from typing import TypeAlias

from attrs import Factory, define, field

from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    PatternType,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import PROBE, AclsImage, check_by_resource_type
from aclog.authorizer.config import (
    ALLOW_EVERYONE_CONFIG,
    CIDR_CONFIG,
    SUPER_USERS_CONFIG,
    parse_allow_everyone,
    parse_cidr_enabled,
    parse_super_users,
)
from aclog.authorizer.decision import Basis, Decision
from aclog.authorizer.errors import AuthorizerNotReadyError, InvalidRequestError
from aclog.authorizer.index.base import LONGEST_REMEMBERED
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
from aclog.metalog.errors import ConfigError

AuditHook: TypeAlias = Callable[[RequestContext, Action, Decision], None]
"""Called with every decision of authorize(), and with the decision on `hardcode` of authorizeByResourceType."""

ResultCache: TypeAlias = dict[str, dict[str, dict[int, dict[str, dict[int, AuthorizationResult]]]]]
"""By principal, host, resource type, resource name (LITERAL) and operation."""

_MAX_CACHED = 1 << 16
"""The cache is dropped when it has this many results: 0.2 kB each, 1.4 kB if no two are for one client."""

_OPERATIONS = frozenset(AclOperation)
_LITERAL = PatternType.LITERAL
_ALLOWED, _DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED


@define(eq=False)
class _View:
    """What one call decides on: an image, the settings, and the results cached for both (None: no cache).

    A change of any of them makes a new view, with an empty cache, and swaps one reference: a call that has read the
    reference is not affected, and no stale result can be served.
    """

    image: AclsImage
    super_users: frozenset[str]
    allow_everyone: bool
    audit: AuditHook | None
    cache: ResultCache | None
    count: int = 0


@define(eq=False, kw_only=True)
class StandardAuthorizer(Authorizer):
    """Decides from one image at a time; `load` swaps it atomically. Safe for any number of threads."""

    documented: bool = False
    """Whether LITERAL `*` covers names that begin with `*`, too, as documented; in Kafka it does not."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range (KIP-1276)."""
    cache: bool = True
    """Whether results are cached until the next `load`."""
    _mutator: AclMutator | None = None
    _audit: AuditHook | None = None
    _super_users: frozenset[str] = frozenset()
    _allow_everyone: bool = False
    _ready: bool = False
    _swapping: threading.Lock = field(factory=threading.Lock, init=False)
    """Held while a new view is made from the current one, so that concurrent changes are not lost. Readers need no
    lock."""
    _view: _View = field(init=False, default=Factory(lambda self: self._new_view(AclsImage.empty()), takes_self=True))

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
        """Set the hook that is called with every decision, or None. With a hook nothing is cached."""
        with self._swapping:
            self._audit = audit
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

    def _new_view(self, image: AclsImage) -> _View:
        image = image.with_options(documented=self.documented, cidr=self.cidr)
        cache: ResultCache | None = {} if self.cache and self._audit is None else None
        return _View(image, self._super_users, self._allow_everyone, self._audit, cache)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """Return one result per action, all from the same image.

        Raises:
            AuthorizerNotReadyError: not ready; super users are exempt.
            InvalidRequestError: the pattern is not LITERAL, the principal has no colon or is `User:*`, or the principal
                of an ACL that Kafka would visit has no colon.

        """
        # The hot path of a server: one reference is read, then nested dicts, which are faster than one dict keyed by a
        # tuple, as none is built. No variable here may be captured by a comprehension: those are slower to read.
        view = self._view
        cache = view.cache
        if cache is not None and len(actions) == 1:
            action = actions[0]
            pattern = action.resource_pattern
            if pattern.pattern_type is _LITERAL:
                try:
                    known = cache[context.principal][context.host][pattern.resource_type]
                    return [known[pattern.name][action.operation]]
                except KeyError:
                    pass
        if view.audit is not None:
            return self._audited(view, context, actions)
        return self._answer(view, context, actions)

    def _answer(self, view: _View, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        if context.principal in view.super_users:
            return [_ALLOWED] * len(actions)
        if not self._ready:
            raise AuthorizerNotReadyError("the authorizer has not replayed the log up to its high-water mark yet")
        # The image is read once: all actions of a call are decided on the same ACLs.
        image, index = view.image, view.image.index
        subject = image.subject(context.principal, context.host)
        results = []
        for action in actions:
            pattern, operation = action.resource_pattern, action.operation
            if pattern.pattern_type is not _LITERAL:
                _check_literal(pattern)
            # Kafka reads an unknown code as UNKNOWN; it must not shift the mask.
            if operation not in _OPERATIONS:
                operation = AclOperation.UNKNOWN
            bits = index.mask(subject, pattern.resource_type, pattern.name, image.documented) >> operation
            if index.has_colonless:
                image.check_principals(subject, operation, pattern.resource_type, pattern.name)
            if bits & DENIED:
                results.append(_DENIED)
            elif bits & ALLOWED or (
                view.allow_everyone and not image.has_candidate(pattern.resource_type, pattern.name)
            ):
                results.append(_ALLOWED)
            else:
                results.append(_DENIED)
        if view.cache is not None:
            _remember(view, context, actions, results)
        return results

    def decide(self, context: RequestContext, action: Action) -> Decision:
        """Return the result for one action and its reason. Raises as `authorize`."""
        return self._decide(self._view, context, action)

    def _decide(self, view: _View, context: RequestContext, action: Action) -> Decision:
        (result,) = self._answer(view, context, (action,))
        if context.principal in view.super_users:
            return Decision(result=result, basis=Basis.SUPER_USER)
        pattern = action.resource_pattern
        ask = context.principal, context.host, action.operation, pattern.resource_type, pattern.name
        rule = view.image.rule(*ask)
        if rule is not None:
            return Decision(result=result, basis=Basis.MATCHING_ACL, rule=rule)
        allowed = result is AuthorizationResult.ALLOWED
        return Decision(result=result, basis=Basis.DEFAULT_ALLOW if allowed else Basis.DEFAULT_DENY)

    def _audited(self, view: _View, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        audit, results = view.audit, []
        for action in actions:
            decision = self._decide(view, context, action)
            if audit is not None:
                audit(context, action, decision)
            results.append(decision.result)
        return results

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
        decide = self._answer if view.audit is None else self._audited
        (answer,) = decide(view, context, (probe,))
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


def _check_literal(pattern: ResourcePattern) -> None:
    if pattern.pattern_type != _LITERAL:
        raise InvalidRequestError(f"only LITERAL resources can be authorized, not {pattern}")


def _remember(
    view: _View, context: RequestContext, actions: Sequence[Action], results: Sequence[AuthorizationResult]
) -> None:
    if view.count + len(actions) > _MAX_CACHED:
        view.cache, view.count = {}, 0
    cache = view.cache
    if cache is None:
        return
    known = cache.setdefault(context.principal, {}).setdefault(context.host, {})
    for action, result in zip(actions, results, strict=True):
        pattern = action.resource_pattern
        if len(pattern.name) > LONGEST_REMEMBERED:
            continue
        known.setdefault(pattern.resource_type, {}).setdefault(pattern.name, {})[action.operation] = result
    view.count += len(actions)


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
