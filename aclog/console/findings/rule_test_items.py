"""Tests of rules that fail, as findings."""

from collections.abc import Sequence

from attrs import frozen

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report.located_finding import LocatedRule
from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.changed_policy import with_ids
from aclog.analysis.rule_tests.failure_text import NEAREST_CHANGE, TestedState, failing, failure_lines
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.analysis.rule_tests.unknown_premises import PremisedRun
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.origin import Origins, origin_text
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.console.findings.item import Item, Kind
from aclog.console.findings.looked import Looked

_EXPLAINED = 50
"""Failing cases that are explained, and whose nearest change is searched for: more of them have one cause."""
_MOST_LINES = 12
"""Of the text of one failing case."""


@frozen(kw_only=True)
class TestedFile:
    """The cases of a file, and the rules under the settings that the file is about."""

    __test__ = False
    """It is none for pytest."""

    policy: Policy
    cases: tuple[Case, ...]
    premises: Premises = ALL_KNOWN
    """What is unknown of what decides."""
    given: frozenset[str] = frozenset()
    """The properties of brokers whose values the policy has."""

    def run(self) -> PremisedRun:
        """Return what runs the cases: one that an unknown premise could turn does not pass."""
        return PremisedRun(self.policy, self.premises, self.given)


def tests_looked(files: Sequence[TestedFile], origins: Origins, place: ChangePlace) -> Looked:
    """Return the cases that fail. Raises MetadataError: what one compares with cannot be read."""
    items: list[Item] = []
    for file in files:
        run = file.run().run
        outcomes = [run(case) for case in file.cases]
        failed = failing(outcomes)
        state = TestedState(policy=with_ids(file.policy), origins=origins, place=place) if failed else None
        items += (_item(each, state if len(items) + at < _EXPLAINED else None) for at, each in enumerate(failed))
    total = sum(len(file.cases) for file in files)
    passed = total - len(items)
    return Looked(items=tuple(items), summary=f"{passed:,} of {total:,} tests pass")


def failing_keys(files: Sequence[TestedFile], among: frozenset[str]) -> frozenset[str]:
    """Return which of some cases, by key, fail. Raises MetadataError: as `tests_looked`."""
    return frozenset(
        key
        for file in files
        for run in (file.run().run,)
        for case in file.cases
        if (key := _key(case)) in among and not run(case).passed
    )


def _key(case: Case) -> str:
    return f"tests {case.origin.file} {case.test} {case.text}"


def _item(outcome: Outcome, state: TestedState | None) -> Item:
    case, mend = outcome.case, list[str]()
    if state is None:
        lines = [f"expected: {case.text}", *(f"found: {each.found}" for each in outcome.failures[:1])]
    else:
        lines = [line.strip() for line in failure_lines(outcome, state)][1:]
        if NEAREST_CHANGE in lines:
            at = lines.index(NEAREST_CHANGE)
            lines, mend = lines[:at], lines[at:]
    rules = dict.fromkeys(each.decided_by for each in outcome.failures if isinstance(each.decided_by, StandardAcl))
    return Item(
        kind=Kind.TESTS,
        key=_key(case),
        severity=Severity.ERROR,
        name=case.test,
        text="\n".join(lines[:_MOST_LINES]),
        rules=tuple(LocatedRule(acl=acl, origins=() if state is None else state.origins.of(acl)) for acl in rules),
        place=origin_text(case.origin),
        advice="\n".join(mend),
    )
