"""Access logs: their files, the ACLs that judge them, and proofs over them."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self

import numpy as np
from attrs import evolve, field, frozen

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.planning.report import RuleUse, RuleUses
from aclog.snapshots.deciding_kafka import SETTLED_BY, ranges_text
from aclog.snapshots.image import Image
from aclog.snapshots.moments import parse_zone
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import LogSource
from aclog.targets.opening import FoundPlace
from aclog.terminal.notices import progress
from aclog.terminal.output import note, warn
from aclog.usage.accesses.access_batch import AccessForm
from aclog.usage.accesses.access_log import AccessInput, explain_unread, find_accesses
from aclog.usage.accesses.layouts import DEFAULT_PATTERN, Profile
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, Ranges
from aclog.usage.decisions.intervals import ALWAYS, Rules
from aclog.usage.index.database import FILE
from aclog.usage.index.lives import digests
from aclog.usage.index.usage_index import KAFKA, REGISTERED, UsageIndex
from aclog.usage.index.used import EVENTS, LastUse
from aclog.usage.judging import (
    CountedLog,
    Each,
    HowToCount,
    Judged,
    TalliedPart,
    count_log,
    each_in_processes,
    tally_log,
)
from aclog.usage.rules import deciding_rules_of_log, deciding_rules_of_state, seen_rules
from aclog.usage.simulation import replay
from aclog.usage.undecided import undecided
from aclog.usage.unused import StateRules
from aclog.usage.unused_report import UnusedReport, lives_of
from aclog.usage.window import DAY, EARLIEST, LATEST, UnreadAccesses, Window, check_days, of_micros, unread_text

_SMALL: Final = 1 << 25
"""Bytes of a log that one process reads sooner than several have started."""


class ReadAccesses(Protocol):
    """An access log, and how it is read."""

    @property
    def accesses(self) -> list[str]:
        """Its paths, or globs."""

    @property
    def accesses_format(self) -> str | None:
        """One of AccessForm, or the pattern of a layout; None: detected from the content."""

    @property
    def accesses_timezone(self) -> str:
        """The zone of times that name none."""

    @property
    def workers(self) -> int | None:
        """The number of processes that read it; None: one per core, and one for a small log."""


def stated_format(text: str | None) -> tuple[AccessForm | None, Profile | None]:
    """Return the form, or the layout, that --accesses-format names; None for what is detected.

    Raises:
        ConfigError: neither a form nor a pattern of a layout.

    """
    if text is None or text in set(AccessForm):
        return None if text is None else AccessForm(text), None
    if "%" not in text:
        raise ConfigError(
            f"--accesses-format {text}: expected {', '.join(AccessForm)}, or the pattern of a layout, such as "
            f"{DEFAULT_PATTERN!r}"
        )
    try:
        return None, Profile.of_pattern(text)
    except ConfigError as error:
        raise ConfigError(f"--accesses-format: {error}") from error


_NAMED_FILES: Final = 3
"""Files that a note names."""


def note_layouts(accesses: AccessInput) -> None:
    """Note the layouts of text files other than Apache's, and the files that are not read."""
    paths_of: dict[tuple[str, ...], list[str]] = {}
    for path, profile in accesses.profiles.items():
        if not profile.is_default and not profile.is_stated:
            paths_of.setdefault(tuple(layout.pattern for layout in profile.layouts), []).append(path)
    for patterns, paths in paths_of.items():
        note(f"{_listed(paths)}: layout {' and '.join(map(repr, patterns))}")
    if accesses.skipped:
        number = len(accesses.skipped)
        what = "file has no accesses, and was" if number == 1 else "files have no accesses, and were"
        note(f"{number:,} {what} skipped: {_listed(accesses.skipped)}")


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED_FILES
    return ", ".join(paths[:_NAMED_FILES]) + (f" and {more:,} more" if more > 0 else "")


_EXCERPT: Final = 300


