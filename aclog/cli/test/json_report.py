"""Results of tests as JSON lines (docs/testing-rules.md)."""

from collections.abc import Sequence

from aclog.analysis.rule_tests.coverage import Coverage
from aclog.analysis.rule_tests.outcome_json import mutant_object, outcome_object, stated_object
from aclog.cli.test.results import MOST_EXPLAINED, FileResult, Mutations
from aclog.cli.testing import RulesUnderTest
from aclog.terminal.json_text import json_text
from aclog.terminal.output import emit


class JsonReport:
    """Prints an object for each case, and for whatever else is measured."""

    def file(self, result: FileResult) -> None:
        """Print the cases of a file."""
        failed = 0
        for outcome in result.outcomes:
            failed += not outcome.passed
            emit(json_text(outcome_object(outcome, result.rules, nearest=failed <= MOST_EXPLAINED)))

    def coverage(self, rules: RulesUnderTest, found: Coverage, *, least: float | None, listed: bool) -> None:
        """Print how many rules of a source are exercised, and which are not."""
        uncovered = found.uncovered if listed or (least is not None and found.percent < least) else ()
        emit(
            json_text(
                {
                    "coverage": round(found.percent, 2),
                    "rules": found.rules,
                    "source": rules.chosen.source.name,
                    "uncovered": [stated_object(rule, rules.chosen.origins) for rule in uncovered],
                }
            )
        )

    def mutations(self, rules: RulesUnderTest, found: Mutations) -> None:
        """Print the mutants that no test kills, and how many there are."""
        for each in found.survivors:
            emit(json_text(mutant_object(each, rules.chosen.origins)))
        counts = {"killed": found.killed, "survived": len(found.survivors), "equivalent": found.equivalent}
        emit(json_text({"mutants": counts, "source": rules.chosen.source.name}))

    def end(self, results: Sequence[FileResult]) -> None:
        """Print how many cases there are, and how many fail."""
        outcomes = [outcome for result in results for outcome in result.outcomes]
        failed = sum(not outcome.passed for outcome in outcomes)
        emit(json_text({"cases": len(outcomes), "passed": len(outcomes) - failed, "failed": failed}))
