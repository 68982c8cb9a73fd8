"""Finders of the console: drift, lint, tests and unused ACLs."""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from attrs import evolve, field

from aclog.analysis.lint.finding import Finding, LintContext
from aclog.analysis.lint_report import LintReport, LocatedRule, lint
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import ChangePlace, Origins, StandardAcl
from aclog.authorizer.acls_image import AclsImage, contents_of
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Generation, Settings, parse_super_users
from aclog.cli.flags.common import AuthorizerFlags, Semantics
from aclog.console.draft import StatedCases
from aclog.console.findings import (
    Finder,
    Item,
    LookResult,
    Subject,
    TestedFile,
    drift_keys_then,
    drift_result,
    failing_keys,
    in_own_process,
    lint_keys,
    lint_result,
    packed,
    tests_result,
    unpacked,
)
from aclog.metalog.errors import MetadataError
from aclog.metalog.primitives import current_time_ms, elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.ops.lint import LintInputs, for_each, lint_inputs, lint_report, not_judged, sure
from aclog.ops.plan import DesiredRules, read_wanted_rules
from aclog.ops.policies import existing_topics
from aclog.planning.journal import settle
from aclog.planning.plan import PlaceAddress
from aclog.planning.planner import Holdings, drift_of
from aclog.sources.accesses import SeenAccesses, read_seen_accesses
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import LogPast, past_of
from aclog.sources.repository import AuthorizerSettings, RepositorySettings, settings_of
from aclog.sources.rule_tests import RuleTestFile, read_test_file
from aclog.sources.toml import read_toml
from aclog.targets.opening import check_journal, open_place, other_journal, read_own_journal
from aclog.terminal.output import note

# What changes when files do.


_HOUR_MS = 3_600_000