def note_unread_lines(accesses: AccessInput, most: int) -> None:
    """Note lines with unread accesses, each with the column at which it differs from a readable line."""
    for line in explain_unread(accesses, most):
        start = max(0, line.column - 1 - _EXCERPT // 2)
        text = line.text[start : start + _EXCERPT]
        note(f"{line.path}: {line.reason}: column {line.column}: expected {line.expected}: {text}")


@frozen(eq=False, kw_only=True)
class AccessLog:
    """An access log, as it was when its files were found."""

    accesses: AccessInput
    each: Each = field(repr=False)
    """What does pieces of work: processes of this machine, or Spark."""

    @classmethod
    def of(cls, flags: ReadAccesses, each: Each | None = None, *, explain: int = 0) -> Self:
        """Find the files; `each` reads them, by default processes of this machine.

        `explain`: how many lines with unread accesses are shown.

        Raises:
            ConfigError, OSError: as find_accesses; an unknown format or zone.

        """
        form, profile = stated_format(flags.accesses_format)
        accesses = find_accesses(flags.accesses, parse_zone(flags.accesses_timezone), form, profile)
        note_layouts(accesses)
        if explain:
            note_unread_lines(accesses, explain)
        workers = flags.workers or (1 if accesses.size < _SMALL else os.cpu_count() or 1)
        return cls(accesses=accesses, each=each or partial(each_in_processes, workers=workers))

    def count(self, how: HowToCount) -> CountedLog:
        """Count the rows. Raises ConfigError, OSError: as count_log."""
        with progress("reading the accesses", "rows") as advance:
            done = 0

            def counted(rows: int) -> None:
                """Show that so many more rows were counted."""
                nonlocal done
                done += rows
                advance(done, None)

            return count_log(self.accesses.parts, how, self.each, counted=counted)

    def count_window(
        self, judged: "Judging", days: int, until: datetime | None, *, with_coverage: bool = False
    ) -> tuple[CountedLog, Judged]:
        """Count the rows of the last `days` before `until`, by default before the latest access.

        `with_coverage`: also which brokers and hours there are, and what the log itself calls denied.

        Raises:
            ConfigError: no access has a time, or `days` is out of bounds; as count_log.

        """
        check_days(days)
        window = None if until is None else Window.ending(until, days)
        counted = self.count(judged.how(window, with_coverage=with_coverage))
        if window is None:
            if counted.earliest is None or counted.latest is None:
                raise ConfigError("no access has a timestamp: expected one, or the end of the window (--until)")
            # an access that could not be read also counts: without it, the window would leave it out
            latest = max(counted.latest, counted.unread.latest or counted.latest)
            window = Window.ending(of_micros(latest), days)
            if of_micros(counted.earliest) < window.start:
                # what is older must not count: a second pass, now that the window is known
                counted = self.count(judged.how(window, with_coverage=with_coverage))
        return counted, judged.in_window(window)


@frozen(eq=False, kw_only=True)
class Judging:
    """What judges accesses."""

    rules: Rules
    settings: Settings
    own_time: bool
    """Whether each access is judged by the ACLs of its own time."""

    @classmethod
    def of(cls, choice: ChosenSource, settings: Settings) -> Self:
        """Take the ACLs of a source: of a log without --as-of all that it ever had, each access by those of its time.

        Unless the settings name a Kafka, that decides which the brokers ran, and a warning reports the accesses for
        which that is not known.

        Raises:
            MetadataError, OSError: the source is damaged, or does not cover the moment.

        """
        source = choice.source
        if isinstance(source, LogSource) and source.log is not None and choice.as_of is None:
            with progress(f"reading {source.name}"):
                rules, settings = deciding_rules_of_log(source.directory, settings)
            warn_of_unknown_kafka(rules)
            return cls(rules=rules, settings=settings, own_time=True)
        return cls.of_state(choice.image(), settings)

    @classmethod
    def of_state(cls, image: Image, settings: Settings) -> Self:
        """Take the ACLs of one state; the Kafka that decides as `of`."""
        rules, settings = deciding_rules_of_state(image, settings)
        warn_of_unknown_kafka(rules)
        return cls(rules=rules, settings=settings, own_time=False)

    def in_window(self, window: Window) -> Judged:
        """Return the same for a window."""
        return Judged(rules=self.rules, settings=self.settings, window=window, own_time=self.own_time)

    def how(
        self, window: Window | None, *, by_day: bool = False, timeless: bool = False, with_coverage: bool = False
    ) -> HowToCount:
        """Return how to count accesses for it; `timeless`: also those without a time."""
        start = self.rules.intervals.known_from
        return HowToCount(
            intervals=self.rules.intervals,
            settings=self.settings,
            own_time=self.own_time,
            window=window,
            known_from=start * 1000 if self.own_time and start > ALWAYS else None,
            by_day=by_day,
            with_coverage=with_coverage,
            timeless=timeless,
        )


def unknown_kafka(rules: Rules) -> str:
    """Return that it is not known by which Kafka some accesses are decided; empty if that is known, or all the same."""
    kafka = rules.intervals.kafka
    if kafka is None or Ranges.UNKNOWN not in kafka.of_controllers:
        return ""
    when = "" if kafka.only is not None else " at all times of the log"
    hosts = ranges_text(sorted(rules.ranges))
    return f"which Kafka decides is not known{when}, and {hosts}: what they may decide is not judged: {SETTLED_BY}"


def warn_of_unknown_kafka(rules: Rules) -> None:
    """Warn of accesses of which it is not known by which Kafka they are decided, if there may be any."""
    if text := unknown_kafka(rules):
        warn(text)


def warn_of_rejects(rejects: Counter[Reason]) -> None:
    """Warn of lines that are not accesses, with their number and the reasons."""
    if rejects:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in rejects.most_common())
        warn(f"{sum(rejects.values()):,} lines are not accesses and were skipped: {reasons}")


