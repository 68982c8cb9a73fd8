"""Tests of rules that a draft turns red or green."""

from collections.abc import Sequence

from attrs import frozen

from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.analysis.rule_tests.touched_requests import touches
from aclog.analysis.rule_tests.unknown_premises import PremisedRun
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Settings
from aclog.console.draft.effect import DraftEffect

_MOST_PAIRS = 200_000
"""Of a case and a set of requests that changes; with more, all cases are run."""


@frozen(kw_only=True)
class StatedCases:
    """The cases of a file, and what decides for them besides the rules."""

    settings: Settings
    cases: tuple[Case, ...]
    given: frozenset[str] = frozenset()
    """The properties of brokers whose values the settings have."""


@frozen(kw_only=True)
class TestedCase:
    """A case, before the draft and with it."""

    __test__ = False  # not a class of tests for pytest

    before: Outcome
    after: Outcome

    @property
    def has_turned(self) -> bool:
        """Whether the draft decides it."""
        return self.before.passed is not self.after.passed


@frozen(kw_only=True)
class TestsEffect:
    """Cases that are about what a draft changes."""

    __test__ = False

    cases: tuple[TestedCase, ...] = ()
    """Those that turn red first, then those that turn green, those that stay red, and those that stay green."""
    others: int = 0
    """Cases that decide on no request that the draft changes: they are as they were, and were not run."""


def effect_on_tests(effect: DraftEffect, files: Sequence[StatedCases], premises: Premises = ALL_KNOWN) -> TestsEffect:
    """Return what becomes of the cases of some files; one that an unknown premise could turn does not pass.

    Raises:
        MetadataError: what a case compares with cannot be read.

    """
    found: list[TestedCase] = []
    total = 0
    for file in files:
        old, new = (
            PremisedRun(_under(policy, file.settings), premises.without(file.given), file.given)
            for policy in (effect.ground.policy, effect.after)
        )
        total += len(file.cases)
        concerned = _concerned(effect, file.cases, file.settings)
        found += [TestedCase(before=old.run(case), after=new.run(case)) for case in concerned]
    found.sort(key=lambda each: (not each.has_turned, each.after.passed))
    return TestsEffect(cases=tuple(found), others=total - len(found))


def _under(policy: Policy, settings: Settings) -> Policy:
    if settings == policy.settings:
        return policy
    return Policy(policy.acls.with_options(documented=settings.documented, cidr=settings.cidr), settings)


def _concerned(effect: DraftEffect, cases: Sequence[Case], settings: Settings) -> Sequence[Case]:
    """Return the cases that decide on a request that changes; all of them if that is not known."""
    if not effect.changes:
        return ()
    differences = effect.comparison.differences
    if settings != effect.ground.policy.settings or len(differences) * len(cases) > _MOST_PAIRS:
        return cases
    return [
        case
        for case in cases
        if any(touches(each.region, query) for query in case.queries(settings) for each in differences)
    ]
