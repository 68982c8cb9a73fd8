"""Results of tests as JSON lines (docs/testing-rules.md)."""

from collections.abc import Sequence

from attrs import define, field

from aclog.analysis.by_generation import generation_object
from aclog.analysis.regions.region_json import JsonObject
from aclog.analysis.rule_tests.coverage import Coverage
from aclog.analysis.rule_tests.outcome_json import mutant_object, outcome_object, stated_object
from aclog.cli.flags.output import Output
from aclog.cli.test.results import MOST_EXPLAINED, FileResult, Mutations
from aclog.cli.testing import RulesUnderTest
from aclog.terminal.columns import Column
from aclog.terminal.json_text import json_text
from aclog.terminal.output import emit
from aclog.terminal.output_format import OutputFormat

CASE_COLUMNS = (
    Column(key="verdict"),
    Column(key="file", cut=True),
    Column(key="line"),
    Column(key="test", cut=True),
    Column(key="case", cut=True),
    Column(key="failures", spare=True, flows=True, text=lambda found: "; ".join(each["found"] for each in found or ())),
)
"""Of a case."""


@define(eq=False)
class JsonReport:
    """Prints an object for each case, and for whatever else is measured; only cases are rows of tables.

    JSON lines come as the tests run, the other formats at the end.
    """

    _output: Output
    _told: list[JsonObject] = field(factory=list, init=False)

    def _tell(self, told: JsonObject) -> None:
        if self._output.form is OutputFormat.JSONL and not self._output.columns:
            emit(json_text(told))
        else:
            self._told.append(told)

    def file(self, result: FileResult) -> None:
        """Print the cases of a file."""
        failed = 0
        for outcome in result.outcomes:
            failed += not outcome.passed
            self._tell(outcome_object(outcome, result.rules, nearest=failed <= MOST_EXPLAINED))

    def coverage(self, rules: RulesUnderTest, found: Coverage, *, least: float | None, listed: bool) -> None:
        """Print how many rules of a source are exercised, and which are not."""
        uncovered = found.uncovered if listed or (least is not None and found.percent < least) else ()
        self._tell(
            {
                "coverage": round(found.percent, 2),
                "rules": found.rules,
                "source": rules.chosen.source.name,
                "uncovered": [stated_object(rule, rules.chosen.origins) for rule in uncovered],
            }
        )

    def mutations(self, rules: RulesUnderTest, found: Mutations) -> None:
        """Print the mutants that no test kills, and how many there are."""
        for each in found.survivors:
            self._tell(mutant_object(each, rules.chosen.origins))
        counts = {"killed": found.killed, "survived": len(found.survivors), "equivalent": found.equivalent}
        self._tell({"mutants": counts, "source": rules.chosen.source.name, **generation_object(found.only)})

    def end(self, results: Sequence[FileResult]) -> None:
        """Print how many cases there are, and how many fail."""
        outcomes = [outcome for result in results for outcome in result.outcomes]
        failed = sum(not outcome.passed for outcome in outcomes)
        self._tell({"cases": len(outcomes), "passed": len(outcomes) - failed, "failed": failed})
        if self._output.form is OutputFormat.JSON and not self._output.columns:
            self._output.print_rows(CASE_COLUMNS, self._told)
        elif self._told:
            self._output.print_rows(CASE_COLUMNS, [told for told in self._told if "case" in told])