def signature_of(paths: Iterable[str]) -> object:
    """Return what changes when one of some files does, or one below a directory. Raises OSError: one is gone."""
    entries = []
    for path in map(Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = ((str(each), each.stat()) for each in files)
        entries += [(name, *_stamp(status)) for name, status in stats]
    return tuple(entries)


def hour_of_logs() -> int:
    """Return what changes every hour: access logs grow all the time, and are read whole."""
    return current_time_ms() // _HOUR_MS


def signature_of_database(path: Path) -> object:
    """Return what changes when an SQLite database does: commits are in its write-ahead log first. Raises OSError."""
    log = Path(f"{path}-wal")
    try:
        status = log.stat()
    except FileNotFoundError:
        status = None
    return signature_of([str(path)]), _stamp(status) if status is not None and status.st_size else None


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_mtime_ns, status.st_size


# Finds what `aclog drift` finds, in the states that the console shows.


_EVERY_S, _REST = 5.0, 20.0
"""Seconds between two readings of the desired rules; a long one is followed by so many times its time."""


@define(eq=False, kw_only=True)
class DriftFinder:
    """Compares states of a place with what a source wants there, and with what its journal owns."""

    address: PlaceAddress
    want: DesiredRules
    journal: Path
    others: Sequence[Path] = ()
    _rules: frozenset[bytes] | str = field(default=frozenset(), init=False)
    """What was wanted when it was read last; or why it could not be."""
    _next: float = field(default=0.0, init=False)
    """When it is read again."""

    def look(self, subject: Subject) -> LookResult:
        """Return the drift of a state. Raises MetadataError, OSError: it is unknown."""
        desired = read_wanted_rules(self.want)
        rules, origins = desired.rules, desired.origins
        own = read_own_journal(self.journal, note)
        foreign = [other_journal(path, own, note) for path in self.others]
        with open_place(self.address, lambda _note: None, write=False) as place:
            identity, name = place.identity(), place.name
            there = frozenset(contents_of(subject.image.acls))
            own, *foreign = (settle(each, there, place.completion).journal for each in (own, *foreign))
        for each in (own, *foreign):
            check_journal(each, self.address, identity, name)
        own.check_rules_there(there, name)
        others = frozenset[bytes]().union(*(each.owned for each in foreign))
        ownership = Holdings(there=there, owned=own.owned, others=others)
        return drift_result(drift_of(ownership, rules), len(there - rules - ownership.owned), origins)

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        """Return the keys of the drift of an earlier state, by the desired rules of now."""
        return drift_keys_then(then.image.acls, newest)

    def signature(self) -> object:
        """Return what changes with the wanted rules and the journals. Raises OSError: a journal is gone."""
        journals = [path for path in (self.journal, *self.others) if path.exists()]
        return self._wanted_now(), signature_of(map(str, journals))

    def _wanted_now(self) -> frozenset[bytes] | str:
        """Return the desired rules, read periodically: files refer to others, so only a full read detects a change."""
        began = elapsed_seconds()
        if began >= self._next:
            try:
                self._rules = read_wanted_rules(self.want, lambda _note: None).rules
            except (MetadataError, OSError) as error:
                self._rules = str(error)
            ended = elapsed_seconds()
            self._next = ended + max(_EVERY_S, _REST * (ended - began))
        return self._rules


# Finds what `aclog lint` finds.


_APART = 20_000
"""From so many rules on, lint takes long enough to delay requests."""
_CACHE_SIZE = 4
"""Earlier states whose findings are kept."""


@define(eq=False, kw_only=True)
class LintFinder:
    """Lints states by the settings of a repository, which it reads again."""

    choice: ChosenSource
    """Read by no other finder, except for files of rules."""
    settings: RepositorySettings
    ignore: Path | None = None
    """A file of more suppressions."""
    topics: NameFile | None = None
    accesses: Sequence[str] = ()
    """Access logs, instead of those of the settings; read again every hour, in a process of its own."""
    apart: int = _APART
    """From so many rules on, a process of its own lints."""
    stopping: threading.Event = field(factory=threading.Event)
    """Ends that process."""
    pause: Pause = no_pause
    """Called again and again while the log is read, in this process."""
    _then: "OrderedDict[tuple[int, object], frozenset[str]]" = field(factory=OrderedDict, init=False)
    _seen: "tuple[int, SeenAccesses | str] | None" = field(default=None, init=False)
    """The hour of reading, and the accesses or why they are unread."""

    def look(self, subject: Subject) -> LookResult:
        """Return the report on a state. Raises MetadataError, OSError: a file or the log cannot be read.

        Access logs that cannot be read are a note, since most lints judge without them.
        """
        notes = list[str]()
        inputs = self._inputs(subject, notes)
        report = self._report(subject, inputs, notes)
        lacking = not_judged(inputs, history=self.choice.source.log is not None)
        if lacking is not None:
            notes.append(lacking)
        return lint_result(report, tuple(notes), self.pause)

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:  # noqa: ARG002 - all earlier findings are returned
        """Return the keys of what an earlier state had. Raises as `look`."""
        key = then.image.end_offset, self.signature()
        if key not in self._then:
            self._then[key] = lint_keys(self._report(then, self._inputs(then, []), []))
            if len(self._then) > _CACHE_SIZE:
                self._then.popitem(last=False)
        return self._then[key]

    def signature(self) -> object:
        """Return what changes with the files of settings, every day, as suppressions expire, and with access logs."""
        files = [str(each) for each in (self.settings.file, self.ignore) if each is not None]
        today = datetime.fromtimestamp(current_time_ms() / 1000, UTC).date()
        return today, signature_of(files), hour_of_logs() if self.accesses else None

    def _accesses(self) -> SeenAccesses | str:
        hour = hour_of_logs()
        if self._seen is None or self._seen[0] != hour:
            self._seen = hour, in_own_process(self.stopping, _read_or_refused, self.accesses)
        return self._seen[1]

    def _report(self, subject: Subject, inputs: LintInputs, notes: list[str]) -> LintReport:
        find = self._apart if len(subject.image.acls) >= self.apart else self._here
        outcome = lint_report(
            self.choice,
            subject.image,
            subject.policy,
            inputs,
            tell=notes.append,
            find=for_each(subject.policies, sure(find, subject.premises)),
            pause=self.pause,
        )
        return evolve(outcome, unknown=subject.premises.names)

    def _here(self, policy: Policy, context: LintContext, select: frozenset[str]) -> tuple[list[Finding], list[str]]:
        undecided = list[str]()
        return list(lint(policy, context, select=select, note=undecided.append)), undecided

    def _apart(self, policy: Policy, context: LintContext, select: frozenset[str]) -> tuple[list[Finding], list[str]]:
        work = partial(found_by_lint, policy.acls, policy.settings, context, select)
        pieces, undecided = in_own_process(self.stopping, work)
        return list(unpacked(pieces, self.pause)), undecided

    def _inputs(self, subject: Subject, notes: list[str]) -> LintInputs:
        settings, seen = self.settings, self._accesses() if self.accesses else None
        known = seen if isinstance(seen, SeenAccesses) else None
        if settings.file is not None and settings.document is not None:
            settings = settings_of(read_toml(settings.file, str(settings.file)), settings.file)
        topics = existing_topics(self.topics, [subject.image], [self.choice])
        if isinstance(seen, str):
            notes.append(seen)
        inputs = lint_inputs(
            settings,
            topics,
            ignore=self.ignore,
            accesses=() if known is None else self.accesses,
            read=read_seen_accesses if known is None else lambda *_: known,
            report=notes.append,
        )
        return evolve(inputs, allow_everyone=subject.policy.settings.allow_everyone)


def _read_or_refused(paths: Sequence[str]) -> SeenAccesses | str:
    try:
        return read_seen_accesses(*paths)
    except (MetadataError, OSError) as error:
        return f"--accesses: {error}"


def found_by_lint(
    acls: AclsImage, settings: Settings, context: LintContext, select: frozenset[str]
) -> tuple[list[bytes], list[str]]:
    """Return the findings on some rules, packed, and what was left undecided. Pure, and all of it can be pickled."""
    undecided = list[str]()
    findings = list(lint(Policy(acls, settings), context, select=select, note=undecided.append))
    return packed(findings), undecided


# Adds to findings where the log of the source has their rules.


@frozen(kw_only=True)
class PlacedFinder:
    """Finds what another one does, and adds which records added its rules, if they have no other location."""

    finder: Finder
    choice: ChosenSource
    """Of a log that no other finder reads."""

    def look(self, subject: Subject) -> LookResult:
        """Return what the other one finds. Raises as it does; MetadataError: the log is damaged."""
        outcome = self.finder.look(subject)
        rules = dict[UUID, StandardAcl]()
        for acl in {rule.acl for item in outcome.items for rule in item.rules if not rule.origins}:
            number = subject.image.acls.find(acl)
            if number is not None:
                rules[number] = acl
        if not rules:
            return outcome
        past = past_of(self.choice.source, subject.image.end_offset, rules)
        return evolve(outcome, items=_placed(outcome.items, past))

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        """Return the keys of what an earlier state also had."""
        return self.finder.had(then, newest)

    def signature(self) -> object:
        """Return what changes with that which the other one reads."""
        return self.finder.signature()


def _placed(items: Sequence[Item], past: LogPast) -> tuple[Item, ...]:
    return tuple(evolve(item, rules=tuple(_placed_rule(rule, past) for rule in item.rules)) for item in items)


def _placed_rule(rule: LocatedRule, past: LogPast) -> LocatedRule:
    return rule if rule.origins else evolve(rule, origins=past.of(rule.acl))


# Finds the tests of rules that fail, as `aclog test` does.


@frozen(kw_only=True)
class TestsFinder:
    """Runs files of tests on states; they are read again each time."""

    __test__ = False
    """It is not a test for pytest."""

    files: Sequence[str]
    authorizer: AuthorizerFlags
    """Those of them that are given win over a file's own."""
    origins: Origins
    place: ChangePlace

    def look(self, subject: Subject) -> LookResult:
        """Return the tests that fail. Raises MetadataError, OSError: what it takes is unreadable."""
        return tests_result(self._files(subject), self.origins, self.place)

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        """Return the keys of tests that also failed in an earlier state. Raises as `look`."""
        among = frozenset(each.key for each in newest.items)
        return failing_keys(self._files(then), among) if among else frozenset()

    def signature(self) -> object:
        """Return what changes with the files."""
        return signature_of(self.files)

    def _files(self, subject: Subject) -> list[TestedFile]:
        files = []
        for file in map(read_test_file, dict.fromkeys(self.files)):
            policies = dict[Generation, Policy]()
            for generation, policy in subject.policies.items():
                settings = self.settings_for(policy.settings, file.settings)
                acls = policy.acls.with_options(documented=settings.documented, cidr=settings.cidr)
                decided = policy if settings == policy.settings else Policy(acls, settings)
                policies[settings.generation or generation] = decided
            configs = self.given_by(file.settings)
            premises = subject.premises.without(configs)
            files.append(TestedFile(policies=policies, cases=file.cases, premises=premises, properties=configs))
        return files

    def given_by(self, stated: AuthorizerSettings) -> frozenset[str]:
        """Return the properties of brokers whose values flags give, or a file states."""
        values = {SUPER_USERS_CONFIG: stated.super_users, ALLOW_EVERYONE_CONFIG: stated.allow_everyone}
        return self.authorizer.configs() | {name for name, value in values.items() if value is not None}

    def settings_for(self, settings: Settings, stated: AuthorizerSettings) -> Settings:
        """Return the console's settings with those that a file states, unless a flag does."""
        flags = self.authorizer
        if flags.super_users is None and stated.super_users is not None:
            settings = evolve(settings, super_users=parse_super_users(stated.super_users))
        if not (flags.allow_everyone or flags.no_allow_everyone) and stated.allow_everyone is not None:
            settings = evolve(settings, allow_everyone=stated.allow_everyone)
        if not flags.documented and stated.semantics is not None:
            settings = evolve(settings, documented=stated.semantics == Semantics.DOCUMENTED)
        if flags.generation is None and stated.cidr is not None:
            settings = evolve(settings, cidr=stated.cidr, is_kafka_stated=True)
        return settings


# The tests that a draft may turn red or green, as their files have them.


@define(eq=False)
class DraftTests:
    """Reads files of tests, and again when they change. Safe for any number of threads: two may read them at once."""

    finder: TestsFinder
    """What runs the same tests on the newest state."""
    _read: tuple[object, list[RuleTestFile]] | None = field(default=None, init=False)

    def __call__(self, settings: Settings) -> Sequence[StatedCases]:
        """Return the cases with what decides for them. Raises MetadataError, OSError: a file cannot be read."""
        signature, read = self.finder.signature(), self._read
        if read is None or read[0] != signature:
            read = self._read = signature, [read_test_file(path) for path in dict.fromkeys(self.finder.files)]
        return [
            StatedCases(
                settings=self.finder.settings_for(settings, file.settings),
                cases=file.cases,
                properties=self.finder.given_by(file.settings),
            )
            for file in read[1]
        ]
