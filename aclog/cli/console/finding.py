"""What looks for findings in the console: the finders that flags ask for, and the thread that uses them."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import define, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.origin import Origin, Origins
from aclog.cli.console.finders.draft_tests import DraftTests
from aclog.cli.console.finders.drift import DriftFinder
from aclog.cli.console.finders.lint import LintFinder
from aclog.cli.console.finders.placed import PlacedFinder
from aclog.cli.console.finders.tests import TestsFinder
from aclog.cli.console.flags import FindingsFlags
from aclog.cli.flags.accesses import given_accesses
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.gap import gap_us
from aclog.cli.flags.place import place_address
from aclog.cli.flags.plan import WantFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.usage_extra import need_usage_extra
from aclog.console.draft.drafts import Drafts
from aclog.console.findings.item import Kind
from aclog.console.findings.looked import Finder
from aclog.console.findings.lookout import Lookout
from aclog.console.pages.states import NotReadyError, State, States
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import ChosenSource
from aclog.sources.name_file import NameFile
from aclog.sources.paths import LogSource
from aclog.sources.repository.loading import load_repository_settings
from aclog.sources.text_lines import STDIN
from aclog.usage.window import check_days

_LACKING = {
    Kind.UNUSED: "nobody told of accesses: --index DIR or --accesses PATH tells",
    Kind.DRIFT: "nobody told what is wanted: --want PATH and --journal FILE tell",
    Kind.TESTS: "there are no tests: --tests FILE names some",
}


@frozen(eq=False)
class SourceOrigins:
    """Where the rules of a source stand, once it is read."""

    chosen: ChosenSource

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every place that states a rule."""
        return self.chosen.origins.of(acl)


