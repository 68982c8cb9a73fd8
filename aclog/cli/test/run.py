"""Runs tests of rules, and prints what became of them."""

from collections.abc import Iterable

from aclog.analysis.rule_tests.coverage import coverage
from aclog.analysis.rule_tests.mutation_testing import MutationResult, mutant_count, mutation_results
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.authorizer.generation import Generation
from aclog.cli.test.flags import RunFlags
from aclog.cli.test.json_report import JsonReport
from aclog.cli.test.junit import write_junit
from aclog.cli.test.results import FileResult, Mutations
from aclog.cli.test.text_report import TextReport
from aclog.cli.testing import LoadedFile, RulesUnderTest, SelectedTests, load_tests
from aclog.terminal.notices import note
from aclog.terminal.progress import progress

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
            found = min(covered, key=lambda each: each.percent)
            report.coverage(rules, found, least=least, listed=flags.coverage)
            failed |= least is not None and found.percent < least
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
