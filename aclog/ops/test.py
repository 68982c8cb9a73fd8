"""Tests of rules: the files, the rules that each is about, and what became of the cases."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from attrs import evolve, field

from aclog.analysis.policy import Policy, generation_object
from aclog.analysis.regions import JsonObject
from aclog.analysis.rule_tests.case import Case, Outcome, with_ids
from aclog.analysis.rule_tests.results import (
    Coverage,
    EachRun,
    MutationResult,
    TestedState,
    coverage,
    mutant_count,
    mutant_object,
    mutation_results,
    outcome_object,
    stated_object,
)
from aclog.authorizer.settings import Generation
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.ops.policies import policies_of, read_premises
from aclog.sources.choice import ChosenSource
from aclog.sources.named_source import NamedSource
from aclog.sources.repository import AuthorizerSettings, RepositorySettings
from aclog.sources.rule_tests import RuleTestFile, read_test_file
from aclog.terminal.notices import progress
from aclog.terminal.output import note


@define(eq=False, kw_only=True)
class RulesUnderTest:
    """The rules of one source under one authorizer's settings, and the cases about them."""

    choice: ChosenSource
    policies: Mapping[Generation, Policy]
    """By the generation of Kafka that may decide: a case must hold for each."""
    premises: Premises = ALL_KNOWN
    """What is unknown of its settings."""
    configs: frozenset[str] = frozenset()
    """The properties of brokers whose values these have."""
    is_kafka_named: bool = True
    """Whether a flag or a file names the Kafka that decides."""
    cases: list[Case] = field(factory=list)
    _state: TestedState | None = field(default=None, init=False)
    _run: EachRun = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._run = EachRun.of(self.policies, self.premises, self.configs)

    @property
    def policy(self) -> Policy:
        """The policy of the only generation, or of the oldest."""
        return next(iter(self.policies.values()))

    def run(self, case: Case) -> Outcome:
        """Return what became of a case: one that an unknown premise could turn does not pass. Raises as Case.run."""
        return self._run.run(case)

    @property
    def state(self) -> TestedState:
        """The rules as reports need them; made at the first use."""
        if self._state is None:
            place = self.choice.source.change_place
            numbered = {generation: with_ids(policy) for generation, policy in self.policies.items()}
            first, several = next(iter(numbered.values())), len(numbered) > 1
            self._state = TestedState(
                policy=first, policies=numbered if several else {}, origins=self.choice.origins, place=place
            )
        return self._state


@frozen(kw_only=True)
class LoadedFile:
    """A file of tests, those of its cases that are selected, and the rules that they are about."""

    file: RuleTestFile
    cases: tuple[Case, ...]
    rules: RulesUnderTest


ChooseRules: TypeAlias = Callable[[RepositorySettings], tuple[ChosenSource, RepositorySettings] | None]
"""Returns the rules to test where a file of tests names none, and their stated settings; or None."""


@frozen(kw_only=True)
class SelectedTests:
    """Which tests, on which rules."""

    files: Sequence[str]
    choose: ChooseRules
    source_wins: bool = False
    """Whether these rules are tested regardless of those that a file names."""
    settings_win: Collection[str] = ()
    """The settings of the authorizer that hold regardless of a file, by their names in AuthorizerSettings."""
    globs: Sequence[str] = ()
    """Names of tests; all tests if empty."""


def read_tests(selection: SelectedTests, settings: RepositorySettings) -> list[tuple[RuleTestFile, tuple[Case, ...]]]:
    """Return the files, each with the cases that are selected.

    Raises:
        ConfigError: no file is given, one is malformed, or no test has a name that is selected.
        OSError: a file cannot be read.

    """
    paths = list(dict.fromkeys(selection.files or settings.test.files))
    if not paths:
        raise ConfigError("no test is given: expected FILE..., or files under [test] in aclog.toml")
    tests = []
    for file in map(read_test_file, paths):
        cases = tuple(case for case in file.cases if _is_selected(case, selection.globs))
        if cases:
            tests.append((file, cases))
    if not tests:
        raise ConfigError(f"--run {' '.join(selection.globs)}: no test has such a name")
    return tests


def load_tests(selection: SelectedTests, settings: RepositorySettings) -> list[LoadedFile]:
    """Return the files with the rules that they are about.

    `settings`: those of aclog.toml, with what the caller gives instead; what a file states wins over them, unless the
    selection overrides that.

    Raises:
        ConfigError: as read_tests; or a file that names no rules, and there are no other rules.
        MetadataError, OSError: the rules cannot be read.

    """
    cache: dict[tuple[NamedSource | None, AuthorizerSettings], RulesUnderTest] = {}
    loaded = []
    for file, cases in read_tests(selection, settings):
        named = None if selection.source_wins else file.source
        chosen_settings = settings_for(file, selection.settings_win, settings)
        key = (named, chosen_settings.authorizer)
        if key not in cache:
            cache[key] = _rules(file, named, selection.choose, chosen_settings)
        cache[key].cases.extend(cases)
        loaded.append(LoadedFile(file=file, cases=cases, rules=cache[key]))
    return loaded


def _is_selected(case: Case, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(case.test, glob) for glob in globs)


def _rules(
    file: RuleTestFile, named: NamedSource | None, choose: ChooseRules, settings: RepositorySettings
) -> RulesUnderTest:
    if named is None:
        answer = choose(settings)
        if answer is None:
            raise ConfigError(
                f"{file.path}: which rules does it test? expected `rules:` in it, acls under [source] in aclog.toml, "
                "or a flag such as --acls PATH"
            )
        choice, settings = answer
    else:
        choice = named.open(note)
    image, stated = choice.image(), settings.authorizer
    configs = stated.configs()
    return RulesUnderTest(
        choice=choice,
        policies=policies_of(image, stated),
        premises=read_premises(choice, configs),
        configs=configs,
        is_kafka_named=stated.generation is not None,
    )


