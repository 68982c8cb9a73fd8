"""Loads tests of rules for commands, with the rules that each file is about."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from attrs import define, evolve, field, frozen

from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case import Case, Outcome, with_ids
from aclog.analysis.rule_tests.report import EachRun, TestedState
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Generation
from aclog.cli.flags.common import check_one_stdin
from aclog.cli.flags.repository import RepositoryFlags, authorizer_flags, rules_of
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError
from aclog.ops.policies import policies_of, read_premises
from aclog.sources.acl_lines import STDIN
from aclog.sources.choice import ChosenSource
from aclog.sources.named_source import NamedSource
from aclog.sources.repository import AuthorizerSettings, RepositorySettings
from aclog.sources.rule_tests import RuleTestFile, read_test_file
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
        """What reports know of the rules; made when it is first asked for."""
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


@frozen(kw_only=True)
class SelectedTests:
    """Which tests, on which rules."""

    files: Sequence[str]
    source: SourceFlags
    repository: RepositoryFlags
    globs: Sequence[str] = ()
    """Names of tests; all of them if there is none."""


def read_tests(selection: SelectedTests, settings: RepositorySettings) -> list[tuple[RuleTestFile, tuple[Case, ...]]]:
    """Return the files, each with the cases that are selected.

    Raises:
        ConfigError: no file is given, one is malformed, or no test has a name that is selected.
        OSError: a file cannot be read.

    """
    paths = list(dict.fromkeys(selection.files or settings.test.files))
    if not paths:
        raise ConfigError("no test is given: expected FILE..., or files under [test] in aclog.toml")
    check_one_stdin({**selection.source.files(), "FILE": STDIN if STDIN in paths else None})
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

    A source that flags name wins over a file's `rules`, and these over aclog.toml; so do the settings of the
    authorizer. `settings`: those of aclog.toml, with what flags give instead.

    Raises:
        ConfigError: as read_tests; or a file that says nothing of its rules, and nothing else does.
        MetadataError, OSError: the rules cannot be read.

    """
    cache: dict[tuple[NamedSource | None, AuthorizerSettings], RulesUnderTest] = {}
    loaded = []
    for file, cases in read_tests(selection, settings):
        named = None if selection.source.is_given() else file.source
        chosen_settings = settings_for(file, selection.repository, settings)
        key = (named, chosen_settings.authorizer)
        if key not in cache:
            cache[key] = _rules(file, named, selection.source, chosen_settings)
        cache[key].cases.extend(cases)
        loaded.append(LoadedFile(file=file, cases=cases, rules=cache[key]))
    return loaded


def _is_selected(case: Case, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(case.test, glob) for glob in globs)


def _rules(
    file: RuleTestFile, named: NamedSource | None, source: SourceFlags, settings: RepositorySettings
) -> RulesUnderTest:
    if named is None:
        rules, settings = rules_of(source, settings)
        if not rules.is_given():
            raise ConfigError(
                f"{file.path}: which rules does it test? expected `rules:` in it, acls under [source] in aclog.toml, "
                "or a flag such as --acls PATH"
            )
        choice = rules.choose()
    else:
        choice = named.open(note)
    image, flags = choice.image(), authorizer_flags(settings)
    configs = flags.configs()
    return RulesUnderTest(
        choice=choice,
        policies=policies_of(image, flags),
        premises=read_premises(choice, configs),
        configs=configs,
        is_kafka_named=flags.generation is not None,
    )


def settings_for(file: RuleTestFile, flags: RepositoryFlags, settings: RepositorySettings) -> RepositorySettings:
    """Return settings with those that a file states, unless a flag states them."""
    overrides = flags.overrides()
    stated = {
        name: value
        for name in ("super_users", "allow_everyone", "semantics", "cidr")
        if (value := getattr(file.settings, name)) is not None and name not in overrides
    }
    return evolve(settings, authorizer=evolve(settings.authorizer, **stated)) if stated else settings
