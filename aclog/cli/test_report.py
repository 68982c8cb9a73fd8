"""Runs tests of ACLs, and reports their outcomes."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from attrs import define, field, frozen

from aclog.analysis.policy import generation_object, only_on
from aclog.analysis.regions import JsonObject, witness
from aclog.analysis.rows.report import decided_by_text, request_text
from aclog.analysis.rule_tests.case import Outcome
from aclog.analysis.rule_tests.mutation import Coverage, MutationResult, coverage, mutant_count, mutation_results
from aclog.analysis.rule_tests.report import failure_lines, mutant_object, outcome_object, stated_object
from aclog.authorizer.acl import acl_text
from aclog.authorizer.origin import Origins
from aclog.authorizer.settings import Generation
from aclog.cli.flags.commands import RunFlags
from aclog.cli.flags.common import Output
from aclog.cli.testing import LoadedFile, RulesUnderTest, SelectedTests, load_tests
from aclog.metalog.errors import printable
from aclog.terminal.columns import Column, OutputFormat, json_text
from aclog.terminal.output import emit, note, say
from aclog.terminal.progress import progress

# What `aclog test` found.


MOST_EXPLAINED = 100
"""Failing cases of a file that are explained: more of them have one cause, which takes no more explanations."""


@frozen(kw_only=True)
class FileResult:
    """The outcomes of the cases of one file, in its order."""

    path: str
    rules: RulesUnderTest
    outcomes: tuple[Outcome, ...]


@frozen(kw_only=True)
class Mutations:
    """What became of the mutants of all rules."""

    killed: int
    equivalent: int
    """Those that change no decision, and so are no mistakes."""
    survivors: tuple[MutationResult, ...]
    only: Generation | None = None
    """That of Kafka by which they were judged, if several may decide."""


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
    """Prints an object for each case, and for whatever else is measured; only cases are rows of tables.

    JSON lines come as the tests run, the other formats at the end.
    """

    _output: Output
    _objects: list[JsonObject] = field(factory=list, init=False)

    def _tell(self, item: JsonObject) -> None:
        if self._output.form is OutputFormat.JSONL and not self._output.columns:
            emit(json_text(item))
        else:
            self._objects.append(item)

    def file(self, result: FileResult) -> None:
        """Print the cases of a file."""
        failed = 0
        for outcome in result.outcomes:
            failed += not outcome.passed
            self._tell(outcome_object(outcome, result.rules, nearest=failed <= MOST_EXPLAINED))

    def coverage(self, rules: RulesUnderTest, result: Coverage, *, least: float | None, listed: bool) -> None:
        """Print how many rules of a source are exercised, and which are not."""
        uncovered = result.uncovered if listed or (least is not None and result.percent < least) else ()
        self._tell(
            {
                "coverage": round(result.percent, 2),
                "rules": result.rules,
                "source": rules.choice.source.name,
                "uncovered": [stated_object(rule, rules.choice.origins) for rule in uncovered],
            }
        )

    def mutations(self, rules: RulesUnderTest, result: Mutations) -> None:
        """Print the mutants that no test kills, and how many there are."""
        for each in result.survivors:
            self._tell(mutant_object(each, rules.choice.origins))
        counts = {"killed": result.killed, "survived": len(result.survivors), "equivalent": result.equivalent}
        self._tell({"mutants": counts, "source": rules.choice.source.name, **generation_object(result.only)})

    def end(self, results: Sequence[FileResult]) -> None:
        """Print how many cases there are, and how many fail."""
        outcomes = [outcome for result in results for outcome in result.outcomes]
        failed = sum(not outcome.passed for outcome in outcomes)
        self._tell({"cases": len(outcomes), "passed": len(outcomes) - failed, "failed": failed})
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

    def file(self, result: FileResult) -> None:
        """Print what became of a file."""
        for line in _file_lines(result):
            say(printable(line))

    def coverage(self, rules: RulesUnderTest, result: Coverage, *, least: float | None, listed: bool) -> None:
        """Print how many rules of a source are exercised, and which are not."""
        covered = result.rules - len(result.uncovered)
        too_few = least is not None and result.percent < least
        less = f"; at least {least:g}% are expected" if too_few else ""
        say(
            printable(
                f"{rules.choice.source.name}: {covered:,} of {result.rules:,} rules are exercised by a test "
                f"({result.percent:.1f}%){less}"
            )
        )
        for rule in result.uncovered if listed or too_few else ():
            say(printable(f"  not exercised: {decided_by_text(rule, rules.choice.origins)}"))

    def mutations(self, rules: RulesUnderTest, result: Mutations) -> None:
        """Print how many mutants no test kills, and which."""
        for each in result.survivors:
            for line in _survivor_lines(each, rules.choice.origins):
                say(printable(line))
        counted = result.killed + len(result.survivors)
        say(
            printable(
                f"{rules.choice.source.name}: {result.killed:,} of {counted:,} mutants of rules fail a test; "
                f"{result.equivalent:,} change no decision, and do not count{only_on(result.only)}"
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
    return f"FAILED {case.origin.file}:{case.origin.line}: {case.test}: {outcome.failures[0].actual}"


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


# Runs tests of rules, and prints what became of them.


PASSED, FAILED = 0, 1
"""Exit codes."""


def run_tests(selection: SelectedTests, flags: RunFlags) -> int:
    """Run the selected tests and print the results; return the exit code.

    Raises:
        ConfigError: flags, settings or tests that are not valid; or no test.
        MetadataError, OSError: a file or a source cannot be read.

    """
    output = flags.output()
    settings = selection.repository.load()
    loaded = load_tests(selection, settings)
    report = JsonReport(output) if output.is_rows else TextReport()
    least = settings.test.min_coverage if flags.min_coverage is None else flags.min_coverage
    results = []
    for each in loaded:
        results.append(_run_file(each))
        report.file(results[-1])
    failed = any(not outcome.passed for result in results for outcome in result.outcomes)
    if flags.junit is not None:
        write_junit(flags.junit, results)
    for rules in dict.fromkeys(each.rules for each in loaded):
        if flags.coverage or least is not None:
            covered = [coverage(policy, rules.cases) for policy in rules.policies.values()]
            lowest = min(covered, key=lambda each: each.percent)
            report.coverage(rules, lowest, least=least, listed=flags.coverage)
            failed |= least is not None and lowest.percent < least
        if flags.mutate:
            for generation in rules.policies:
                mutations = _mutate(rules, [each for each in results if each.rules is rules], generation)
                report.mutations(rules, mutations)
                failed |= bool(mutations.survivors)
    report.end(results)
    return FAILED if failed else PASSED


def _run_file(loaded: LoadedFile) -> FileResult:
    outcomes: list[Outcome] = []
    with progress(f"testing {loaded.file.path}", "tests") as advance:
        for case in loaded.cases:
            outcomes.append(loaded.rules.run(case))
            if len(outcomes) % 256 == 0:
                advance(len(outcomes), len(loaded.cases))
    return FileResult(path=loaded.file.path, rules=loaded.rules, outcomes=tuple(outcomes))


def _mutate(rules: RulesUnderTest, results: Iterable[FileResult], generation: Generation) -> Mutations:
    """Judge all mutants by the cases that hold, as one of the generations of Kafka that may decide does."""
    state = rules.state
    policy = state.policies.get(generation, state.policy)
    outcomes = [outcome for result in results for outcome in result.outcomes]
    holding = [outcome.case for outcome in outcomes if outcome.passed]
    if len(holding) < len(outcomes):
        note("--mutate: tests that fail already are left out: they tell nothing of a mutant")
    total, killed, equivalent = mutant_count(policy), 0, 0
    survivors: list[MutationResult] = []
    with progress("mutating rules", "mutants") as advance:
        for done, result in enumerate(mutation_results(policy, holding), 1):
            if result is None:
                equivalent += 1
            elif result.killed:
                killed += 1
            else:
                survivors.append(result)
            advance(done, total)
    only = generation if state.policies else None
    return Mutations(killed=killed, equivalent=equivalent, survivors=tuple(survivors), only=only)