@define(eq=False, kw_only=True)
class Finding:
    """What finders are made of."""

    source: SourceFlags
    flags: FindingsFlags
    authorizer: AuthorizerFlags
    chosen: ChosenSource
    """What the console shows."""
    topics: NameFile | None = None
    """Those of --topics."""
    pause: Pause = no_pause
    """Called again and again by what looks, in its thread."""

    @contextmanager
    def lookout(self, states: States) -> Iterator[Lookout]:
        """Look for findings during the `with`, once it is started.

        Raises:
            ConfigError: flags that do not go together. OSError: a file of settings cannot be read.

        """
        self._check_files()
        read_alone, stopping = self._read_alone(), threading.Event()
        try:
            finders: dict[Kind, Finder] = {Kind.LINT: self._lint(read_alone, stopping)}
            others = {Kind.UNUSED: self._unused(), Kind.DRIFT: self._drift(), Kind.TESTS: self._tests()}
            for kind, finder in others.items():
                if finder is not None:
                    has_log = read_alone.source.log is not None
                    finders[kind] = PlacedFinder(finder=finder, chosen=read_alone) if has_log else finder
            lacking = {kind: why for kind, why in _LACKING.items() if kind not in finders}
            found = Lookout(finders=finders, lacking=lacking, commands=self._commands(), now=lambda: _newest(states))
            try:
                yield found
            finally:
                stopping.set()
                found.stop()
        finally:
            if read_alone is not self.chosen:
                read_alone.source.close()

    def _check_files(self) -> None:
        """Raise ConfigError if something is to come from stdin: it is read again and again."""
        flags = self.flags
        given = [*(("--accesses", path) for path in flags.accesses), *(("--tests", path) for path in flags.tests)]
        for flag, path in (*given, ("--want", flags.want), ("--ignore", flags.ignore)):
            if str(path) == STDIN:
                raise ConfigError(f"{flag} -: expected a file: it is read again and again")

    def _commands(self) -> dict[Kind, tuple[str, ...]]:
        """Return the command that says the same of each kind, and its flags besides those of the source."""
        flags, found = self.flags, dict[Kind, tuple[str, ...]]()
        settings = _words({"--config": flags.config, "--ignore": flags.ignore})
        found[Kind.LINT] = ("lint", *settings)
        accesses = [word for path in flags.accesses for word in ("--accesses", path)]
        if flags.index is not None:
            brokers = [word for broker in flags.ignore_broker for word in ("--ignore-broker", broker)]
            window = ("--days", str(flags.days), "--gap", flags.gap)
            found[Kind.UNUSED] = ("unused", "--index", str(flags.index), *window, *brokers, *accesses)
        elif accesses:
            found[Kind.UNUSED] = ("usage", *accesses, "--days", str(flags.days), "--format", "table")
        if flags.want is not None:
            others = [word for path in flags.other_journals for word in ("--other-journal", str(path))]
            wanted = _words({"--want": flags.want, "--want-format": flags.want_format, "--journal": flags.journal})
            found[Kind.DRIFT] = ("drift", *wanted, *others)
        if flags.tests:
            found[Kind.TESTS] = ("test", *flags.tests)
        return found

    def _read_alone(self) -> ChosenSource:
        """Return the source to be read beside the thread that follows it: a log by a reader of its own."""
        if isinstance(self.chosen.source, LogSource):
            return ChosenSource(LogSource(self.chosen.source.directory, lambda _notes: None), None)
        return self.chosen

    def _lint(self, chosen: ChosenSource, stopping: threading.Event) -> LintFinder:
        return LintFinder(
            stopping=stopping,
            pause=self.pause,
            chosen=chosen,
            settings=load_repository_settings(self.flags.config),
            ignore=self.flags.ignore,
            topics=self.topics,
        )

    def _unused(self) -> Finder | None:
        flags, log = self.flags, given_accesses(self.flags)
        if flags.index is None and log is None:
            return None
        need_usage_extra()
        from aclog.cli.console.finders.unused import IndexFinder, LogFinder
        from aclog.usage.unused_report import UnusedQuestion

        check_days(flags.days)
        origins, directory = SourceOrigins(self.chosen), self._directory()
        if flags.index is None:
            if log is None:
                return None
            named = self.authorizer.generation is not None
            return LogFinder(accesses=log, days=flags.days, log=directory, is_kafka_named=named, origins=origins)
        question = UnusedQuestion(days=flags.days, gap=gap_us(flags.gap), ignored=flags.ignore_broker)
        return IndexFinder(index=flags.index, question=question, log=directory, proof=log, origins=origins)

    def _directory(self) -> Path | None:
        source = self.chosen.source
        return source.directory if isinstance(source, LogSource) and source.log is not None else None

    def _drift(self) -> Finder | None:
        flags, source = self.flags, self.source
        if flags.want is None:
            return None
        if flags.journal is None:
            raise ConfigError("--want: expected --journal FILE, with what this source of rules owns")
        target = TargetFlags(
            log=source.log,
            bootstrap_server=source.bootstrap_server,
            bootstrap_controller=source.bootstrap_controller,
            command_config=source.command_config,
        )
        wanted = WantFlags(
            want=flags.want, want_format=flags.want_format, modules=source.modules, topics_file=source.topics_file
        )
        return DriftFinder(
            address=place_address(target), wanted=wanted, journal=flags.journal, others=flags.other_journals
        )

    def drafts(self) -> Drafts:
        """Return what drafts share: the tests that they may turn."""
        finder = self._tests()
        return Drafts(tests=None if finder is None else DraftTests(finder))

    def _tests(self) -> TestsFinder | None:
        if not self.flags.tests:
            return None
        place: ChangePlace = self.chosen.source.change_place
        origins: Origins = SourceOrigins(self.chosen)
        return TestsFinder(files=self.flags.tests, authorizer=self.authorizer, origins=origins, place=place)


def _words(given: Mapping[str, object]) -> list[str]:
    return [word for flag, value in given.items() if value is not None for word in (flag, str(value))]


def _newest(states: States) -> State | None:
    try:
        return states.now()
    except NotReadyError:
        return None
