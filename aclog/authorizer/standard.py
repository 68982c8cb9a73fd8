"""StandardAuthorizer.

Decisions from an image, as Kafka makes them (org.apache.kafka.metadata.authorizer.StandardAuthorizer).
"""

import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, Self, TypeAlias
from weakref import WeakKeyDictionary, ref

from attrs import Factory, field
from attrs.converters import optional
from attrs.validators import min_len

from aclog.authorizer import settings
from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, StandardAclWithId, shell_word
from aclog.authorizer.acls_image import (
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    PROBE,
    SUPER_USER,
    AclsImage,
    Basis,
    Decision,
    Verdict,
    check_by_resource_type,
)
from aclog.authorizer.audit import (
    ALLOWED_LOGGED,
    ALLOWED_UNLOGGED,
    ANY_ALLOWED,
    DENIED_LOGGED,
    DENIED_UNLOGGED,
    EITHER_LOGGED,
    EVERY_OUTCOME,
    AccessObserver,
    AccessTally,
    AuditHook,
    Row,
    SelectiveHook,
    outcome_of,
    selective,
)
from aclog.authorizer.codes import AclOperation, PatternType
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from aclog.authorizer.index.layout import (
    ALL_OPERATIONS,
    ALLOWED,
    DENIED,
    NO_RULE,
    RULE_OF_PYTHON,
    Core,
    Generations,
)
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclMutator,
    Action,
    AuthorizationResult,
    Authorizer,
    AuthorizerNotReadyError,
    AuthorizerSession,
    InvalidRequestError,
    RequestContext,
    ResourceGroups,
    UndecidedSession,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    from concurrent.futures import Future

# The masks of requests, cached while one image is in force.


Masks: TypeAlias = dict[str, dict[str, dict[int, dict[str, int]]]]
"""By principal, host, resource type and name: the mask of all ACLs that cover the name and match the subject, so one
entry answers for all operations. Nested dicts are faster than one dict keyed by a tuple, as none is built."""

LIMIT: Final = 1 << 17
"""The size of a generation. A mask counts as one, about 0.2 kB with its name, and a first mask of a client on a type as
`NEW_CLIENT`: two generations hold 52 MB at most, if names are not longer than 100 characters."""
NEW_CLIENT: Final = 4
"""What the dicts of one more client take, in masks."""

PAYS: Final = 3
"""Caching pays if each mask is requested this many more times: that saves as much time as caching it takes."""
FIRST_LOOK: Final = 1 << 14
"""The number of masks after which this is checked for the first time: fewer are all cached."""
SAMPLE: Final = 64
"""If caching does not pay, one name in so many is still cached, a power of two, to detect when it does."""

_NO_HOSTS: Final[dict[str, dict[int, dict[str, int]]]] = {}
_NO_TYPES: Final[dict[int, dict[str, int]]] = {}
_NO_NAMES: Final[dict[str, int]] = {}