def settings_for(file: RuleTestFile, stated: Collection[str], settings: RepositorySettings) -> RepositorySettings:
    """Return settings with those that a file states, but those that are `stated` already, by name."""
    of_file = {
        name: value
        for name in ("super_users", "allow_everyone", "semantics", "cidr")
        if (value := getattr(file.settings, name)) is not None and name not in stated
    }
    return evolve(settings, authorizer=evolve(settings.authorizer, **of_file)) if of_file else settings


# Runs tests of rules.


MOST_EXPLAINED = 100
"""Failing cases of a file that are explained: more of them have one cause, which takes no more explanations."""


@frozen(kw_only=True)
class FileResult:
    """The outcomes of the cases of one file, in its order."""

    path: str
    rules: RulesUnderTest
    outcomes: tuple[Outcome, ...]

    @property
    def fails(self) -> bool:
        """Whether a case fails."""
        return any(not outcome.passed for outcome in self.outcomes)

    def objects(self) -> Iterator[JsonObject]:
        """Yield an object for each case."""
        failed = 0
        for outcome in self.outcomes:
            failed += not outcome.passed
            yield outcome_object(outcome, self.rules, nearest=failed <= MOST_EXPLAINED)


@frozen(kw_only=True)
class CoverageResult:
    """How many rules of a source are exercised by a test."""

    rules: RulesUnderTest
    result: Coverage
    least: float | None
    """In percent: fewer fail."""
    is_listed: bool
    """Whether all that no test exercises are part of the answer."""

    @property
    def fails(self) -> bool:
        """Whether fewer are exercised than the least."""
        return self.least is not None and self.result.percent < self.least

    def objects(self) -> Iterator[JsonObject]:
        """Yield one object, which has the rules that no test exercises if they are listed, or too many."""
        uncovered = self.result.uncovered if self.is_listed or self.fails else ()
        yield {
            "coverage": round(self.result.percent, 2),
            "rules": self.result.rules,
            "source": self.rules.choice.source.name,
            "uncovered": [stated_object(rule, self.rules.choice.origins) for rule in uncovered],
        }


@frozen(kw_only=True)
class MutationsResult:
    """What became of the mutants of all rules of a source."""

    rules: RulesUnderTest
    killed: int
    equivalent: int
    """Those that change no decision, and so are no mistakes."""
    survivors: tuple[MutationResult, ...]
    only: Generation | None = None
    """That of Kafka by which they were judged, if several may decide."""

    @property
    def fails(self) -> bool:
        """Whether a mutant survives."""
        return bool(self.survivors)

    def objects(self) -> Iterator[JsonObject]:
        """Yield the mutants that no test kills, and how many there are."""
        for each in self.survivors:
            yield mutant_object(each, self.rules.choice.origins)
        counts = {"killed": self.killed, "survived": len(self.survivors), "equivalent": self.equivalent}
        yield {"mutants": counts, "source": self.rules.choice.source.name, **generation_object(self.only)}


@frozen(kw_only=True)
class Measures:
    """What is measured besides the cases."""

    coverage: bool = False
    """Whether the rules that no test exercises are listed."""
    least: float | None = None
    """In percent: fail if fewer rules are exercised."""
    mutate: bool = False
    """Whether rules are removed, widened and flipped, to see whether a test fails."""


def run_files(loaded: Sequence[LoadedFile]) -> Iterator[FileResult]:
    """Run the tests of each file. Raises MetadataError, OSError: a state that a test compares with is unreadable."""
    for each in loaded:
        outcomes: list[Outcome] = []
        with progress(f"testing {each.file.path}", "tests") as advance:
            for case in each.cases:
                outcomes.append(each.rules.run(case))
                if len(outcomes) % 256 == 0:
                    advance(len(outcomes), len(each.cases))
        yield FileResult(path=each.file.path, rules=each.rules, outcomes=tuple(outcomes))


def measure(results: Sequence[FileResult], measures: Measures) -> Iterator[CoverageResult | MutationsResult]:
    """Measure the tests of each source of rules."""
    for rules in dict.fromkeys(each.rules for each in results):
        if measures.coverage or measures.least is not None:
            covered = [coverage(policy, rules.cases) for policy in rules.policies.values()]
            lowest = min(covered, key=lambda each: each.percent)
            yield CoverageResult(rules=rules, result=lowest, least=measures.least, is_listed=measures.coverage)
        if measures.mutate:
            for generation in rules.policies:
                yield _mutate(rules, [each for each in results if each.rules is rules], generation)


def summary_object(results: Sequence[FileResult]) -> JsonObject:
    """Return how many cases there are, and how many fail."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    return {"cases": len(outcomes), "passed": len(outcomes) - failed, "failed": failed}


def _mutate(rules: RulesUnderTest, results: Iterable[FileResult], generation: Generation) -> MutationsResult:
    """Judge all mutants by the cases that hold, as one of the generations of Kafka that may decide does."""
    state = rules.state
    policy = state.policies.get(generation, state.policy)
    outcomes = [outcome for result in results for outcome in result.outcomes]
    holding = [outcome.case for outcome in outcomes if outcome.passed]
    if len(holding) < len(outcomes):
        note("--mutate: tests that fail already are left out: they detect no mutant")
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
    return MutationsResult(rules=rules, killed=killed, equivalent=equivalent, survivors=tuple(survivors), only=only)
