"""`aclog test`: runs tests of rules, prints what they find, and records tests of the present decisions."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import yaml
from attrs import field

from aclog.analysis.policy import Policy, is_allowed, only_on
from aclog.analysis.regions import JsonObject, Request, witness
from aclog.analysis.rows.report import decided_by_text, request_text
from aclog.analysis.rule_tests.case import Outcome
from aclog.analysis.rule_tests.recording import (
    Removal,
    TestObject,
    tests_of_accesses,
    tests_of_removals,
    tests_of_state,
)
from aclog.analysis.rule_tests.results import MutationResult, failure_lines
from aclog.authorizer.acl import Origins, acl_text
from aclog.authorizer.settings import Generation
from aclog.cli.flags.commands import RecordFlags, RunFlags
from aclog.cli.flags.common import AuthorizerFlags, Output, check_one_stdin
from aclog.cli.flags.repository import RepositoryFlags, authorizer_flags, rules_of
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError, MetadataError, plural, printable
from aclog.metalog.values import define, frozen
from aclog.ops.policies import policies_of, read_premises
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
from aclog.snapshots.deciding_kafka import range_hosts
from aclog.snapshots.history import ChangeKind
from aclog.snapshots.image import Image
from aclog.sources.accesses import read_accesses
from aclog.sources.acl_lines import STDIN
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.sources.formats.format import AclsFormat
from aclog.sources.logs import LogSource, history_of
from aclog.sources.repository import RepositorySettings
from aclog.sources.rule_tests import read_yaml_cases
from aclog.terminal.columns import Column, OutputFormat, json_text
from aclog.terminal.output import emit, note, say, utc_text, warn

# Runs tests of ACLs, and reports their outcomes.


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


# `aclog test --record`: writes tests of the present decisions.


_WIDTH = 120
_PLAIN = re.compile(r"[A-Za-z-]+:[A-Za-z0-9._-]+[*]?|[A-Za-z]+:[*]")
"""Resources and principals that need no quotes in a list of YAML."""


def record_tests(flags: RecordFlags, source: SourceFlags, repository: RepositoryFlags) -> None:
    """Write the tests that the flags select. Raises as Recording.write; ConfigError: no source is given."""
    rules, settings = rules_of(source, repository.load())
    if not rules.is_given():
        raise ConfigError("--record: which rules? expected a flag such as --acls PATH or --log DIR")
    check_one_stdin({**rules.files(), "--accesses": flags.accesses})
    assert flags.record is not None  # noqa: S101  # checked by RecordFlags.is_given
    authorizer = authorizer_flags(settings)
    choice = rules.choose()
    recording = Recording(path=flags.record, choice=choice, authorizer=authorizer, accesses=flags.accesses)
    recording.check()
    read_premises(choice, authorizer.configs())
    recording.write()


@frozen(kw_only=True)
class Recording:
    """What is recorded, and where to."""

    path: Path
    choice: ChosenSource
    authorizer: AuthorizerFlags
    accesses: str | None
    """Accesses to record instead of the state."""

    def check(self) -> None:
        """Refuse to overwrite, before anything is read. Raises ConfigError."""
        if self.path.exists() or self.path.is_symlink():
            raise ConfigError(f"--record {self.path}: it exists already: expected a new file")
        if not self.path.parent.is_dir():
            raise ConfigError(f"--record {self.path}: no such directory: {self.path.parent}")

    def write(self) -> None:
        """Write the tests; all of them hold, on each generation of Kafka that may decide.

        Raises:
            ConfigError: the file exists, there is nothing to record, or the accesses are malformed.
            MetadataError, OSError: the source cannot be read, or the file not written.

        """
        self.check()
        image = self.choice.image()
        policies = policies_of(image, self.authorizer)
        tests, left_out = self._tests_of_all(policies, image)
        if not tests:
            raise ConfigError(f"{self.choice.source.name}: nothing to record")
        head, keys = self._head(image), self._file_keys(policies)
        content = f"{head}{_yaml({**keys, 'tests': tests})}"
        for policy in policies.values():
            for name, what in _failing(content, policy).items():
                raise MetadataError(f"a recorded test does not hold, which is a bug of aclog: {name}: {what}")
        _write_new(self.path, content)
        for name in left_out:
            note(printable(f"{self.path}: left out, as it does not hold on each Kafka that may decide: {name}"))
        say(printable(f"{self.path}: {len(tests):,} test{'' if len(tests) == 1 else 's'} recorded"))

    def _tests_of_all(self, policies: Mapping[Generation, Policy], image: Image) -> tuple[list[TestObject], list[str]]:
        """Return the tests that hold on each Kafka that may decide, and what is left out since it does not."""
        accesses, left_out = self._accesses(), dict[str, None]()
        if accesses is not None and len(policies) > 1:
            unlike = [each for each in accesses if len({is_allowed(own, each) for own in policies.values()}) > 1]
            left_out = dict.fromkeys(map(request_text, unlike))
            accesses = [each for each in accesses if request_text(each) not in left_out]
        of_each = [list(self._tests(policy, image, accesses)) for policy in policies.values()]
        if len(policies) == 1:
            return of_each[0], []
        tests = dict[str, TestObject]()
        for candidates in of_each:
            content = _yaml({"tests": candidates}) if candidates else ""
            failing = {name for policy in policies.values() if candidates for name in _failing(content, policy)}
            tests |= {json_text(each): each for each in candidates if each["name"] not in failing}
            left_out |= dict.fromkeys(sorted(failing))
        names = {str(each["name"]) for each in tests.values()}
        return list(tests.values()), [name for name in left_out if name not in names]

    def _accesses(self) -> Sequence[Request] | None:
        """Return the accesses to record; None: the state is recorded instead."""
        if self.accesses is None:
            return None
        accesses = read_accesses(self.accesses)
        if accesses.malformed:
            warn(f"{self.accesses}: {plural(accesses.malformed, 'line')} skipped: no accesses")
        return list(accesses.counts)

    def _tests(self, policy: Policy, image: Image, accesses: Sequence[Request] | None) -> Iterator[TestObject]:
        yield from tests_of_state(policy) if accesses is None else tests_of_accesses(policy, accesses)
        yield from tests_of_removals(policy, self._removals(image))

    def _removals(self, image: Image) -> Iterator[Removal]:
        if self.choice.source.log is None:
            return
        for change in history_of(self.choice.source).changes:
            if change.end_offset > image.end_offset:
                return
            if change.kind is ChangeKind.REMOVED:
                when = f"offset {change.offset}, {utc_text(change.timestamp)}"
                yield Removal(acl=change.rule.acl, when=when)

    def _head(self, image: Image) -> str:
        place = f", end offset {image.end_offset}" if self.choice.source.log is not None else ""
        what = "accesses, as they are decided" if self.accesses is not None else "what is decided"
        name = printable(self.choice.source.name)
        return f"# Recorded by aclog {version('aclog')} from {name}{place}: {what}.\n"

    def _file_keys(self, policies: Mapping[Generation, Policy]) -> dict[str, object]:
        """Return the source, if it is a path that others have as well, and the settings that are not the default.

        Without a Kafka if several may decide: the tests hold on each.
        """
        policy = next(iter(policies.values()))
        keys: dict[str, object] = {}
        source = self.choice.source
        is_stream = isinstance(source, AclsSource) and (source.is_ref or source.path == STDIN)
        if self.choice.as_of is None and isinstance(source, AclsSource | LogSource) and not is_stream:
            path = os.path.relpath(source.name, self.path.parent)
            keys["rules"] = _named(source, path, self.path.parent)
        settings = policy.settings
        if settings.super_users:
            keys["super-users"] = sorted(settings.super_users)
        if settings.allow_everyone:
            keys["allow-everyone-if-no-acl-found"] = True
        if settings.documented:
            keys["semantics"] = "documented"
        if len(policies) == 1 and (settings.cidr or next(range_hosts(policy.acls), None) is not None):
            keys["cidr"] = settings.cidr
        return keys


def _named(source: AclsSource | LogSource, path: str, directory: Path) -> object:
    """Return a source as a file in a directory names it (aclog.sources.named_source)."""
    if isinstance(source, LogSource):
        return {"log": path}
    options = source.options
    if options.form is AclsFormat.AUTO and not options.modules:
        return path
    modules = {name: os.path.relpath(each, directory) for name, each in options.modules.items()}
    return {"acls": path, "format": options.form.value, **({"modules": modules} if modules else {})}


class _Dumper(yaml.SafeDumper):
    """Writes equal lists out each time: an alias does not help a reader."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # of SafeDumper
        """Return True: for nothing."""
        return True

    def analyze_scalar(self, scalar: str) -> Any:
        """Omit redundant quotes: the library is stricter than YAML about colons in a list."""
        analysis = super().analyze_scalar(scalar)
        if _PLAIN.fullmatch(scalar):
            analysis.allow_flow_plain = True
        return analysis


def _yaml(value: dict[str, object]) -> str:
    def dumped(*, allow_unicode: bool) -> str:
        return str(
            yaml.dump(
                value,
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=allow_unicode,
                default_flow_style=None,
                width=_WIDTH,
            )
        )

    text = dumped(allow_unicode=True)
    # Marks that turn the direction of a line would make it read differently.
    return text if text.replace("\n", "").isprintable() else dumped(allow_unicode=False)


def _failing(content: str, policy: Policy) -> dict[str, str]:
    """Read the tests as `aclog test` will, and run them; return what is the case instead, by the name of a test."""
    failing = dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="aclog-") as directory:
        path = Path(directory, "recorded.yaml")
        path.write_text(content, encoding="utf-8")
        for case in read_yaml_cases(str(path)).cases:
            outcome = case.run(policy)
            if not outcome.passed:
                failing.setdefault(case.test, f"{case.text}: {outcome.failures[0].actual}")
    return failing


def _write_new(path: Path, content: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError as error:
        raise ConfigError(f"--record {path}: it exists already: expected a new file") from error