@define(eq=False, repr=False)
class Answers:
    """Masks of one image, in two generations (see aclog.authorizer.index.layout).

    With more requests in rotation than fit, caching costs more than it saves. So a generation that did not pay is
    dropped, and from then on only a sample of the names is cached, in proportionally smaller generations: if caching
    pays for the sample, it would pay for all names, and all are cached again.

    Threads need no lock, for the reasons given there. Counters may miss concurrent increments of two threads: a
    generation is then slightly larger.
    """

    _image: AclsImage
    _allow_everyone: bool
    """With `allow.everyone.if.no.acl.found`, a name that no ACL covers has a mask that allows every operation."""
    _index: AclIndex = field(init=False, default=Factory(lambda self: self._image.index, takes_self=True))
    _documented: bool = field(init=False, default=Factory(lambda self: self._image.documented, takes_self=True))
    _young: Masks = field(factory=dict, init=False)
    _old: Masks = field(factory=dict, init=False)
    _size: int = field(default=0, init=False)
    """Of the young generation."""
    _hits: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)
    """The hits of the young generation, and the masks computed for it."""
    _skip: int = field(default=0, init=False)
    """The sample has the names whose hash has none of these bits; 0: all names."""
    _is_new: bool = field(default=True, init=False)
    """Whether caching has not been evaluated yet."""

    def mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return AclsImage.mask, and raise as it does."""
        # The hot path: dicts are indexed and misses caught, since a try that does not raise is free. Only the last
        # look-up often fails: a new name of a known client.
        if self._skip:
            if hash(name) & self._skip and not self._image.in_ranges:
                # Inlined AclsImage.computed_mask: what is not remembered should take no longer for it.
                index = self._index
                subject = index.base.memo.subjects.young.get((principal, host))
                if subject is not None:
                    return index.mask(subject, resource_type, name, self._documented)
            return self._sampled_mask(principal, host, resource_type, name)
        try:
            mask = self._young[principal][host][resource_type].get(name)
        except KeyError:
            mask = None
        if mask is None:
            return self._older_mask(principal, host, resource_type, name)
        self._hits += 1
        return mask

    def _sampled_mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        if hash(name) & self._skip:
            return self._image.computed_mask(principal, host, resource_type, name)
        mask = self._young.get(principal, _NO_HOSTS).get(host, _NO_TYPES).get(resource_type, _NO_NAMES).get(name)
        if mask is None:
            mask = self._older_mask(principal, host, resource_type, name)
        else:
            self._hits += 1
        if self._hits + self._added >= LIMIT // SAMPLE:
            if self._hits >= PAYS * self._added:
                self._skip = 0
            self._hits = self._added = 0
        return mask

    def _older_mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return a mask that is not in the young generation, and remember it there."""
        mask = self._old.get(principal, _NO_HOSTS).get(host, _NO_TYPES).get(resource_type, _NO_NAMES).get(name)
        if mask is not None:
            self._hits += 1
        else:
            mask = self._image.computed_mask(principal, host, resource_type, name)
            if not mask and self._allow_everyone and not self._image.has_candidate(resource_type, name):
                mask = ALL_OPERATIONS
            if len(name) > LONGEST_REMEMBERED:
                return mask
            self._added += 1
        try:
            names = self._young[principal][host][resource_type]
        except KeyError:
            types = self._young.setdefault(principal, {}).setdefault(host, {})
            names = types.setdefault(resource_type, {})
            self._size += NEW_CLIENT
        names[name] = mask
        self._size += 1
        if self._is_new and self._added >= FIRST_LOOK:
            self._look()
        elif self._size >= (LIMIT // SAMPLE if self._skip else LIMIT):
            # New dicts instead of clear(): another thread may be reading the old ones.
            self._old, self._young, self._size = self._young, {}, 0
            if not self._skip:
                self._look()
        return mask

    def _look(self) -> None:
        """Check whether caching all names has paid since the last check; if not, cache only a sample."""
        if self._hits < PAYS * self._added:
            self._old, self._young, self._size, self._skip = {}, {}, 0, SAMPLE - 1
        self._hits = self._added = 0
        self._is_new = False


# The view of one call of an authorizer.


_Request: TypeAlias = tuple[str, str, int, int, str]
"""Principal, host, operation, resource type and name."""

_Handle: TypeAlias = Callable[[int, int, str, int], bool | None]
"""A session's decisions on one view: of operation, resource type and name, with the outcomes that are audited."""

MAX_DECISIONS: Final = 1 << 12
"""The size of a generation of named decisions, of about 1 kB each."""


@define(eq=False, repr=False)
class View:
    """What one call decides on: an image, the settings, and their caches.

    A change of any of them makes a new view and swaps one reference: a call that has read the reference is not
    affected, and nothing stale can be remembered.
    """

    image: AclsImage
    super_users: frozenset[str]
    allow_everyone: bool
    audit: SelectiveHook | None
    tally: AccessTally | None
    """The receiver of decisions on this view."""
    is_heard: bool
    """Whether there is a receiver."""
    core: Core | None
    """The native core, if there is one. No cache comes before it: a look-up takes as long as the core."""
    mask_of: Callable[[str, str, int, str], int]
    """AclsImage.computed_mask, with or without a cache; used where the core does not decide."""
    semantics: int
    """Of the core (AclsImage.semantics)."""
    has_colonless: bool
    is_ready: bool
    """Whether principals other than super users can be authorized."""
    token: object = field(factory=object, init=False)
    """What a session compares, so that it needs no reference to the view."""
    handles: WeakKeyDictionary["StandardSession", _Handle] = field(factory=WeakKeyDictionary, init=False)
    """What sessions decide by, as long as both exist."""
    _decisions: Generations[_Request, Decision] | None = None
    """Decisions of which an audit hook or `decide` wanted the ACL. Made with the first: every update makes a view."""

    @classmethod
    def of(
        cls,
        image: AclsImage,
        *,
        super_users: frozenset[str],
        allow_everyone: bool,
        audit: SelectiveHook | None,
        tally: AccessTally | None,
        cache: bool,
        is_ready: bool,
    ) -> Self:
        """Return the view of an image under these settings; `cache`: whether answers may be remembered."""
        core = image.index.core
        if image.in_ranges:
            image.index.base.read_ranges()  # not in the first decision
        return cls(
            image,
            super_users,
            allow_everyone,
            audit,
            tally,
            audit is not None or tally is not None,
            core,
            Answers(image, allow_everyone).mask if cache and core is None else image.computed_mask,
            image.semantics,
            image.index.has_colonless,
            is_ready,
        )

    def result(self, context: RequestContext, action: Action) -> AuthorizationResult:
        """Return the result of one action, from the image and not from memory. Raises as `authorize`."""
        if context.principal in self.super_users:
            return AuthorizationResult.ALLOWED
        if not self.is_ready:
            raise not_ready()
        pattern = action.resource_pattern
        check_literal(pattern)
        verdict = self.image.verdict(
            context.principal, context.host, action.operation, pattern.resource_type, pattern.name
        )
        allowed = verdict is Verdict.ALLOW or (verdict is Verdict.NO_CANDIDATE and self.allow_everyone)
        return AuthorizationResult.ALLOWED if allowed else AuthorizationResult.DENIED

    def allow_all(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """Return the results for a super user, and report them."""
        results = [AuthorizationResult.ALLOWED] * len(actions)
        if self.audit is not None and self.audit.wanted & ANY_ALLOWED:
            self.report(context, actions, results)
        if self.tally is not None:
            self.tally.left_to_super_users(actions)
        return results

    def tell(
        self,
        context: RequestContext,
        actions: Sequence[Action],
        results: Sequence[AuthorizationResult],
        outcomes: int,
    ) -> None:
        """Report the first of these actions, as many as have a result, to the audit hook and the observer.

        `outcomes` are the bits of all of them, or more. Not of those of super users: see `allow_all`.
        """
        if self.tally is not None and outcomes & EITHER_LOGGED:
            self.tally.decided(context, actions, results)
        if self.audit is not None and self.audit.wanted & outcomes:
            self.report(context, actions, results)

    def not_ready(self, actions: Sequence[Action]) -> AuthorizerNotReadyError:
        """Report the actions to the observer; return the error of an authorizer that is not ready."""
        if self.tally is not None:
            self.tally.not_ready(actions)
        return not_ready()

    def report(
        self, context: RequestContext, actions: Sequence[Action], results: Sequence[AuthorizationResult]
    ) -> None:
        """Report the first of these actions, as many as have a result, to the audit hook, as far as it wants them."""
        audit = self.audit
        if audit is None:
            return
        outcomes = audit.wanted
        for action, result in zip(actions, results, strict=False):
            if outcomes & outcome_of(action, result):
                audit(context, action, self.decision(context, action, result))

    def decision(self, context: RequestContext, action: Action, result: AuthorizationResult) -> Decision:
        """Return the result of a decision made on this view, with its reason."""
        if context.principal in self.super_users:
            return SUPER_USER
        pattern = action.resource_pattern
        request = context.principal, context.host, action.operation, pattern.resource_type, pattern.name
        decisions = self._decisions
        if decisions is None:
            # Threads may race here: one of them forgets what it has named.
            decisions = self._decisions = Generations(MAX_DECISIONS)
        cached = decisions.get(request)
        if cached is not None:
            return cached
        rule = self.image.rule(*request)
        if rule is None:
            return DEFAULT_ALLOW if result is AuthorizationResult.ALLOWED else DEFAULT_DENY
        decision = Decision(result=result, basis=Basis.MATCHING_ACL, rule=rule)
        if len(pattern.name) <= LONGEST_REMEMBERED:
            decisions.put(request, decision)
        return decision


def not_ready() -> AuthorizerNotReadyError:
    """Return the error of an authorizer that is not ready."""
    return AuthorizerNotReadyError("the authorizer has not replayed the log up to its high-water mark yet")


def check_literal(pattern: ResourcePattern) -> None:
    """Raise InvalidRequestError unless the pattern is LITERAL."""
    if pattern.pattern_type != PatternType.LITERAL:
        raise InvalidRequestError(f"only LITERAL resources can be authorized, not {pattern}")


# Sessions: the decisions on the requests of one client, with as little as possible around the core.


_OPERATIONS = frozenset(AclOperation)
_LITERAL = PatternType.LITERAL
_EITHER = ALLOWED | DENIED
_ALLOWED, _DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED

Counts: TypeAlias = MutableSequence[int]
"""An array of two uint64: allowed and denied decisions."""


def new_counts() -> Counts:
    """Return counts of zero."""
    return array("Q", (0, 0))


@define(eq=False, repr=False)
class StandardSession:
    """A session of a StandardAuthorizer (AuthorizerSession), with a new handle when the view changes.

    The view owns the handle: of a client that requests nothing more, no image remains in memory.
    """

    _authorizer: "StandardAuthorizer"
    _principal: str
    _host: str
    _counts: Counts
    """Of the decisions; not of those that it leaves to `authorize`."""
    _newest: tuple[object, Callable[[], _Handle | None]] = field(default=(None, lambda: None), init=False)
    """The token of the last view, and its handle: together, as another thread may renew them."""

    def decide(
        self, operation: int, resource_type: int, name: str, *, log_if_allowed: bool = True, log_if_denied: bool = True
    ) -> bool | None:
        """See AuthorizerSession. None is also returned for what the audit hook or an observer is to receive."""
        view = self._authorizer._view
        audited = 0 if view.audit is None else view.audit.wanted
        if audited and not (log_if_allowed and log_if_denied):
            # The bit of an unlogged outcome is that above the logged one's.
            allowed, denied = audited >> (not log_if_allowed), audited >> (not log_if_denied)
            audited = allowed & ALLOWED_LOGGED | denied & DENIED_LOGGED
        if self._principal in view.super_users:
            if audited & ALLOWED_LOGGED or view.tally is not None:
                return None
            self._counts[0] += 1
            return True
        token, handle = self._newest
        if token is not view.token:
            handle = self._renew(view)
        decide = handle()
        return None if decide is None else decide(operation, resource_type, name, audited)

    def _renew(self, view: View) -> Callable[[], _Handle | None]:
        principal, host, counts = self._principal, self._host, self._counts
        if not view.is_ready or view.has_colonless or view.tally is not None:
            decide: _Handle = _undecided
        elif view.core is not None:
            decide = view.core.session(principal, host, view.semantics, view.allow_everyone, counts).allows
        else:
            # Not the view itself, which owns the handle: it is to end with its last reader, not with a collection.
            decide = partial(_decided, view.mask_of, view.allow_everyone, principal, host, counts)
        view.handles[self] = decide
        handle = ref(decide)
        self._newest = view.token, handle
        return handle


def _undecided(_operation: int, _resource_type: int, _name: str, _audited: int) -> None:
    """Leave a decision to the whole call."""


def _decided(
    mask_of: Callable[[str, str, int, str], int],
    allow_everyone: bool,
    principal: str,
    host: str,
    counts: Counts,
    operation: int,
    resource_type: int,
    name: str,
    audited: int,
) -> bool | None:
    """Do what a native session does: decide and count, or return None for what the whole call decides."""
    try:
        mask = mask_of(principal, host, resource_type, name)
    except InvalidRequestError:
        return None
    if not mask and allow_everyone:
        return None
    code = operation if operation in _OPERATIONS else AclOperation.UNKNOWN
    allowed = mask >> code & _EITHER == ALLOWED
    if audited & (ALLOWED_LOGGED if allowed else DENIED_LOGGED):
        return None
    counts[not allowed] += 1
    return allowed


# StandardAuthorizer: decisions from an image, as Kafka's (org.apache.kafka.metadata.authorizer) makes them.


NO_KEY: Final = RULE_OF_PYTHON
"""The key of a decision that the native core leaves to Python. Rows of the base, and NO_RULE, are keys themselves."""
_DEFAULT_ALLOW_KEY, _SUPER_USER_KEY = NO_KEY - 1, NO_KEY - 2


@define(eq=False, kw_only=True, repr=False)
class StandardAuthorizer(Authorizer):
    """Decides from one image at a time; `load` swaps it atomically. Safe for any number of threads."""

    documented: bool = False
    """Whether LITERAL `*` also covers names that begin with `*`, as documented; in Kafka it does not."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range (KIP-1276)."""
    cache: bool = True
    """Whether answers are remembered until the next `load`; the native core needs no memory and has none."""
    _mutator: AclMutator | None = None
    _audit: SelectiveHook | None = field(default=None, converter=optional(selective))
    _observer: AccessObserver | None = None
    _super_users: frozenset[str] = frozenset()
    _allow_everyone: bool = False
    _swapping: threading.Lock = field(factory=threading.Lock, init=False)
    """Held while a new view is made from the current one, so that concurrent changes are not lost. Readers need no
    lock."""
    _view: View = field(
        init=False, default=Factory(lambda self: self._new_view(AclsImage.empty(), is_ready=False), takes_self=True)
    )

    def __repr__(self) -> str:
        return f"StandardAuthorizer(acls={self.acl_count()}, ready={self.ready})"

    def configure(self, properties: Mapping[str, str]) -> None:
        """Set `super.users`, `allow.everyone.if.no.acl.found` and, if given, `aclog.cidr.enabled`.

        ACLs and readiness are unchanged.

        Raises:
            ConfigError: a super user has no colon, or `aclog.cidr.enabled` is neither true nor false.

        """
        super_users = settings.parse_super_users(properties.get(settings.SUPER_USERS_CONFIG))
        allow_everyone = settings.parse_allow_everyone(properties.get(settings.ALLOW_EVERYONE_CONFIG))
        cidr = (
            settings.parse_cidr_enabled(properties[settings.CIDR_CONFIG])
            if settings.CIDR_CONFIG in properties
            else self.cidr
        )
        with self._swapping:
            self._super_users, self._allow_everyone, self.cidr = super_users, allow_everyone, cidr
            self._view = self._next_view(self._view.image)

    def set_acl_mutator(self, mutator: AclMutator) -> None:
        """Set the mutator for create_acls and delete_acls (ClusterMetadataAuthorizer.setAclMutator)."""
        self._mutator = mutator

    def set_audit(self, audit: AuditHook | None) -> None:
        """Set the hook that is called with every decision, or those that it wants (SelectiveHook); None for none."""
        with self._swapping:
            self._audit = None if audit is None else selective(audit)
            self._view = self._next_view(self._view.image)

    def set_observer(self, observer: AccessObserver | None) -> None:
        """Set the observer of accesses and of the images that decide them; None for none."""
        with self._swapping:
            self._observer = observer
            self._view = self._next_view(self._view.image)

    def load(self, image: AclsImage) -> None:
        """Decide from this image from now on (Kafka's loadSnapshot, addAcl and removeAcl in one)."""
        with self._swapping:
            self._view = self._next_view(image)

    def pinned(self) -> "StandardAuthorizer":
        """Return an authorizer with the present image, settings and readiness, which never change."""
        return copy(self)

    def complete_initial_load(self) -> None:
        """Mark the authorizer as ready: the image has reached the high-water mark. It stays ready."""
        with self._swapping:
            # Another view: a call that has read this one, and a pinned authorizer, may have an older image.
            self._view = self._new_view(self._view.image, is_ready=True)

    @property
    def ready(self) -> bool:
        """Whether principals other than super users can be authorized."""
        return self._view.is_ready

    def _next_view(self, image: AclsImage) -> View:
        return self._new_view(image, is_ready=self._view.is_ready)

    def _new_view(self, image: AclsImage, *, is_ready: bool) -> View:
        image, observer = image.with_options(documented=self.documented, cidr=self.cidr), self._observer
        return View.of(
            image,
            super_users=self._super_users,
            allow_everyone=self._allow_everyone,
            audit=self._audit,
            tally=None if observer is None else observer.begin(image),
            cache=self.cache,
            is_ready=is_ready,
        )

    def session(self, principal: str, host: str, counts: Counts | None = None) -> AuthorizerSession:
        """Return decisions on the requests of one client, which are counted in `counts`.

        A subclass with an `authorize` of its own decides every request by that.
        """
        if type(self).authorize is not StandardAuthorizer.authorize:
            return UndecidedSession()
        return StandardSession(self, principal, host, new_counts() if counts is None else counts)

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
        if not view.is_ready:
            raise view.not_ready(actions)
        host, core, mask_of, has_colonless = context.host, view.core, view.mask_of, view.has_colonless
        results: list[AuthorizationResult] = []
        outcomes = 0
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
                    outcomes |= ALLOWED_LOGGED if action.log_if_allowed else ALLOWED_UNLOGGED
                    results.append(_ALLOWED)
                else:
                    outcomes |= DENIED_LOGGED if action.log_if_denied else DENIED_UNLOGGED
                    results.append(_DENIED)
        except InvalidRequestError:
            # As in Kafka, the actions before have been reported by then.
            view.tell(context, actions, results, EVERY_OUTCOME)
            raise
        if view.is_heard:
            view.tell(context, actions, results, outcomes)
        return results

    def decide(self, context: RequestContext, action: Action) -> Decision:
        """Return the result for one action and its reason, without a call of the audit hook. Raises as `authorize`."""
        view = self._view
        return view.decision(context, action, view.result(context, action))

    def decision_key(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> int:
        """Return a number that all requests with the same decision and rule share; NO_KEY: `decide` determines both.

        One call of the native core, without an object. Keys are comparable while the authorizer has the same image and
        settings, as a pinned one always has. The resource pattern is LITERAL.
        """
        view = self._view
        if principal in view.super_users:
            return _SUPER_USER_KEY
        if view.core is None or not view.is_ready or view.has_colonless:
            return NO_KEY
        row = view.core.rule(principal, host, operation, resource_type, name, view.semantics)
        if row == NO_RULE and view.allow_everyone and not view.image.has_candidate(resource_type, name):
            return _DEFAULT_ALLOW_KEY
        return row

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
        answer = view.result(context, probe)
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

    def acl_groups(self, acl_filter: AclBindingFilter) -> ResourceGroups | None:
        """Return the same in columns; None if they are few, or `acls` alone lists them."""
        return self._view.image.groups(acl_filter)

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
    authorizer.configure(
        {settings.SUPER_USERS_CONFIG: super_users, settings.ALLOW_EVERYONE_CONFIG: str(allow_everyone).lower()}
    )
    authorizer.load(acls)
    authorizer.complete_initial_load()
    return authorizer


# Loading of the authorizer class that `authorizer.class.name` names.


AUTHORIZER_CLASS_NAME_CONFIG = "authorizer.class.name"

KAFKAS_STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SET_AUTHORIZER = f"set authorizer.class.name={KAFKAS_STANDARD_AUTHORIZER} on the node"
"""The way out of an error or a note about a node without an authorizer."""

KAFKAS_ACL_AUTHORIZERS = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
"""The authorizer with ACLs in ZooKeeper: of Kafka 2.4 to 3.9, and of earlier versions."""
_ACL_AUTHORIZER = "aclog.zookeeper.authorizer.AclAuthorizer"

_OLD_ACL_AUTHORIZER = "zkstore.acl_authorizer.AclAuthorizer"

_RENAMED = {
    "authorizer.standard.StandardAuthorizer": "aclog.authorizer.standard.StandardAuthorizer",
    _OLD_ACL_AUTHORIZER: _ACL_AUTHORIZER,
}
"""Class names of release 0.1, which may still be in a server.properties."""

ACL_AUTHORIZERS = frozenset({*KAFKAS_ACL_AUTHORIZERS, _ACL_AUTHORIZER, _OLD_ACL_AUTHORIZER})
"""All names of that class."""


def load_authorizer_class(name: str) -> type[Authorizer]:
    """Return the class with this name: ours for the names of Kafka's own, else the Python class `package.module.Class`.

    It also accepts `package.module:Class`. The caller creates an instance and calls its `configure`.

    Raises:
        ConfigError: there is no such module or class, its import failed, or it is not an Authorizer.

    """
    name = name.strip()
    if name == KAFKAS_STANDARD_AUTHORIZER:
        return StandardAuthorizer
    if name in KAFKAS_ACL_AUTHORIZERS:
        name = _ACL_AUTHORIZER  # imported by name only: it is in a package above this one and needs kazoo
    name = name.replace(":", ".", 1)
    module_name, _, class_name = _RENAMED.get(name, name).rpartition(".")
    if not module_name or not class_name:
        raise _cannot(name, "expected package.module.Class, or Kafka's StandardAuthorizer")
    try:
        candidate = getattr(import_module(module_name), class_name, None)
    except Exception as e:
        # Importing a plugin runs its code, which may raise anything.
        raise _cannot(name, f"importing {module_name} failed: {type(e).__name__}: {_one_line(e)}") from e
    if not (isinstance(candidate, type) and issubclass(candidate, Authorizer)):
        what = f"{module_name} has no {class_name}" if candidate is None else "it is not a subclass of Authorizer"
        raise _cannot(name, what)
    return candidate


def _cannot(name: str, why: str) -> ConfigError:
    return ConfigError(f"{AUTHORIZER_CLASS_NAME_CONFIG} {name!r}: {why}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


# Premises: inputs of an answer that could not be read, such as the settings of a live cluster.


# Premises: unknown inputs of an answer, with their possible effects, and the flags that settle them.


UNKNOWN = " is unknown: "
"""Occurs in the note of every premise, and in no other note of a command."""


@frozen(kw_only=True)
class Premise:
    """One unknown premise."""

    name: str
    """The unknown input, such as `super.users`."""
    problem: str
    """The reason why it is unknown, and the nodes; a clause."""
    unless: str
    """The condition under which the answer would change; a clause, such as `the principal is a super user`."""
    settled_by: str
    """The flag that settles it, such as `--super-users USERS`."""
    allows: bool = True
    """Whether it could allow requests that are denied without it."""
    denies: bool = False
    """Whether it could deny requests that are allowed without it."""

    def note(self) -> str:
        """Return the premise as a sentence for stderr."""
        turned = {
            (True, False): "DENIED requests may be allowed",
            (False, True): "ALLOWED requests may be denied",
            (True, True): "any decision may differ",
        }[self.allows, self.denies]
        return f"{self.name}{UNKNOWN}{self.problem}: {turned}; known with {self.settled_by}"

    def to_dict(self) -> Row:
        """Return the premise for JSON; scripts depend on the keys."""
        return {
            "name": self.name,
            "problem": self.problem,
            "couldAllow": self.allows,
            "couldDeny": self.denies,
            "settledBy": self.settled_by,
        }


@frozen
class Premises:
    """All unknown premises of an answer; empty if every input is known."""

    unknown: tuple[Premise, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the unknown inputs."""
        return tuple(premise.name for premise in self.unknown)

    def turning(self, *, allowed: bool) -> Self:
        """Return those that could reverse an allowed, or a denied, request."""
        return type(self)(tuple(each for each in self.unknown if (each.denies if allowed else each.allows)))

    def also(self, more: Self) -> Self:
        """Return these and others, each once."""
        return type(self)(tuple(dict.fromkeys((*self.unknown, *more.unknown)))) if more else self

    def without(self, names: AbstractSet[str]) -> Self:
        """Return those without one of these names."""
        return type(self)(tuple(each for each in self.unknown if each.name not in names))

    def bearing_on(self, *, allowed: bool, has_candidate: bool) -> Self:
        """Return those that could change one decision; `has_candidate`: whether an ACL covers its resource."""
        turning = self.turning(allowed=allowed)
        return turning.without({settings.ALLOW_EVERYONE_CONFIG}) if has_candidate else turning

    def decided(self, decision: str) -> str:
        """Return a decision with its conditions: `DENIED unless ...`; `self`: the premises that affect it."""
        return f"{decision} unless {self.unless()}" if self.unknown else decision

    def unless(self) -> str:
        """Return the conditions under which an answer would change, with their flags, as a clause; empty if none."""
        return " or ".join(f"{each.unless} ({each.settled_by})" for each in self.unknown)

    def settled_by(self) -> str:
        """Return all flags that settle the premises, as a list in a sentence."""
        return " and ".join(each.settled_by for each in self.unknown)

    def to_dicts(self) -> list[Row]:
        """Return them for JSON."""
        return [premise.to_dict() for premise in self.unknown]

    def key(self) -> dict[str, list[Row]]:
        """Return the JSON key with the premises; empty without any."""
        return {"premises": self.to_dicts()} if self.unknown else {}


ALL_KNOWN = Premises()


# The authorizer settings that the nodes of a running cluster return, and the premises that stay unknown.


SETTLED = frozenset({settings.SUPER_USERS_CONFIG, settings.ALLOW_EVERYONE_CONFIG})
"""The properties whose values flags can provide."""
READ_CONFIGS = (*sorted(SETTLED), AUTHORIZER_CLASS_NAME_CONFIG)
"""The properties that affect decisions, besides ACLs."""

KNOWN_AUTHORIZERS = frozenset(
    {KAFKAS_STANDARD_AUTHORIZER, "aclog.authorizer.standard.StandardAuthorizer", *ACL_AUTHORIZERS}
)
"""The authorizer classes whose properties, defaults and decisions are known."""

_SETTLED_BY_FILE = "--acls FILE, which decides as Kafka's StandardAuthorizer with the same ACLs"
_LISTED = 5
"""How many nodes a premise names."""
_FLAGS = {
    settings.SUPER_USERS_CONFIG: "--super-users USERS",
    settings.ALLOW_EVERYONE_CONFIG: "--allow-everyone-if-no-acl-found or --no-allow-everyone-if-no-acl-found",
}
_UNLESS = {
    settings.SUPER_USERS_CONFIG: "the principal is a super user",
    settings.ALLOW_EVERYONE_CONFIG: "a resource without ACLs is open to everyone",
}


def _is_no_super_user(value: str) -> bool:
    try:
        return not settings.parse_super_users(value)
    except ConfigError:  # a value with another meaning to another authorizer
        return False


def _is_closed(value: str) -> bool:
    return not settings.parse_allow_everyone(value)


_DEFAULTS: Mapping[str, Callable[[str], bool]] = {
    settings.SUPER_USERS_CONFIG: _is_no_super_user,
    settings.ALLOW_EVERYONE_CONFIG: _is_closed,
}
"""Whether a value is equivalent to an unset property."""


@frozen(kw_only=True)
class NodeSettings:
    """The settings of one node, or the reason why they are unknown."""

    node: str
    """Such as `broker 1`."""
    values: Mapping[str, str | None] = field(factory=dict)
    """Of the properties of `READ_CONFIGS` that are set; None for a value that the node hides."""
    problem: str | None = None
    """The reason why the node's settings are unknown; a clause."""
    may_lack_authorizer: bool = False
    """Whether the settings are unknown, and the other nodes of the cluster have no authorizer."""

    @property
    def is_read(self) -> bool:
        """Whether the node's settings were read."""
        return self.problem is None

    @property
    def authorizer(self) -> str | None:
        """The class of its authorizer, empty for none; None if it is hidden, or was not read."""
        if not self.is_read:
            return None
        name = self.values.get(AUTHORIZER_CLASS_NAME_CONFIG, "")
        return None if name is None else name.strip()


@frozen(kw_only=True)
class ClusterSettings:
    """The settings of the nodes that decide requests of clients."""

    nodes: tuple[NodeSettings, ...] = field(validator=min_len(1))
    serves_acls: bool = False
    """Whether one of the nodes has described ACLs, which requires an authorizer."""

    @property
    def has_no_authorizer(self) -> bool:
        """Whether every node has no authorizer, and so allows everything."""
        return self._names_none and not self.serves_acls

    @property
    def _names_none(self) -> bool:
        return all(node.authorizer == "" for node in self.nodes)

    def premises(self, names: AbstractSet[str]) -> Premises:
        """Return the unknown premises if the values of the properties in `names` are given."""
        properties = ((name, is_default) for name, is_default in _DEFAULTS.items() if name not in names)
        unknown = [self._property(name, is_default) for name, is_default in properties]
        return Premises(tuple(each for each in (*unknown, self._class()) if each is not None))

    def _property(self, name: str, is_default: Callable[[str], bool]) -> Premise | None:
        """Return a property as a premise; None if it has Kafka's default on every node."""
        problems: dict[str, list[str]] = {}
        values: set[str] = set()
        for node in self.nodes:
            value = node.values.get(name, "")
            if node.problem is not None:
                problems.setdefault(f"it cannot be read on {{}}: {node.problem}", []).append(node.node)
            elif value is None:
                problems.setdefault("it is set on {}, where the value is hidden", []).append(node.node)
            elif not is_default(value):
                values.add(value)
                problems.setdefault(f"on {{}} it is {value!r}, which no flag or context sets", []).append(node.node)
        if not problems:
            return None
        return Premise(
            name=name,
            problem="; ".join(text.replace("{}", _listed(nodes), 1) for text, nodes in problems.items()),
            unless=_UNLESS[name],
            settled_by=_flag(name, values.pop()) if len(values) == len(problems) == 1 else _FLAGS[name],
        )

    def _class(self) -> Premise | None:
        """Return the class of the authorizer as a premise; None if every node that was read has a known class."""
        is_named = not self._names_none  # a service may hide the property
        lacking = (node for node in self.nodes if node.may_lack_authorizer or (is_named and node.authorizer == ""))
        missing = [node.node for node in lacking]
        others = dict.fromkeys(_strangers(self.nodes))
        if not missing and not others:
            return None
        parts = [f"{_listed([node])} has {name}" for node, name in others]
        if missing:
            parts.append(f"{_listed(missing)} may have none, and then everything is allowed")
        return Premise(
            name=AUTHORIZER_CLASS_NAME_CONFIG,
            problem="; ".join(parts),
            unless="another authorizer decides otherwise" if others else "there is no authorizer",
            settled_by=_SETTLED_BY_FILE,
            denies=bool(others),
        )


def _strangers(nodes: tuple[NodeSettings, ...]) -> Iterator[tuple[str, str]]:
    """Yield the nodes whose authorizer is not one of Kafka's, and its class."""
    for node in nodes:
        if node.is_read and node.authorizer is None:
            yield node.node, "one whose class is hidden"
        elif node.authorizer and node.authorizer not in KNOWN_AUTHORIZERS:
            yield node.node, node.authorizer


def _flag(name: str, value: str) -> str:
    if name == settings.SUPER_USERS_CONFIG:
        return f"--super-users {shell_word(value) or 'USERS'}"
    return "--allow-everyone-if-no-acl-found"


def _listed(nodes: list[str]) -> str:
    """Return names such as `broker 1` as `brokers 1, 2`; the first ones of many."""
    kinds: dict[str, list[str]] = {}
    for node in nodes:
        kind, _, number = node.rpartition(" ")
        kinds.setdefault(kind, []).append(number)
    return " and ".join(_of_kind(kind, numbers) for kind, numbers in kinds.items())


def _of_kind(kind: str, numbers: list[str]) -> str:
    if len(numbers) == 1:
        return f"{kind} {numbers[0]}"
    more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
    return f"{kind}s {', '.join(numbers[:_LISTED])}{more}"
