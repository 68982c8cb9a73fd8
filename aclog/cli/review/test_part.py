"""The tests of rules that a review runs on its head."""

from collections.abc import Iterator, Sequence

from aclog.analysis.policy import Policy
from aclog.analysis.review.document import Item
from aclog.analysis.review.outcomes import TestsOutcome
from aclog.analysis.rows.row_report import decided_by_text, request_text
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.origin import Origins, origin_text
from aclog.sources.rule_tests.reading import read_test_file


def run_tests(paths: Sequence[str], policy: Policy, origins: Origins) -> TestsOutcome:
    """Run the tests of some files on a policy.

    Raises:
        MetadataError: a malformed file, or another state that a test compares with cannot be read.
        OSError: a file cannot be read.

    """
    outcomes = [case.run(policy) for path in paths for case in read_test_file(path).cases]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    return TestsOutcome(
        failures=tuple(_item(outcome, origins) for outcome in failed), passed=len(outcomes) - len(failed)
    )


def _item(outcome: Outcome, origins: Origins) -> Item:
    case = outcome.case
    first, *others = outcome.failures
    more = f", and {len(others):,} more reasons" if others else ""
    return Item(
        text=f"{case.test}: {case.text}: {first.found}{more}",
        details=(
            origin_text(case.origin),
            *(line for each in outcome.failures[:3] for line in _details(each, origins)),
        ),
    )


def _details(failure: Failure, origins: Origins) -> Iterator[str]:
    if failure.request is not None:
        rule = failure.decided_by
        places = ", ".join(map(origin_text, origins.of(rule))) if isinstance(rule, StandardAcl) else ""
        where = f" ({places})" if places else ""
        yield f"such as {request_text(failure.request)}: {decided_by_text(rule)}{where}"
