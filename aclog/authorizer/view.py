"""What one call of an authorizer decides on."""

from collections.abc import Callable, Sequence
from typing import Final, Self, TypeAlias

from attrs import define

from aclog.authorizer.access_observer import AccessTally
from aclog.authorizer.acl import PatternType, ResourcePattern
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.answers import Answers
from aclog.authorizer.audit_hook import ANY_ALLOWED, EITHER_LOGGED, SelectiveHook, outcome_of
from aclog.authorizer.decision import DEFAULT_ALLOW, DEFAULT_DENY, SUPER_USER, Basis, Decision
from aclog.authorizer.errors import AuthorizerNotReadyError, InvalidRequestError
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from aclog.authorizer.index.core import Core
from aclog.authorizer.index.generations import Generations
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext

_Request: TypeAlias = tuple[str, str, int, int, str]
"""Principal, host, operation, resource type and name."""

MAX_DECISIONS: Final = 1 << 12
"""The size of a generation of named decisions, of about 1 kB each."""


@define(eq=False)
class View:
    """What one call decides on: an image, the settings, and what is remembered about both.

    A change of any of them makes a new view and swaps one reference: a call that has read the reference is not
    affected, and nothing stale can be remembered.
    """

    image: AclsImage
    super_users: frozenset[str]
    allow_everyone: bool
    audit: SelectiveHook | None
    tally: AccessTally | None
    """What an observer wants to be told of decisions on this view."""
    is_heard: bool
    """Whether anybody wants to be told of decisions."""
    core: Core | None
    """The native core, if there is one. It has no memory before it: to look there takes as long as to ask the core."""
    mask_of: Callable[[str, str, int, str], int]
    """AclsImage.computed_mask, with or without a memory; asked where the core does not decide."""
    semantics: int
    """Of the core (AclsImage.semantics)."""
    has_colonless: bool
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
        )

    def result(self, context: RequestContext, action: Action, *, ready: bool) -> AuthorizationResult:
        """Return the result of one action, from the image and not from memory. Raises as StandardAuthorizer.authorize.

        `ready`: whether principals other than super users can be authorized.
        """
        if context.principal in self.super_users:
            return AuthorizationResult.ALLOWED
        if not ready:
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
        """Tell the audit hook and the observer of the first of these actions, as many as have a result.

        `outcomes` are the bits of all of them, or more. Not of those of super users: see `allow_all`.
        """
        if self.tally is not None and outcomes & EITHER_LOGGED:
            self.tally.decided(context, actions, results)
        if self.audit is not None and self.audit.wanted & outcomes:
            self.report(context, actions, results)

    def not_ready(self, actions: Sequence[Action]) -> AuthorizerNotReadyError:
        """Return the error of an authorizer that is not ready, after it told the observer."""
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
        wanted = audit.wanted
        for action, result in zip(actions, results, strict=False):
            if wanted & outcome_of(action, result):
                audit(context, action, self.decision(context, action, result))

    def decision(self, context: RequestContext, action: Action, result: AuthorizationResult) -> Decision:
        """Return the result of a decision made on this view, with its reason."""
        if context.principal in self.super_users:
            return SUPER_USER
        pattern = action.resource_pattern
        asked = context.principal, context.host, action.operation, pattern.resource_type, pattern.name
        decisions = self._decisions
        if decisions is None:
            # Threads may race here: one of them forgets what it has named.
            decisions = self._decisions = Generations(MAX_DECISIONS)
        known = decisions.get(asked)
        if known is not None:
            return known
        rule = self.image.rule(*asked)
        if rule is None:
            return DEFAULT_ALLOW if result is AuthorizationResult.ALLOWED else DEFAULT_DENY
        decision = Decision(result=result, basis=Basis.MATCHING_ACL, rule=rule)
        if len(pattern.name) <= LONGEST_REMEMBERED:
            decisions.put(asked, decision)
        return decision


def not_ready() -> AuthorizerNotReadyError:
    """Return the error of an authorizer that is not ready."""
    return AuthorizerNotReadyError("the authorizer has not replayed the log up to its high-water mark yet")


def check_literal(pattern: ResourcePattern) -> None:
    """Raise InvalidRequestError unless the pattern is LITERAL."""
    if pattern.pattern_type != PatternType.LITERAL:
        raise InvalidRequestError(f"only LITERAL resources can be authorized, not {pattern}")
