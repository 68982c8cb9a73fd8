"""What `aclog accesses usage`, `denied`, `suggest` and `simulate` do with an access log: its judges and their results.

An access log is counted once, by the ACLs of a source; each of the four takes its answer from the counts.
"""

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta, tzinfo
from functools import partial
from itertools import chain, groupby
from tempfile import gettempdir
from typing import Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field

from aclog.analysis.policy import generation_object, merged
from aclog.analysis.regions import JsonObject
from aclog.authorizer.acl import object_of_rule
from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Generation, GenerationPair, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.values import frozen
from aclog.ops.near import meant_principal
from aclog.ops.policies import Sides, TwoStates, existing_topics, read_premises, refuse_unless_known
from aclog.snapshots.deciding_kafka import SETTLED_BY, ranges_text
from aclog.snapshots.image import Image
from aclog.snapshots.moments import parse_zone
from aclog.sources.acl_lines import NameFile, display_name
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import LogSource
from aclog.terminal.columns import json_text
from aclog.terminal.notices import progress
from aclog.terminal.output import as_of_text, note, warn
from aclog.usage.accesses.access_batch import AccessForm
from aclog.usage.accesses.access_log import (
    NO_COPIES,
    NO_STREAMS,
    STDIN,
    AccessInput,
    blocks_up_to,
    explain_unread,
    find_accesses,
    has_local_times,
)
from aclog.usage.accesses.addresses import Address, is_object_path, plain_name
from aclog.usage.accesses.layouts import DEFAULT_PATTERN, Profile
from aclog.usage.accesses.lines import LONGEST_LINE, LongLine, PinnedFile, StreamCopy
from aclog.usage.accesses.objects import ObjectCopies
from aclog.usage.accesses.table_formats import NEWEST, TableMoment
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, Ranges
from aclog.usage.decisions.intervals import ALWAYS, RULE_COLUMNS, Rules
from aclog.usage.denied import Attempt, Refusals, attempts_of, refusals
from aclog.usage.evidence import Youth, unlogged_text, unlogged_types
from aclog.usage.judging import CountedLog, Each, HowToCount, Judged, UsageReport, count_log, each_in_processes, report
from aclog.usage.rules import deciding_rules_of_log, deciding_rules_of_state
from aclog.usage.simulation import Simulation
from aclog.usage.simulation import simulate as simulate_changes
from aclog.usage.suggesting import judge
from aclog.usage.suggestion import Question, SuggestedRule, Suggestion
from aclog.usage.unused import Answer
from aclog.usage.window import UnreadAccesses, Window, check_days, of_micros, unread_text

# An access log, and what judges it.

SMALL: Final = 1 << 25
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
    def accesses_timezone(self) -> str | None:
        """The zone of times that name none; None: it is not stated, and they are read as UTC."""

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


def zone_of(flags: ReadAccesses) -> tzinfo:
    """Return the zone of times that name none. Raises ConfigError: an unknown one."""
    return parse_zone(flags.accesses_timezone or "UTC")


TOPIC_SCHEME: Final = "kafka://"
"""The beginning of a topic's address."""
FEW: Final = 3
"""Texts that are listed of many."""


def _uncopied(path: str) -> ConfigError:
    return ConfigError(
        f"--accesses {path}: a table or objects, which are copied to {gettempdir()} of the driver first: executors on "
        "other machines cannot read them there: expected files, --master local[*], or the command without Spark"
    )


def workers_for(size: int, workers: int | None) -> Each:
    """Return what reads so many bytes in processes: by default one, or one per core."""
    return partial(each_in_processes, workers=workers or (1 if size < SMALL else os.cpu_count() or 1))


def note_input(accesses: AccessInput, explain: int) -> None:
    """Note the layouts of text files other than Apache's, the files that are not read, and some unread lines.

    `explain`: how many lines with unread accesses are shown.
    """
    _note_layouts(accesses)
    if explain:
        _note_unread_lines(accesses, explain)


def _note_layouts(accesses: AccessInput) -> None:
    paths_of: dict[tuple[str, ...], list[str]] = {}
    for path, profile in accesses.profiles.items():
        if not profile.is_default and not profile.is_stated:
            paths_of.setdefault(tuple(layout.pattern for layout in profile.layouts), []).append(path)
    for patterns, paths in paths_of.items():
        note(f"{few(paths)}: layout {' and '.join(map(repr, patterns))}")
    if accesses.skipped:
        number = len(accesses.skipped)
        what = "file has no accesses, and was" if number == 1 else "files have no accesses, and were"
        note(f"{number:,} {what} skipped: {few(accesses.skipped)}")
    if accesses.copies:
        pairs = [f"{copy} (of {first})" for first, copy in accesses.copies]
        what = "1 file has the content of another one" if len(pairs) == 1 else f"{len(pairs):,} files are copies"
        note(f"{what}, and counts once: {few(pairs)}" if len(pairs) == 1 else f"{what}, and count once: {few(pairs)}")


