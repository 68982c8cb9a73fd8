"""Audit hooks: what an authorizer reports its decisions to, and which of them a hook wants."""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

from aclog.authorizer.decision import Decision
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext

ALLOWED_LOGGED: Final = 1
ALLOWED_UNLOGGED: Final = 2
DENIED_LOGGED: Final = 4
DENIED_UNLOGGED: Final = 8
"""The four outcomes of an action, as bits: allowed or denied, and whether the action asks for a line in that case
(`log_if_allowed`, `log_if_denied`)."""
EVERY_OUTCOME: Final = ALLOWED_LOGGED | ALLOWED_UNLOGGED | DENIED_LOGGED | DENIED_UNLOGGED
EITHER_LOGGED: Final = ALLOWED_LOGGED | DENIED_LOGGED
ANY_ALLOWED: Final = ALLOWED_LOGGED | ALLOWED_UNLOGGED

AuditHook: TypeAlias = Callable[[RequestContext, Action, Decision], None]
"""Called with the decisions of authorize(), and with the decision on `hardcode` of authorizeByResourceType.

A hook with an attribute `wanted` (SelectiveHook) is called for those outcomes only; any other hook for every decision.
"""


@runtime_checkable
class SelectiveHook(Protocol):
    """An audit hook that says beforehand which outcomes it wants.

    Finding the ACL that determined a decision takes several times as long as the decision, and is done for wanted
    outcomes only.
    """

    @property
    def wanted(self) -> int:
        """The outcomes it wants now (bits). Read at every call of authorize(), so it may change at any time."""

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """Take one decision. What it raises, authorize() raises."""


@frozen
class _EveryDecision:
    """Makes a SelectiveHook of a plain callable."""

    hook: AuditHook
    wanted: int = EVERY_OUTCOME

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        self.hook(context, action, decision)


def selective(hook: AuditHook) -> SelectiveHook:
    """Return the hook itself if it says what it wants, else one that wants every outcome."""
    return hook if isinstance(hook, SelectiveHook) else _EveryDecision(hook)


def outcome_of(action: Action, result: AuthorizationResult) -> int:
    """Return the outcome (one bit) of an action with this result."""
    if result is AuthorizationResult.ALLOWED:
        return ALLOWED_LOGGED if action.log_if_allowed else ALLOWED_UNLOGGED
    return DENIED_LOGGED if action.log_if_denied else DENIED_UNLOGGED
