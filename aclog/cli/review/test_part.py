"""The tests of rules that a review runs on its head."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from aclog.analysis.policy import Policy
from aclog.analysis.review.document import Item
from aclog.analysis.review.outcomes import TestsOutcome
from aclog.analysis.rows.row_report import decided_by_text, request_text
from aclog.analysis.rule_tests.changed_policy import with_ids
from aclog.analysis.rule_tests.nearest_change import nearest_change
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.unknown_premises import EachRun
from aclog.authorizer.acl import acl_text
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import Origins, origin_text
from aclog.authorizer.premises import ALL_KNOWN
from aclog.authorizer.rule_change import RuleChange
from aclog.cli.flags.repository import RepositoryFlags, authorizer_flags
from aclog.cli.review.sides import ReviewSides
from aclog.cli.testing import settings_for
from aclog.sources.named_source import NamedSource
from aclog.sources.repository.settings import RepositorySettings
from aclog.sources.rule_tests.reading import read_test_file
from aclog.sources.rule_tests.rule_test_file import RuleTestFile

_SHOWN = 3
"""Reasons of a failing case; `aclog test` shows more."""


@frozen(eq=False, kw_only=True)
class HeadTests:
    """The tests of a review, and the rules that they are run on: those of the head."""

    settings: RepositorySettings
    repository: RepositoryFlags
    """Its flags win over what a file of tests says of the authorizer, and this over `settings`."""
    path: str
    """The file or directory of rules."""
    sides: ReviewSides

    def run(self) -> TestsOutcome:
        """Run the tests.

        Raises:
            MetadataError: a malformed file, or another state that a test compares with cannot be read.
            OSError: a file cannot be read.

        """
        files = [read_test_file(path) for path in self.settings.test.files]
        found = [self._run_file(file) for file in files if self._is_run(file)]
        return TestsOutcome(
            failures=tuple(item for failed, _ in found for item in failed),
            passed=sum(passed for _, passed in found),
            left_out=tuple(
                f"{file.path}: left out: its tests are of {file.source.value}, not of {self.path}"
                for file in files
                if file.source is not None and not self._is_run(file)
            ),
        )

    def _is_run(self, file: RuleTestFile) -> bool:
        return file.source is None or self._is_about_path(file.source)

    def _run_file(self, file: RuleTestFile) -> tuple[list[Item], int]:
        settings = settings_for(file, self.repository, self.settings)
        head = self.sides.head
        policies = self.sides.policies(head, authorizer_flags(settings))
        numbered = {generation: with_ids(policy) for generation, policy in policies.items()}
        run = EachRun.of(numbered, ALL_KNOWN)
        outcomes = [run.run(case) for case in file.cases]
        failed = [outcome for outcome in outcomes if not outcome.passed]
        items = [_item(outcome, numbered, head.placement.origins) for outcome in failed]
        return items, len(outcomes) - len(failed)

    def _is_about_path(self, source: NamedSource) -> bool:
        return source.kind == "acls" and Path(source.value).resolve() == Path(self.path).resolve()


def _item(outcome: Outcome, policies: Mapping[Generation, Policy], origins: Origins) -> Item:
    case, only = outcome.case, outcome.failures[0].only
    policy = next(iter(policies.values())) if only is None else policies[only]
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
        yield f"such as {request_text(failure.request)}: {decided_by_text(failure.decided_by, origins)}"


def _change_text(change: RuleChange) -> str:
    return f"the nearest change: {'adding' if change.added else 'removing'} {acl_text(change.acl)}"
