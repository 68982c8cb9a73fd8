"""Finds what `aclog lint` finds."""

from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path

from attrs import define, evolve, field

from aclog.analysis.lint_report.lint_report import LintReport
from aclog.cli.console.finders.files import signature_of
from aclog.cli.existing_topics import existing_topics
from aclog.cli.linting import LintInputs, lint_inputs, lint_report, not_judged
from aclog.console.findings.lint_items import lint_keys, lint_looked
from aclog.console.findings.looked import Looked, Subject
from aclog.metalog.clock import current_time_ms
from aclog.sources.choice import ChosenSource
from aclog.sources.name_file import NameFile
from aclog.sources.repository.loading import settings_of
from aclog.sources.repository.settings import RepositorySettings
from aclog.sources.repository.toml_document import read_toml

_KEPT = 4
"""Earlier states whose findings are kept."""


@define(eq=False, kw_only=True)
class LintFinder:
    """Lints states by the settings of a repository, which it reads again."""

    chosen: ChosenSource
    """Read by nobody else, but for files of rules."""
    settings: RepositorySettings
    ignore: Path | None = None
    """A file of more suppressions."""
    topics: NameFile | None = None
    _then: "OrderedDict[tuple[int, object], frozenset[str]]" = field(factory=OrderedDict, init=False)

    def look(self, subject: Subject) -> Looked:
        """Return the report on a state. Raises MetadataError, OSError: a file or the log cannot be read."""
        inputs, notes = self._inputs(subject), list[str]()
        report = self._report(subject, inputs, notes)
        lacking = not_judged(inputs, history=self.chosen.source.log is not None)
        return lint_looked(report, (*notes, *(() if lacking is None else (lacking,))))

    def had(self, then: Subject, found: Looked) -> frozenset[str]:  # noqa: ARG002 - all that was found then is told
        """Return the keys of what an earlier state had. Raises as `look`."""
        key = then.image.end_offset, self.signature()
        if key not in self._then:
            self._then[key] = lint_keys(self._report(then, self._inputs(then), []))
            if len(self._then) > _KEPT:
                self._then.popitem(last=False)
        return self._then[key]

    def signature(self) -> object:
        """Return what changes with the files of settings, and every day: suppressions expire."""
        files = [str(each) for each in (self.settings.file, self.ignore) if each is not None]
        return datetime.fromtimestamp(current_time_ms() / 1000, UTC).date(), signature_of(files)

    def _report(self, subject: Subject, inputs: LintInputs, notes: list[str]) -> LintReport:
        return lint_report(self.chosen, subject.image, subject.policy, inputs, tell=notes.append)

    def _inputs(self, subject: Subject) -> LintInputs:
        settings = self.settings
        if settings.file is not None and settings.document is not None:
            settings = settings_of(read_toml(settings.file, str(settings.file)), settings.file)
        topics = existing_topics(self.topics, [subject.image], [self.chosen])
        found = lint_inputs(settings, topics, ignore=self.ignore)
        return evolve(found, allow_everyone=subject.policy.settings.allow_everyone)
