"""Results of tests as text: a line for each file, a screen for each case that fails, and a summary."""

from collections.abc import Iterator, Sequence

from aclog.analysis.by_generation import only_on
from aclog.analysis.regions.witness import witness
from aclog.analysis.rows.row_report import decided_by_text, request_text
from aclog.analysis.rule_tests.coverage import Coverage
from aclog.analysis.rule_tests.failure_text import failure_lines
from aclog.analysis.rule_tests.mutation_testing import MutationResult
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.authorizer.acl import acl_text
from aclog.authorizer.origin import Origins
from aclog.cli.test.results import FileResult, Mutations
from aclog.cli.testing import RulesUnderTest
from aclog.metalog.printable import printable
from aclog.terminal.output import say

_SCREENS = 20
"""Failing cases of a file that are shown whole; of the others a line each."""
_LINES = 1000
"""Failing cases of a file that are shown at all."""


class TextReport:
    """Prints results for people, as they come."""

    def file(self, result: FileResult) -> None:
        """Print what became of a file."""
        for line in _file_lines(result):
            say(printable(line))

    def coverage(self, rules: RulesUnderTest, found: Coverage, *, least: float | None, listed: bool) -> None:
        """Print how many rules of a source are exercised, and which are not."""
        covered = found.rules - len(found.uncovered)
        too_few = least is not None and found.percent < least
        less = f"; at least {least:g}% are expected" if too_few else ""
        say(
            printable(
                f"{rules.chosen.source.name}: {covered:,} of {found.rules:,} rules are exercised by a test "
                f"({found.percent:.1f}%){less}"
            )
        )
        for rule in found.uncovered if listed or too_few else ():
            say(printable(f"  not exercised: {decided_by_text(rule, rules.chosen.origins)}"))

    def mutations(self, rules: RulesUnderTest, found: Mutations) -> None:
        """Print how many mutants no test kills, and which."""
        for each in found.survivors:
            for line in _survivor_lines(each, rules.chosen.origins):
                say(printable(line))
        counted = found.killed + len(found.survivors)
        say(
            printable(
                f"{rules.chosen.source.name}: {found.killed:,} of {counted:,} mutants of rules fail a test; "
                f"{found.equivalent:,} change no decision, and do not count{only_on(found.only)}"
            )
        )

    def end(self, results: Sequence[FileResult]) -> None:
        """Print the summary."""
        outcomes = [outcome for result in results for outcome in result.outcomes]
        tests = {(result.path, outcome.case.test) for result in results for outcome in result.outcomes}
        failed = sum(not outcome.passed for outcome in outcomes)
        counts = f"{len(outcomes) - failed:,} passed" + (f", {failed:,} failed" if failed else "")
        say(f"{_count(len(outcomes), 'case')} of {_count(len(tests), 'test')}: {counts}")


def _file_lines(result: FileResult) -> Iterator[str]:
    failed = [outcome for outcome in result.outcomes if not outcome.passed]
    verdict = "ok" if not failed else f"{len(failed):,} failed"
    yield f"{result.path}: {_count(len(result.outcomes), 'case')}: {verdict}"
    for outcome in failed[:_SCREENS]:
        yield ""
        yield from failure_lines(outcome, result.rules.state)
    if len(failed) > _SCREENS:
        yield ""
        yield from map(_failed_line, failed[_SCREENS:_LINES])
    if len(failed) > _LINES:
        yield f"and {len(failed) - _LINES:,} more: --format jsonl has all"
    if failed:
        yield ""


def _failed_line(outcome: Outcome) -> str:
    case = outcome.case
    return f"FAILED {case.origin.file}:{case.origin.line}: {case.test}: {outcome.failures[0].found}"


def _survivor_lines(result: MutationResult, origins: Origins) -> Iterator[str]:
    mutant = result.mutant
    yield f"SURVIVED {mutant.mutation}: {decided_by_text(mutant.rule, origins)}"
    if mutant.becomes is not None:
        yield f"  becomes {acl_text(mutant.becomes)}"
    if result.changed is not None:
        what = "allows" if result.changed.direction.value == "GAINED" else "denies"
        yield f"  {what}, and no test fails: {request_text(witness(result.changed.region))}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
