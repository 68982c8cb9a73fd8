"""The tests of rules that a review runs on its head."""

from collections.abc import Iterator, Sequence

from aclog.analysis.policy import Policy
from aclog.analysis.review.document import Item
from aclog.analysis.review.outcomes import TestsOutcome
from aclog.analysis.rows.row_report import request_text
from aclog.analysis.rule_tests.changed_policy import with_ids
from aclog.analysis.rule_tests.failure_text import stated_text
from aclog.analysis.rule_tests.nearest_change import nearest_change
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.authorizer.explanation_text import acl_text
from aclog.authorizer.origin import Origins, origin_text
from aclog.authorizer.rule_change import RuleChange
from aclog.sources.rule_tests.reading import read_test_file

_SHOWN = 3
"""Reasons of a failing case; `aclog test` shows more."""


def run_tests(paths: Sequence[str], policy: Policy, origins: Origins) -> TestsOutcome:
    """Run the tests of some files on a policy.

    Raises:
        MetadataError: a malformed file, or another state that a test compares with cannot be read.
        OSError: a file cannot be read.

    """
    tested = with_ids(policy) if paths else policy
    outcomes = [case.run(tested) for path in paths for case in read_test_file(path).cases]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    return TestsOutcome(
        failures=tuple(_item(outcome, tested, origins) for outcome in failed), passed=len(outcomes) - len(failed)
    )


def _item(outcome: Outcome, policy: Policy, origins: Origins) -> Item:
    case = outcome.case
    first, *others = outcome.failures
    more = f"; {len(others):,} more" if others else ""
    return Item(
        text=f"{case.test}: {case.text}: {first.found}{more}",
        origin=case.origin,
        details=(
            origin_text(case.origin),
            *(line for each in outcome.failures[:_SHOWN] for line in _details(each, origins)),
            *map(_change_text, nearest_change(case, policy)),
        ),
    )


def _details(failure: Failure, origins: Origins) -> Iterator[str]:
    if failure.request is not None:
        yield f"such as {request_text(failure.request)}: {stated_text(failure.decided_by, origins)}"


def _change_text(change: RuleChange) -> str:
    return f"the nearest change: {'adding' if change.added else 'removing'} {acl_text(change.acl)}"