def warn_of_unread(unread: UnreadAccesses, what: str) -> None:
    """Warn of accesses that could not be read or decided, and of what that means for the answers."""
    if unread:
        warn(f"{unread_text(unread)}: {what}")


# The proof of the removals of `aclog unused`: the accesses of the window, decided again without these rules.


def prove(report: UnusedReport, choice: ChosenSource, flags: ReadAccesses) -> None:
    """Replay a log without the removable rules; print how many accesses were decided the same. Raises as `proved`."""
    note(proved(report, Judging.of(choice, decided_by(report)), flags))


def proved(report: UnusedReport, judging: Judging, flags: ReadAccesses) -> str:
    """Replay a log without the removable rules; return how many accesses were decided the same, as a sentence.

    Raises:
        ConfigError: an access would be decided otherwise, or may be that cannot be read or decided; or the log cannot
            be read.
        MetadataError, OSError: the source is damaged.

    """
    result = report.unused
    end = (result.window.last_day + 1) * DAY - 1
    window = Window(start=of_micros(result.window.start), until=of_micros(end))
    counted = AccessLog.of(flags).count(judging.how(window))
    removed = [tuple(rule.to_dict().values()) for _, rule in result.rules.in_text_order(result.removable)]
    outcome = replay(counted.accesses, judging.rules, removed, judging.settings, own_time=judging.own_time)
    if len(outcome.flipped):
        first = outcome.flipped.select(REQUEST_COLUMNS).slice(0, 1).to_pylist()[0]
        raise ConfigError(
            f"--accesses: {len(outcome.flipped):,} accesses would be decided otherwise without what can go, such as "
            f"{' '.join(map(str, first.values()))}: is the index made of this log, and up to date?"
        )
    others = _unread(report, judging, counted, window)
    return (
        f"--accesses: {outcome.decided:,} accesses of the window decided again without what can go: "
        f"all the same{others}"
    )


def _unread(report: UnusedReport, judging: Judging, counted: CountedLog, window: Window) -> str:
    """Return what is not in the proof, as the rest of a sentence."""
    codes = BulkAuthorizer.of(judging.rules.intervals, judging.settings).decide(
        [counted.accesses.column(name) for name in REQUEST_COLUMNS]
    )
    parts = (counted.unread, undecided(counted.accesses, codes))
    unread = judging.in_window(window).unread(UnreadAccesses.sum_of(parts))
    if not unread:
        return ""
    result = report.unused
    numbers = np.flatnonzero(result.removable)
    who, denies = result.rules.principals(numbers), result.rules.denies[numbers]
    if unread.concerned(who, denies, by_presence=judging.settings.allow_everyone).any():
        raise ConfigError(
            f"--accesses: {unread_text(unread)}: they may need what can go by the index, which does not know them: is "
            "it made of this log, and up to date?"
        )
    return f"; {unread_text(unread)}, and may need none of it"


def decided_by(report: UnusedReport) -> Settings:
    """Return what decided besides the rules when the index was made, the last time."""
    runs = report.index.runs()
    settings: Mapping[str, object] = runs[-1].settings if runs else {}
    supers = settings.get("super_users", ())
    return Settings(
        super_users=frozenset(map(str, supers)) if isinstance(supers, list) else frozenset(),
        allow_everyone=bool(settings.get("allow_everyone")),
        documented=bool(settings.get("documented")),
        cidr=bool(settings.get("cidr")),
        is_kafka_stated=settings.get(KAFKA) != REGISTERED,
    )


# When the ACLs that a plan deletes were last used: by an index of last use, or by an access log.


_MATCHED, _NEEDED = EVENTS.index("last matched"), EVENTS.index("last needed")