def few(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = len(texts) - FEW
    return ", ".join(texts[:FEW]) + (f" and {more:,} more" if more > 0 else "")


_EXCERPT: Final = 300


def _note_unread_lines(accesses: AccessInput, most: int) -> None:
    """Note lines with unread accesses, of text with the column at which it differs from a readable line."""
    for line in explain_unread(accesses, most):
        start = max(0, (line.column or 1) - 1 - _EXCERPT // 2)
        text = line.text[start : start + _EXCERPT]
        column = "" if line.column is None else f"column {line.column}: "
        note(f"{line.path}:{line.line}: {line.reason}: {column}expected {line.expected}: {text}")


_ASSUMED_ZONE: Final = "access times without a zone were read as UTC (--accesses-timezone)"


@frozen(eq=False, kw_only=True)
class AccessLog:
    """An access log, as it was when its files were found."""

    accesses: AccessInput
    each: Each = field(repr=False)
    """What does pieces of work: processes of this machine, or Spark."""
    names: str
    """The paths, as they were given."""
    form: str | None
    """The stated form or layout; None: it is detected."""
    streams: Mapping[str, StreamCopy] = field(factory=dict, repr=False)
    """The copies of streams, which end with this log."""
    is_zone_stated: bool = True

    @classmethod
    def of(
        cls,
        flags: ReadAccesses,
        each: Each | None = None,
        *,
        explain: int = 0,
        streams: Mapping[str, StreamCopy] = NO_STREAMS,
        moment: TableMoment = NEWEST,
        copies: bool = True,
        uri_copies: Mapping[str, ObjectCopies] = NO_COPIES,
    ) -> Self:
        """Find the files; `each` reads them, by default processes of this machine. Stdin (`-`) is read to its end.

        `copies`: whether what reads them can read temporary files of this process: copies of tables and objects.

        `explain`: how many lines with unread accesses are shown. `streams`: the copies of other paths that are streams.
        `moment`: the version of a table of Delta or Iceberg. `uri_copies`: the copies of paths in other stores.

        Raises:
            ConfigError, OSError: as find_accesses; an unknown format or zone; stdin for Spark, or its copy cannot be
                written.

        """
        form, profile = stated_format(flags.accesses_format)
        zone = zone_of(flags)
        if topics := [path for path in flags.accesses if path.startswith(TOPIC_SCHEME)]:
            raise ConfigError(
                f"--accesses {topics[0]}: only aclog accesses index reads a topic: expected files, or --index of "
                "its index"
            )
        read = dict(streams)
        if STDIN in flags.accesses and STDIN not in read:
            if each is not None:
                raise ConfigError(
                    "--accesses -: Spark's executors cannot read stdin: write the accesses to a file first"
                )
            read[STDIN] = StreamCopy.of(sys.stdin.buffer, display_name(STDIN))
        for path in () if copies else filter(is_object_path, map(plain_name, flags.accesses)):
            Address.of(path)
            raise _uncopied(path)
        accesses = find_accesses(
            flags.accesses, zone, form, profile, streams=read, moment=moment, uri_copies=uri_copies
        )
        if accesses.tables and not copies:
            raise _uncopied(flags.accesses[0])
        note_input(accesses, explain)
        each = each or workers_for(accesses.size, flags.workers)
        names = ", ".join(flags.accesses)
        return cls(
            accesses=accesses,
            each=each,
            names=names,
            form=flags.accesses_format,
            streams=read,
            is_zone_stated=flags.accesses_timezone is not None,
        )

    def assumed_zone(self) -> str:
        """Return that times were read as UTC, if they have no zone and no flag states it; empty otherwise."""
        return "" if self.is_zone_stated or not has_local_times(self.accesses) else _ASSUMED_ZONE

    def note_assumed_zone(self) -> None:
        """Note that times were read as UTC, as `assumed_zone`."""
        if text := self.assumed_zone():
            note(text)

    def digests(self) -> Iterator[tuple[PinnedFile, str | None]]:
        """Yield each file, with the SHA-256 of what was read; None of a copy: of a stream, a table or an object.

        Raises:
            ConfigError, OSError: a file was truncated, replaced or removed since.

        """
        for file in self.accesses.files:
            if file.place != file.path:
                yield file, None
                continue
            sha = hashlib.sha256()
            with file.open() as opened:
                for block in blocks_up_to(opened, file.size):
                    sha.update(block)
            yield file, sha.hexdigest()

    def error(self, what: str) -> ConfigError:
        """Return the error of a log without an access that counts; a stated form may be the wrong one."""
        hint = "" if self.form is None else f"; --accesses-format {self.form} may be wrong: without it, it is detected"
        return ConfigError(f"{self.names}: {what}{hint}")

    def count(self, how: HowToCount) -> CountedLog:
        """Count the rows. Raises ConfigError, OSError: as count_log."""
        log = self._count(how)
        warn_of_long_lines(log.long_lines)
        return log

    def _count(self, how: HowToCount) -> CountedLog:
        with progress("reading the accesses", "rows") as advance:
            done = 0

            def counted(rows: int) -> None:
                """Show that so many more rows were counted."""
                nonlocal done
                done += rows
                advance(done, None)

            return count_log(self.accesses.parts, how, self.each, counted=counted)

    def count_window(
        self, judged: "Judging", days: int, until: datetime | None, *, is_again: bool = False
    ) -> tuple[CountedLog, Judged]:
        """Count the rows of the last `days` before `until`, by default before the latest access.

        `is_again`: whether what a count warns of is known.

        Raises:
            ConfigError: no access has a time, or `days` is out of bounds; as count_log.

        """
        check_days(days)
        window = None if until is None else Window.ending(until, days)
        counted = self._count(judged.how(window))
        if window is None:
            if counted.earliest is None or counted.latest is None:
                raise self.error("no access has a timestamp: expected one, or the end of the window (--until)")
            # an access that could not be read also counts: without it, the window would leave it out
            latest = max(counted.latest, counted.unread.latest or counted.latest)
            window = Window.ending(of_micros(latest), days)
            if of_micros(counted.earliest) < window.start:
                # what is older must not count: a second pass, now that the window is known
                counted = self._count(judged.how(window))
        if not is_again:
            warn_of_long_lines(counted.long_lines)
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

    def how(self, window: Window | None, *, by_day: bool = False, timeless: bool = False) -> HowToCount:
        """Return how to count accesses for it; `timeless`: also those without a time."""
        start = self.rules.intervals.known_from
        return HowToCount(
            intervals=self.rules.intervals,
            settings=self.settings,
            own_time=self.own_time,
            window=window,
            known_from=start * 1000 if self.own_time and start > ALWAYS else None,
            by_day=by_day,
            timeless=timeless,
        )


def unknown_kafka(rules: Rules) -> str:
    """Return that it is not known by which Kafka some accesses are decided; empty if that is known, or all the same."""
    kafka = rules.intervals.kafka
    if kafka is None or Ranges.UNKNOWN not in kafka.of_controllers:
        return ""
    when = "" if kafka.only is not None else " at all times of the log"
    hosts = ranges_text(sorted(rules.ranges))
    return (
        f"the version of the brokers is unknown{when}, and {hosts}: requests that they may decide are not judged: "
        f"{SETTLED_BY}"
    )


def warn_of_unknown_kafka(rules: Rules) -> None:
    """Warn of accesses of which it is not known by which Kafka they are decided, if there may be any."""
    if text := unknown_kafka(rules):
        warn(text)


def rejects_text(rejects: Counter[Reason]) -> str:
    """Return of how many lines no access was read, and why."""
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in rejects.most_common())
    return f"{plural(sum(rejects.values()), 'line')} skipped: {reasons}"


def warn_of_rejects(rejects: Counter[Reason]) -> None:
    """Warn of lines of which no access was read, with their number and the reasons."""
    if rejects:
        warn(rejects_text(rejects))


def warn_of_long_lines(lines: Iterable[LongLine]) -> None:
    """Warn of lines that were not read for their length."""
    if texts := list(map(str, lines)):
        each = "it counts" if len(texts) == 1 else "each counts"
        warn(
            f"{plural(len(texts), 'line')} of over {LONGEST_LINE >> 20} MiB not read, {each} as an access that could "
            f"not be read: {few(texts)}"
        )


def warn_of_unread(unread: UnreadAccesses, what: str) -> None:
    """Warn of accesses that could not be read or decided, and of what that means for the answers."""
    if unread:
        warn(f"{unread_text(unread)}: {what}")


# `aclog accesses usage`: which ACLs an access log needs.


_MOST_DENIALS: Final = 10
"""Denied requests of a report."""
_NAMED_HOLES: Final = 5
_NEVER: Final = (Answer.NEVER_MATCHED, Answer.NEVER_NEEDED)
_USAGE_KEYS: Final = (*RULE_COLUMNS, "answer", "matched", "needed", "removable")


_REQUESTS: Final = "requests"
"""The premise that the log has requests on the type of resource of an ACL."""


def youth_text(usage_report: UsageReport) -> str:
    """Return why no ACL is judged, and the window that would judge some, if all are younger; empty otherwise."""
    youth = Youth.of(usage_report)
    return "" if youth is None else youth.text(as_of_text(of_micros(youth.oldest * 1000)))


def judged_days(usage_report: UsageReport) -> int:
    """Return the longest window, in days, in which an ACL would be judged, if none is; 0 if one is or none can be."""
    youth = Youth.of(usage_report)
    return 0 if youth is None else int(youth.days.max())


def why_unjudged(row: Mapping[str, Any], usage_report: UsageReport) -> str:
    """Return why an ACL is not judged; `row` is that of the ACL in the report, of which this uses some columns."""
    begin, end = row["in_force_from"], row["in_force_to"]
    if begin is not None and begin > usage_report.window.start:
        return f"in force only since {as_of_text(begin)}, after the window began"
    if end is not None:
        return "not in force at the end of the window"
    if row["unread"]:
        return f"may apply to {plural(row['unread'], 'access')} that could not be read or decided"
    if usage_report.is_denials_only and row["permissionType"] == "ALLOW":
        return "the log has denials only"
    return "its use depends on unknown settings"


def evidence_notes(usage_report: UsageReport) -> Iterator[str]:
    """Yield why no ACL is judged, if all are younger than the window, and which types of resources are not logged."""
    if text := youth_text(usage_report):
        yield text
    if text := unlogged_text(usage_report):
        yield text


@frozen(eq=False, kw_only=True)
class LogUsage:
    """The use of the ACLs of a source by the accesses of a window."""

    report: UsageReport
    rejects: Counter[Reason]
    unknown: Premises
    """Settings for which no ACL counts as removable."""

    def premises(self) -> Iterator[str]:
        """Yield what the report does not know, and what it does not count, as sentences."""
        if self.report.is_denials_only:
            yield _DENIALS_ONLY
        if not self.report.has_times:
            yield _NO_TIMES
        if text := holes_text(self.report):
            yield text
        yield from evidence_notes(self.report)
        if self.rejects:
            yield rejects_text(self.rejects)
        if self.report.unread:
            yield f"{unread_text(self.report.unread)}: {unjudged_text(self.report)}"
        if self.unknown:
            yield f"no ACL counts as removable: {self.unknown.unless()}"

    def objects(self) -> Iterator[JsonObject]:
        """Yield an object for each ACL."""
        # `unread` and `premises` are only there if there are any: the other rows keep their keys
        keys, premises = [*_USAGE_KEYS, *(["unread"] if self.report.unread else [])], self.row_premises()
        unlogged, more = unlogged_types(self.report), self._evidence()
        for batch in self.report.rules.select(keys).to_batches(max_chunksize=1 << 14):
            for row in batch.to_pylist():
                own = [each for each in premises if each != _REQUESTS or row["resourceType"] in unlogged]
                known = {"premises": own if row["answer"] in _NEVER else []} if premises else {}
                yield row | known | next(more)

    def with_reasons(self) -> Iterator[JsonObject]:
        """Yield the objects, each with the reason why its ACL is not judged, if it is not."""
        rules = self.report.rules.select(["in_force_from", "in_force_to", "unread", "permissionType"])
        rows = chain.from_iterable(batch.to_pylist() for batch in rules.to_batches(max_chunksize=1 << 14))
        for each, row in zip(self.objects(), rows, strict=True):
            is_judged = each["answer"] != Answer.NOT_JUDGED
            yield each if is_judged else {**each, "reason": why_unjudged(row, self.report)}

    def _evidence(self) -> Iterator[JsonObject]:
        """Yield for each ACL when it was removed, if any was, and since when it is known, if all are too young."""
        removals, youth = self.report.rules.column("in_force_to"), Youth.of(self.report)
        is_any = removals.null_count < len(removals)
        for number, removal in enumerate(removals):
            row: JsonObject = {}
            if is_any:
                row["removedAt"] = as_of_text(removal.as_py()) if removal.is_valid else None
            if youth is not None:
                time = youth.time(number)
                known_since = None if time is None else as_of_text(time)
                row |= {"knownSince": known_since, "judgedByDays": int(youth.days[number]) or None}
            yield row

    def evidence_keys(self) -> list[str]:
        """Return the keys of rows that are only there if an ACL was removed, or if all are younger than the window."""
        return list(next(self._evidence(), {}))

    def row_premises(self) -> list[str]:
        """Return what is unknown, and could turn the answer about an ACL without use: `history`, `days`, `requests`."""
        premises = {
            "history": not self.report.has_times,
            "days": bool(empty_days(self.report)),
            _REQUESTS: bool(unlogged_types(self.report)),
        }
        return [name for name, is_unknown in premises.items() if is_unknown]

    def warn(self) -> None:
        """Warn of what the report does not know, and of lines that are not accesses."""
        warn_of_gaps(self.report)
        warn_of_rejects(self.rejects)


def use_of_acls(
    log: AccessLog,
    choice: ChosenSource,
    settings: Settings,
    days: int | None,
    until: datetime | None,
    configs: AbstractSet[str],
) -> LogUsage:
    """Return the use of the ACLs of a source in the last `days` before `until`, by default the latest access.

    Without `days`, these are 90; if all ACLs are younger, the longest window in which one can be judged, with a note.

    `configs`: the properties of brokers whose values `settings` has. What is unknown of the others is noted, and then
    no ACL counts as removable.

    Raises:
        MetadataError, OSError: the log or the source cannot be read.

    """
    judging = Judging.of(choice, settings)
    unknown = read_premises(choice, configs).without({SUPER_USERS_CONFIG})
    usage_report, counted, fewer = window_report(log, judging, days, until, top=_MOST_DENIALS)
    if fewer:
        note(
            f"no ACL was known {DEFAULT_DAYS} days before the end of the window: the window has "
            f"{plural(fewer, 'day')}, the longest in which an ACL can be judged"
        )
    return LogUsage(
        report=usage_report.without_proof() if unknown else usage_report,
        rejects=counted.rejects,
        unknown=unknown,
    )


DEFAULT_DAYS: Final = 90


def window_report(
    log: AccessLog, judging: Judging, days: int | None, until: datetime | None, *, top: int
) -> tuple[UsageReport, CountedLog, int]:
    """Return the report on a window as use_of_acls chooses it, its counts, and its days if 90 would judge no ACL, or 0.

    `top`: the number of denied accesses to name. Raises as AccessLog.count_window.
    """
    counted, judged = log.count_window(judging, DEFAULT_DAYS if days is None else days, until)
    usage_report = _report(counted, judged, top)
    fewer = judged_days(usage_report) if days is None else 0
    if fewer:
        counted, judged = log.count_window(judging, fewer, usage_report.window.until, is_again=True)
        usage_report = _report(counted, judged, top)
    return usage_report, counted, fewer


def _report(counted: CountedLog, judged: Judged, top: int) -> UsageReport:
    return report(counted.accesses, judged, counted.rows, counted.days, top=top, unread=counted.unread)


def unjudged_text(usage_report: UsageReport) -> str:
    """Return how many ACLs are not judged for accesses that could not be read or decided."""
    rows = zip(
        usage_report.rules.column("unread").to_pylist(), usage_report.rules.column("answer").to_pylist(), strict=True
    )
    unjudged = sum(bool(unread) and answer == Answer.NOT_JUDGED for unread, answer in rows)
    return f"{plural(unjudged, 'ACL')} that may apply to them {'is' if unjudged == 1 else 'are'} {Answer.NOT_JUDGED}"


_DENIALS_ONLY = (
    "all accesses of the log are denials, as Kafka logs at INFO: no ALLOW is judged, and no ACL counts as removable; "
    "at DEBUG kafka.authorizer.logger also logs what it allows"
)
_NO_TIMES = "the source has no history: all of its ACLs are assumed to be in force in the whole window"


def warn_of_gaps(usage_report: UsageReport) -> None:
    """Warn of what the report does not know: use of ALLOWs, when ACLs were in force, and days without any access."""
    if usage_report.is_denials_only:
        warn(_DENIALS_ONLY)
    if not usage_report.has_times:
        note(_NO_TIMES)
    if text := holes_text(usage_report):
        warn(text)


def holes_text(usage_report: UsageReport) -> str:
    """Return which days of the window are without any access; nothing if none is."""
    holes = empty_days(usage_report)
    if not holes:
        return ""
    ranges = list(_day_ranges(holes))
    more = f" and {len(ranges) - _NAMED_HOLES:,} more ranges" if len(ranges) > _NAMED_HOLES else ""
    text = ", ".join(ranges[:_NAMED_HOLES]) + more
    return (
        f"no accesses on {text} ({days_text(len(holes), usage_report)}): the cluster was idle, or the log is incomplete"
    )


def days_text(number: int, usage_report: UsageReport) -> str:
    """Return a number of days of all that the window touches: of 90 days that begin at noon, these are 91 dates."""
    count = len(usage_report.window.days)
    return f"{number:,} of the {count:,} UTC {'date' if count == 1 else 'dates'} of the window, partial ones included"


def empty_days(usage_report: UsageReport) -> list[date]:
    """Return the days of the window without any access: the cluster was idle, or the log is incomplete."""
    return [day for day in usage_report.holes.column("day").to_pylist() if day is not None]


def _day_ranges(days: list[date]) -> Iterator[str]:
    # consecutive days minus their place in the list are all the same day
    for _, together in groupby(enumerate(days), lambda pair: pair[1] - timedelta(days=pair[0])):
        run = [day for _, day in together]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


# `aclog accesses denied`: the denied requests of an access log, and the ACLs that would allow them.


@frozen(eq=False, kw_only=True)
class DeniedRequests:
    """What the ACLs of a state deny of an access log."""

    attempts: Sequence[Attempt]
    tally: Refusals
    rules: Rules
    unknown: Premises
    """Settings that could deny more."""
    unread: UnreadAccesses
    """Accesses that may have been denied, and could not be read or decided."""

    @property
    def is_empty(self) -> bool:
        """Whether it is sure that no request is denied."""
        return not (self.attempts or self.unread or self.unknown)

    def objects(self) -> Iterator[JsonObject]:
        """Yield an object for each attempt; times are in ms since 1970."""
        return (_attempt_object(each, self.rules) for each in self.attempts)

    def additions(self) -> list[JsonObject]:
        """Return the ACLs that would allow what no DENY blocks, in the order of their text."""
        missing = {rule for attempt in self.attempts for rule in attempt.missing}
        rows = sorted(map(object_of_rule, missing), key=lambda row: tuple(row.values()))
        return [{**row} for row in rows]

    def warn(self) -> None:
        """Warn of accesses that are not decided."""
        if self.tally.undecided:
            warn(f"{self.tally.undecided:,} accesses cannot be decided, such as those whose host is no address")
        warn_of_unread(self.unread, "more requests may be denied than are listed")


_NO_ACCESS: Final = "no line is an access: expected one at least"


def denied_requests(
    log: AccessLog,
    choice: ChosenSource,
    settings: Settings,
    *,
    principals: Sequence[str] = (),
    any_host: bool = False,
    configs: AbstractSet[str],
) -> DeniedRequests:
    """Return the denied requests of a log, of some principals or of all, by the ACLs of a state.

    `principals`: one without a type is a User; one without any access in the log is noted, with near ones. All counts
    are of these principals. `any_host`: whether the proposed ACLs allow every host. `configs`: as use_of_acls. Lines
    that are not accesses, and unknown settings that could deny more, are noted.

    Raises:
        ConfigError: no line of the log is an access, or a principal is ambiguous.
        MetadataError, OSError: the log or the source cannot be read.

    """
    judging = Judging.of_state(choice.image(), settings)
    rules, settings = judging.rules, judging.settings
    unknown = read_premises(choice, configs).turning(allowed=True)
    # Accesses without a time count too: the present ACLs decide all of them, whenever they were made.
    counted = log.count(judging.how(None, timeless=True))
    warn_of_rejects(counted.rejects)
    if not len(counted.accesses):
        raise log.error(_NO_ACCESS)
    meant = _meant_principals(counted, principals)
    tally = refusals(_of_principals(counted.accesses, meant), rules, settings)
    unread = UnreadAccesses.sum_of((counted.unread.but_of(settings.super_users).may_be_refusals(), tally.unread))
    return DeniedRequests(
        attempts=attempts_of(tally.refusals, any_host=any_host),
        tally=tally,
        rules=rules,
        unknown=unknown,
        unread=unread.of_principals(meant) if meant else unread,
    )


def _meant_principals(counted: CountedLog, principals: Sequence[str]) -> list[str]:
    """Return the principals that are meant; those without any access in the log are noted, with near ones."""
    if not principals:
        return []
    logged = {str(each) for each in counted.accesses.column("principal").unique().to_pylist()}
    logged |= {key.principal for key in counted.unread.spans if key.principal is not None}
    meant = []
    for text in principals:
        principal, unknown = meant_principal(text, logged, "the log has no access of")
        if unknown is not None:
            note(printable(unknown))
        meant.append(principal)
    return meant


def _of_principals(accesses: pa.Table, principals: Sequence[str]) -> pa.Table:
    """Return the accesses of some principals; without any, all."""
    if not principals:
        return accesses
    return accesses.filter(pc.is_in(accesses.column("principal"), pa.array(principals, pa.string())))


def _attempt_object(attempt: Attempt, rules: Rules) -> JsonObject:
    return {
        "principal": attempt.principal,
        "intent": None if attempt.intent is None else attempt.intent.value,
        "operations": [operation.name for operation in attempt.operations],
        "resourceType": attempt.resource_type.name,
        "resourceName": attempt.resource_name,
        "hosts": list(attempt.hosts),
        "attempts": attempt.attempts,
        "accesses": attempt.accesses,
        "firstAt": None if attempt.first is None else attempt.first // 1000,
        "lastAt": None if attempt.last is None else attempt.last // 1000,
        "missing": [object_of_rule(rule) for rule in attempt.missing],
        "denies": blocking_denies(attempt, rules),
    }


def blocking_denies(attempt: Attempt, rules: Rules) -> list[dict[str, Any]]:
    """Return the DENY rules that block an attempt."""
    rows: list[dict[str, Any]] = rules.table.take(np.array(attempt.denies, np.int64)).to_pylist()
    return rows


# `aclog accesses suggest`: the least ACLs that keep what was used.


@frozen(kw_only=True)
class SuggestOptions:
    """What is suggested, and by which accesses."""

    days: int
    until: datetime | None = None
    """The end of the window; None for the latest access."""
    principals: frozenset[str] = frozenset()
    """Only their ACLs are replaced; without any, all."""
    fold: int | None = 5
    """From so many names on, names become a prefix; None for never."""
    topics: NameFile | None = None
    """Those that exist."""


@frozen(eq=False, kw_only=True)
class ProvedSuggestion:
    """A suggestion that is proved, and what it was made of."""

    suggestion: Suggestion
    now: int
    """The number of present rules."""
    denied: int
    """Accesses that no rule allows, as often as they were made."""
    undecided: int
    """Accesses that cannot be decided."""
    replayed: int
    """Accesses that were decided again, as often as they were made."""
    window: Window
    unread: UnreadAccesses
    """Of the window: not in the proof."""
    without_time: int
    outside: int
    """The number of accesses outside the window, which do not count."""
    rejects: Counter[Reason]

    def objects(self) -> Iterator[JsonObject]:
        """Yield an object for each suggested ACL, with its evidence."""
        return map(_suggested_object, self.suggestion.rules)

    def warn(self) -> None:
        """Note what is proved, and warn of what is not, and of lines and accesses that do not count."""
        denied = self.denied
        if self.unread:
            decided = self.replayed - self.undecided
            warn(
                f"{unread_text(self.unread)}: the rules that may apply to them were not judged, and stay unchanged; "
                f"{_proof_text('every other logged access of the window', decided - denied, denied)}"
            )
        else:
            note(f"proved: {_proof_text('every logged access of the window', self.replayed - denied, denied)}")
        if self.without_time:
            warn(f"{self.without_time:,} accesses have no timestamp: the suggestion does not count them")
        if self.outside:
            begin, end = as_of_text(self.window.start), as_of_text(self.window.until)
            warn(
                f"{plural(self.outside, 'access')} outside the window, {begin} to {end}: the suggestion does not count "
                f"{'it' if self.outside == 1 else 'them'} (--days, --until)"
            )
        warn_of_rejects(self.rejects)


def _proof_text(accesses: str, allowed: int, denied: int) -> str:
    return (
        f"under the suggested rules, {accesses} is decided as before ({allowed:,} allowed, {denied:,} denied), "
        "and no request that the present rules deny becomes allowed"
    )


def suggest_least(
    log: AccessLog,
    choice: ChosenSource,
    settings: Settings,
    options: SuggestOptions,
    configs: AbstractSet[str],
    *,
    each: Each | None = None,
) -> ProvedSuggestion:
    """Return the least ACLs that keep what was used, once they are proved. `configs`: as use_of_acls.

    `each`: what judges the distinct accesses in parts, such as Spark's workers; by default this process.

    Raises:
        SuggestionError: they are not sound.
        ConfigError: a malformed file, a log of denials alone, or what decides is unknown, so that nothing is proved.
        MetadataError, OSError: the log or the source cannot be read.

    """
    image = choice.image()
    refuse_unless_known(read_premises(choice, configs), "no rule can be proved to be enough")
    judging = Judging.of_state(image, settings)
    kafka = judging.rules.intervals.kafka
    # If either Kafka may decide, the rules are suggested as for 4.4, where hosts may be ranges, and proved for each.
    settings = judging.settings if kafka is None else judging.settings.of_generation(Generation.V4_4)
    acls = image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
    counted, judged = log.count_window(judging, options.days, options.until)
    if counted.rows.is_denials_only:
        raise ConfigError(f"{log.names}: {counted.rows.denials_text()}")
    exist = existing_topics(options.topics, (image,), (choice,))
    for principal in sorted(options.principals - image.acls.principals()):
        warn(f"--principal {principal}: no rule is for it")
    with progress("suggesting"):
        accesses = judge(counted.accesses, judging.rules, judging.settings, each)
        of_log = accesses.judged
        unread = UnreadAccesses.sum_of((judged.unread(counted.unread), of_log.undecided))
        question = Question(
            settings=settings,
            fold=options.fold,
            principals=options.principals,
            topics=frozenset() if exist is None else frozenset(exist),
            unread=unread,
            ranges_allow=kafka is None,
        )
        suggestion = accesses.suggest(acls.without_ids(), question)
    with progress("proving"):
        deciding = (settings,) if kafka is None else tuple(map(settings.of_generation, Generation))
        proof, *_ = [accesses.prove(image.acls, suggestion.acls, one) for one in deciding]
    return ProvedSuggestion(
        suggestion=suggestion,
        now=len(acls),
        denied=of_log.denied,
        undecided=of_log.undecided.total,
        replayed=proof.replayed,
        window=judged.window,
        unread=unread,
        without_time=counted.rows.without_time,
        outside=counted.rows.outside,
        rejects=counted.rejects,
    )


def _suggested_object(rule: SuggestedRule) -> JsonObject:
    evidence = rule.evidence
    return {
        **object_of_rule(rule.acl),
        "accesses": evidence.accesses,
        "names": rule.names,
        "firstAt": shown_time(evidence.first),
        "lastAt": shown_time(evidence.last),
        "intents": [intent.value for intent in rule.intents],
        "replaces": [object_of_rule(acl) for acl in rule.replaces],
        "why": rule.why or None,
    }


def shown_time(micros: int | None) -> str | None:
    """Return a time in us since 1970 as text."""
    return None if micros is None else as_of_text(of_micros(micros))


# `aclog accesses simulate`: the accesses of a log that two policies decide differently.


@frozen(eq=False, kw_only=True)
class LogSimulation:
    """The accesses of a log under two policies, for each generation of Kafka that may decide."""

    simulations: Mapping[Generation | GenerationPair | None, Simulation]
    flips: Mapping[Generation | GenerationPair | None, pa.Table]
    """Of each, the most frequent first."""
    unread: UnreadAccesses
    turning: Premises
    """Unknown settings by which an access may be decided differently, where none is known to be."""
    rejects: Counter[Reason]

    @property
    def is_same(self) -> bool:
        """Whether it is sure that every access is decided the same."""
        return not (any(map(len, self.flips.values())) or self.unread or self.turning)

    def objects(self) -> Iterator[JsonObject]:
        """Yield an object for each access that changes; what only one generation of Kafka decides so is marked."""
        rows = {generation: map(_flip_object, flips.to_pylist()) for generation, flips in self.flips.items()}
        for row, only in merged(rows, json_text):
            yield {**row, **generation_object(only)}

    def warn(self) -> None:
        """Warn of accesses that are not decided, and of lines that are not accesses."""
        warn_of_rejects(self.rejects)
        warn_of_unread(self.unread, "rules that may apply to them change: they may be decided differently")
        if self.turning:
            warn(self.turning.decided("every access is decided the same"))


def simulate(log: AccessLog, states: TwoStates) -> LogSimulation:
    """Return the accesses that two policies decide differently.

    Raises:
        ConfigError: no line of the log is an access.
        MetadataError, OSError: the log or a source cannot be read.

    """
    each = states.read_each()
    one = next(iter(each.values()))
    judging = Judging(rules=Rules.of_image(one.old.acls), settings=one.old.settings, own_time=False)
    counted = log.count(judging.how(None, timeless=True))
    if not len(counted.accesses) and not counted.unread:
        warn_of_rejects(counted.rejects)
        raise log.error(_NO_ACCESS)
    simulations = {generation: _simulated(counted, sides) for generation, sides in each.items()}
    is_changed = any(len(own.flips) for own in simulations.values())

    def differs_when_open() -> bool:
        """Decide the accesses once more."""
        return any(len(_simulated(counted, sides, is_open=True).flips) for sides in each.values())

    return LogSimulation(
        simulations=simulations,
        flips={generation: _ordered(own) for generation, own in simulations.items()},
        unread=next((own.unread for own in simulations.values() if own.unread), UnreadAccesses()),
        turning=ALL_KNOWN if is_changed else one.premises.turning(None, differs_when_open),
        rejects=counted.rejects,
    )


def _simulated(counted: CountedLog, sides: Sides, *, is_open: bool = False) -> Simulation:
    """Decide the accesses by both sides; `is_open`: as if what no rule covers were open to everyone."""
    before, after = (
        (Rules.of_image(policy.acls), evolve(policy.settings, allow_everyone=is_open or policy.settings.allow_everyone))
        for policy in (sides.old, sides.new)
    )
    simulation = simulate_changes(counted.accesses, before, after, counted.unread)
    return simulation.by_controllers() if sides.only_controllers else simulation


def _ordered(simulation: Simulation) -> Any:
    return simulation.flips.sort_by([("count", "descending"), *((name, "ascending") for name in REQUEST_COLUMNS)])


def _flip_object(flip: dict[str, Any]) -> JsonObject:
    row = {name: flip[name] for name in ("change", *REQUEST_COLUMNS, "count")}
    for key, name in (("firstAt", "first_at"), ("lastAt", "last_at")):
        row[key] = None if flip[name] is None else as_of_text(flip[name])
    for side in ("Before", "After"):
        for key, name in (("decision", "decision"), ("rule", "rule"), ("ruleId", "rule_id")):
            row[f"{key}{side}"] = flip[f"{name}_{side.lower()}"]
    return row
