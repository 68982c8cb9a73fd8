"""Lint findings that a draft brings, and those that it mends."""

from attrs import frozen

from aclog.analysis.lint.linting import lint
from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.lint_report.parting import parted
from aclog.analysis.policy import Policy
from aclog.authorizer.config import SUPER_USERS_CONFIG
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import changed_acls
from aclog.console.draft.effect import DraftEffect
from aclog.planning.granting.near_rules import policy_with

MOST_RULES = 5_000
"""Near the draft, that lint looks at while somebody types."""


@frozen(kw_only=True)
class LintEffect:
    """Findings that only one side has."""

    brought: tuple[LocatedFinding, ...] = ()
    mended: tuple[LocatedFinding, ...] = ()


def lint_effect(effect: DraftEffect, premises: Premises = ALL_KNOWN) -> LintEffect | None:
    """Return what lint says of one side only; None if there are too many rules near the draft.

    Where `premises` are unknown by which a rule may be needed, none is called needless.

    It looks at the rules that share a name or a principal with a change: what it says of others is the same before and
    after.
    """
    if not effect.changes:
        return LintEffect()
    if len(effect.near) > MOST_RULES:
        return None
    before = policy_with(effect.near, effect.ground.policy.settings)
    after = Policy(changed_acls(before.acls, effect.changes), before.settings)
    is_known = not premises.without({SUPER_USERS_CONFIG})
    was, now = (_findings(policy, effect, is_known=is_known) for policy in (before, after))
    return LintEffect(brought=tuple(parted(now, was)[0]), mended=tuple(parted(was, now)[0]))


def _findings(policy: Policy, effect: DraftEffect, *, is_known: bool) -> list[LocatedFinding]:
    origins = effect.comparison.origins.new
    return [LocatedFinding.of(found, origins) for found in lint(policy) if is_known or not found.neutral]