def read_rule_uses(flags: ReadAccesses, place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    """Return when some ACLs of a place were last used, each access judged by what the place has now; or by an index.

    Raises:
        ConfigError: an index beside logs, of another cluster, or without accesses; a log that holds none, or denials
            alone, by which no rule seems to be used.
        OSError: a file cannot be read.

    """
    indexes = [path for path in flags.accesses if Path(path, FILE).is_file()]
    if not indexes:
        return _by_log(flags, place, acls)
    if len(flags.accesses) > 1:
        raise ConfigError(f"--accesses {indexes[0]}: an index of last use: expected it alone, or access logs")
    return _by_index(Path(indexes[0]), place, acls)


def _by_index(path: Path, place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    with UsageIndex.open(path) as index:
        index.check_cluster(place.identity)
        coverage = index.coverage()
        if not len(coverage):
            raise ConfigError(f"--accesses {path}: holds no access yet: expected some, by aclog usage-index")
        state = _state_of(acls)
        lives = lives_of(state, index.lives())
        numbers = lives.number[lives.number >= 0]
        last = index.last_use(np.unique(numbers))
        of_rules = {
            state.rule(at).acl: evolve(_use_of(last, number), since=since)
            for at, (number, since) in enumerate(zip(lives.number.tolist(), lives.begin.tolist(), strict=True))
            if number >= 0
        }
        by_presence = any(run.settings.get("allow_everyone") for run in index.runs())
        return RuleUses(
            source=str(path),
            first=int(coverage.first.min()),
            last=int(coverage.last.max()),
            of_rules=_with_unread(of_rules, index.unread(EARLIEST, LATEST), by_presence=by_presence),
        )


def _by_log(flags: ReadAccesses, place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    log = AccessLog.of(flags)
    # The question is whether it will be missed, so the present rules judge, not those at the time.
    settings = evolve(place.settings, is_kafka_stated=place.kafka.is_known)
    rules, settings = Rules.of_image(place.state.acls).by_kafka(settings, lambda _: [(ALWAYS, place.kafka)])
    judging = Judging(rules=rules, settings=settings, own_time=False)
    last = LastUse.nothing()
    rejects: Counter[Reason] = Counter()
    unread = list[UnreadAccesses]()
    times: list[int] = []
    accesses = denials = 0
    for part in _counted(tally_log(log.accesses.parts, judging.how(None), log.each)):
        last = last.plus(*(tally.last_use for tally in part.tallies))
        rejects += part.counted.rejects
        unread += (part.counted.unread, *(tally.unread for tally in part.tallies))
        times += [each for each in (part.counted.earliest, part.counted.latest) if each is not None]
        accesses += part.counted.rows.total
        denials += part.counted.logged_denials
    name = ", ".join(flags.accesses)
    if not times:
        raise ConfigError(f"--accesses {name}: holds no access with a time: expected some")
    if denials and denials == accesses:
        raise ConfigError(
            f"--accesses {name}: all {denials:,} accesses are denials, by which no rule is used: Kafka logs what it "
            "allows only if kafka.authorizer.logger is at DEBUG"
        )
    warn_of_rejects(rejects)
    of_log = {acl: _use_of(last, number) for acl, number in _ordinals(judging.rules, acls).items()}
    unknown = UnreadAccesses.sum_of(unread).but_of(place.settings.super_users)
    warn_of_unread(unknown, "the last use of ACLs that they may need is unknown")
    of_rules = _with_unread(of_log, unknown, by_presence=place.settings.allow_everyone)
    return RuleUses(source=name, first=min(times), last=max(times), of_rules=of_rules)


def _with_unread(
    of_rules: Mapping[StandardAcl, RuleUse], unread: UnreadAccesses, *, by_presence: bool
) -> Mapping[StandardAcl, RuleUse]:
    """Return the uses with how many accesses may have needed each ACL that could not be read or decided."""
    who = [acl.principal for acl in of_rules]
    denies = np.array([acl.permission_type != AclPermissionType.ALLOW for acl in of_rules], np.bool_)
    concerned = unread.concerned(who, denies, by_presence=by_presence).tolist()
    counts = unread.counts(who, denies, by_presence=by_presence).tolist()
    return {
        acl: evolve(use, unread=count) if is_concerned else use
        for (acl, use), is_concerned, count in zip(of_rules.items(), concerned, counts, strict=True)
    }


def _counted(parts: Iterator[TalliedPart]) -> Iterator[TalliedPart]:
    with progress("reading the accesses", "rows") as advance:
        done = 0
        for part in parts:
            done += part.counted.rows.total
            advance(done, None)
            yield part


def _ordinals(rules: Rules, acls: Sequence[StandardAcl]) -> Mapping[StandardAcl, int]:
    """Return the ordinals of some of the rules."""
    ordinals = {key.tobytes(): at for at, key in enumerate(seen_rules(rules, own_time=False).digests)}
    state = _state_of(acls)
    keys = digests(state.acls.records())
    return {state.rule(at).acl: ordinals[key.tobytes()] for at, key in enumerate(keys)}


def _state_of(acls: Sequence[StandardAcl]) -> StateRules:
    return StateRules.of(AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls))


def _use_of(last: LastUse, number: int) -> RuleUse:
    return RuleUse(matched=last.use(number, _MATCHED), needed=last.use(number, _NEEDED))
