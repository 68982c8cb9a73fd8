"""Finds what `aclog lint` finds."""

import threading
from collections import OrderedDict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from attrs import define, evolve, field

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.linting import lint
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.policy import Policy
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.settings import Settings
from aclog.cli.console.finders.files import signature_of
from aclog.cli.existing_topics import existing_topics
from aclog.cli.linting import LintInputs, lint_inputs, lint_report, not_judged, sure
from aclog.console.findings.lint_items import lint_keys, lint_looked
from aclog.console.findings.looked import Looked, Subject
from aclog.console.findings.own_process import in_own_process, packed, unpacked
from aclog.metalog.clock import current_time_ms
from aclog.sources.choice import ChosenSource
from aclog.sources.name_file import NameFile
from aclog.sources.repository.loading import settings_of
from aclog.sources.repository.settings import RepositorySettings
from aclog.sources.repository.toml_document import read_toml

_APART = 20_000
"""From so many rules on, lint takes long enough to be in the way of requests."""
_HERE = "; flags of aclog lint are settings of aclog.toml here"
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
    apart: int = _APART
    """From so many rules on, a process of its own lints."""
    stopping: threading.Event = field(factory=threading.Event)
    """Ends that process."""
    pause: Pause = no_pause
    """Called again and again while the log is read, in this process."""
    _then: "OrderedDict[tuple[int, object], frozenset[str]]" = field(factory=OrderedDict, init=False)

    def look(self, subject: Subject) -> Looked:
        """Return the report on a state. Raises MetadataError, OSError: a file or the log cannot be read."""
        inputs, notes = self._inputs(subject), list[str]()
        report = self._report(subject, inputs, notes)
        lacking = not_judged(inputs, history=self.chosen.source.log is not None)
        if lacking is not None:
            notes.append(f"{lacking}{_HERE if '--' in lacking else ''}")
        return lint_looked(report, tuple(notes), self.pause)

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
        find = self._apart if len(subject.image.acls) >= self.apart else self._here
        found = lint_report(
            self.chosen,
            subject.image,
            subject.policy,
            inputs,
            tell=notes.append,
            find=sure(find, subject.premises),
            pause=self.pause,
        )
        return evolve(found, unknown=subject.premises.names)

    def _here(self, policy: Policy, context: LintContext, select: frozenset[str]) -> tuple[list[Finding], list[str]]:
        undecided = list[str]()
        return list(lint(policy, context, select=select, note=undecided.append)), undecided

    def _apart(self, policy: Policy, context: LintContext, select: frozenset[str]) -> tuple[list[Finding], list[str]]:
        work = partial(found_by_lint, policy.acls, policy.settings, context, select)
        pieces, undecided = in_own_process(self.stopping, work)
        return list(unpacked(pieces, self.pause)), undecided

    def _inputs(self, subject: Subject) -> LintInputs:
        settings = self.settings
        if settings.file is not None and settings.document is not None:
            settings = settings_of(read_toml(settings.file, str(settings.file)), settings.file)
        topics = existing_topics(self.topics, [subject.image], [self.chosen])
        found = lint_inputs(settings, topics, ignore=self.ignore)
        return evolve(found, allow_everyone=subject.policy.settings.allow_everyone)


def found_by_lint(
    acls: AclsImage, settings: Settings, context: LintContext, select: frozenset[str]
) -> tuple[list[bytes], list[str]]:
    """Return the findings on some rules, packed, and what was left undecided. Pure, and all of it can be pickled."""
    undecided = list[str]()
    found = list(lint(Policy(acls, settings), context, select=select, note=undecided.append))
    return packed(found), undecided
