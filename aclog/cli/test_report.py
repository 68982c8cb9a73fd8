"""Runs tests of ACLs, and reports their outcomes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from attrs import define, field, frozen

from aclog.analysis.policy import only_on
from aclog.analysis.regions import JsonObject, witness
from aclog.analysis.rows.report import decided_by_text, request_text
from aclog.analysis.rule_tests.case import Outcome
from aclog.analysis.rule_tests.mutation import MutationResult
from aclog.analysis.rule_tests.report import failure_lines
from aclog.authorizer.acl import acl_text
from aclog.authorizer.origin import Origins
from aclog.cli.flags.commands import RunFlags
from aclog.cli.flags.common import Output, check_one_stdin
from aclog.cli.flags.repository import RepositoryFlags, rules_of
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import plural, printable
from aclog.ops.test import (
    MOST_EXPLAINED,
    CoverageResult,
    FileResult,
    LoadedFile,
    Measures,
    MutationsResult,
    SelectedTests,
    load_tests,
    measure,
    run_files,
    summary_object,
)
from aclog.sources.acl_lines import STDIN
from aclog.sources.choice import ChosenSource
from aclog.sources.repository import RepositorySettings
from aclog.terminal.columns import Column, OutputFormat, json_text
from aclog.terminal.output import emit, say

# Which tests the flags of a command select.


@frozen(kw_only=True)
class SelectingFlags:
    """The flags that select tests, and the rules that they are about."""

    files: Sequence[str]
    source: SourceFlags
    repository: RepositoryFlags
    globs: Sequence[str] = ()
    """Names of tests; all tests if empty."""

    def load(self, settings: RepositorySettings) -> list[LoadedFile]:
        """Return the files with the rules that they are about. Raises as aclog.ops.test.load_tests.

        A source that flags name wins over a file's `rules`, and these over aclog.toml; so do the settings of the
        authorizer. `settings`: those of aclog.toml, with what flags give instead.
        """
        reads_stdin = STDIN in (self.files or settings.test.files)
        check_one_stdin({**self.source.files(), "FILE": STDIN if reads_stdin else None})
        selection = SelectedTests(
            files=self.files,
            choose=self._choose,
            source_wins=self.source.is_given(),
            settings_win=self.repository.overrides(),
            globs=self.globs,
        )
        return load_tests(selection, settings)

    def _choose(self, settings: RepositorySettings) -> tuple[ChosenSource, RepositorySettings] | None:
        rules, settings = rules_of(self.source, settings)
        return (rules.choose(), settings) if rules.is_given() else None


# Results of tests as JSON lines (docs/testing-rules.md).


CASE_COLUMNS = (
    Column(key="verdict"),
    Column(key="file", cut=True),
    Column(key="line"),
    Column(key="test", cut=True),
    Column(key="case", cut=True),
    Column(
        key="failures",
        spare=True,
        flows=True,
        text=lambda failures: "; ".join(each["found"] for each in failures or ()),
    ),
)
"""Of a case."""


@define(eq=False)
class JsonReport:
    """Prints an object for each case, and for each other measurement; only cases are rows of tables.

    JSON lines come as the tests run, the other formats at the end.
    """

    _output: Output
    _objects: list[JsonObject] = field(factory=list, init=False)

    def _tell(self, item: JsonObject) -> None:
        if self._output.form is OutputFormat.JSONL and not self._output.columns:
            emit(json_text(item))
        else:
            self._objects.append(item)

    def tell(self, result: FileResult | CoverageResult | MutationsResult) -> None:
        """Print the objects of a result."""
        for each in result.objects():
            self._tell(each)

    def end(self, results: Sequence[FileResult]) -> None:
        """Print how many cases there are, and how many fail."""
        self._tell(summary_object(results))
        if self._output.form is OutputFormat.JSON and not self._output.columns:
            self._output.print_rows(CASE_COLUMNS, self._objects)
        elif self._objects:
            self._output.print_rows(CASE_COLUMNS, [item for item in self._objects if "case" in item])


# Results of tests as JUnit XML, which CI systems show.


def write_junit(path: Path, results: Sequence[FileResult]) -> None:
    """Write a suite for each file, with a test case for each case. Raises OSError."""
    root = ET.Element("testsuites", _counts(results))
    for result in results:
        failed = 0
        suite = ET.SubElement(root, "testsuite", {"name": printable(result.path), **_counts([result])})
        for outcome in result.outcomes:
            case = outcome.case
            element = ET.SubElement(
                suite,
                "testcase",
                {
                    "name": printable(f"{case.test}: {case.text}"),
                    "classname": printable(result.path),
                    "file": printable(case.origin.file),
                    "line": str(case.origin.line),
                },
            )
            if not outcome.passed:
                message = printable(outcome.failures[0].actual)
                failure = ET.SubElement(element, "failure", {"message": message, "type": "failure"})
                failed += 1
                if failed <= MOST_EXPLAINED:
                    failure.text = "\n".join(map(printable, failure_lines(outcome, result.rules.state)))
    ET.indent(root)
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _counts(results: Sequence[FileResult]) -> dict[str, str]:
    outcomes = [outcome for result in results for outcome in result.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    return {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0"}


# Results of tests as text: a line for each file, a screen for each case that fails, and a summary.


_SCREENS = 20
"""Failing cases of a file that are shown whole; of the others a line each."""
_LINES = 1000
"""Failing cases of a file that are shown at all."""


class TextReport:
    """Prints results for people, as they come."""

    def tell(self, result: FileResult | CoverageResult | MutationsResult) -> None:
        """Print what became of a file, how many rules are exercised, or how many mutants no test kills."""
        if isinstance(result, FileResult):
            lines = _file_lines(result)
        elif isinstance(result, CoverageResult):
            lines = _coverage_lines(result)
        else:
            lines = _mutation_lines(result)
        for line in lines:
            say(printable(line))

    def end(self, results: Sequence[FileResult]) -> None:
        """Print the summary."""
        outcomes = [outcome for result in results for outcome in result.outcomes]
        tests = {(result.path, outcome.case.test) for result in results for outcome in result.outcomes}
        failed = sum(not outcome.passed for outcome in outcomes)
        counts = f"{len(outcomes) - failed:,} passed" + (f", {failed:,} failed" if failed else "")
        say(f"{plural(len(outcomes), 'case')} of {plural(len(tests), 'test')}: {counts}")


def _coverage_lines(result: CoverageResult) -> Iterator[str]:
    covered, total = result.result.rules - len(result.result.uncovered), result.result.rules
    less = f"; at least {result.least:g}% are expected" if result.fails else ""
    source = result.rules.choice.source.name
    yield f"{source}: {covered:,} of {total:,} rules are exercised by a test ({result.result.percent:.1f}%){less}"
    for rule in result.result.uncovered if result.is_listed or result.fails else ():
        yield f"  not exercised: {decided_by_text(rule, result.rules.choice.origins)}"


def _mutation_lines(result: MutationsResult) -> Iterator[str]:
    for each in result.survivors:
        yield from _survivor_lines(each, result.rules.choice.origins)
    counted = result.killed + len(result.survivors)
    yield (
        f"{result.rules.choice.source.name}: {result.killed:,} of {counted:,} mutants of rules fail a test; "
        f"{result.equivalent:,} change no decision, and do not count{only_on(result.only)}"
    )


def _file_lines(result: FileResult) -> Iterator[str]:
    failed = [outcome for outcome in result.outcomes if not outcome.passed]
    verdict = "ok" if not failed else f"{len(failed):,} failed"
    yield f"{result.path}: {plural(len(result.outcomes), 'case')}: {verdict}"
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
    return f"FAILED {case.origin.file}:{case.origin.line}: {case.test}: {outcome.failures[0].actual}"


def _survivor_lines(result: MutationResult, origins: Origins) -> Iterator[str]:
    mutant = result.mutant
    yield f"SURVIVED {mutant.mutation}: {decided_by_text(mutant.rule, origins)}"
    if mutant.becomes is not None:
        yield f"  becomes {acl_text(mutant.becomes)}"
    if result.changed is not None:
        what = "allows" if result.changed.direction.value == "GAINED" else "denies"
        yield f"  {what}, and no test fails: {request_text(witness(result.changed.region))}"


# Runs tests of rules, and prints their results.


PASSED, FAILED = 0, 1
"""Exit codes."""


def run_tests(selection: SelectingFlags, flags: RunFlags) -> int:
    """Run the selected tests and print the results; return the exit code.

    Raises:
        ConfigError: flags, settings or tests that are not valid; or no test.
        MetadataError, OSError: a file or a source cannot be read.

    """
    output = flags.output()
    settings = selection.repository.load()
    loaded = selection.load(settings)
    report = JsonReport(output) if output.is_rows else TextReport()
    results = []
    for result in run_files(loaded):
        results.append(result)
        report.tell(result)
    if flags.junit is not None:
        write_junit(flags.junit, results)
    least = settings.test.min_coverage if flags.min_coverage is None else flags.min_coverage
    measures = Measures(coverage=flags.coverage, least=least, mutate=flags.mutate)
    failed = any(result.fails for result in results)
    for measured in measure(results, measures):
        report.tell(measured)
        failed |= measured.fails
    report.end(results)
    return FAILED if failed else PASSED
