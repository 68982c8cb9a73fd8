"""Adds what is new in an access log to an index, and says what that was."""

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from attrs import asdict, define, field

from aclog.authorizer.audit import Reason
from aclog.authorizer.premises import SETTLED
from aclog.authorizer.settings import Settings
from aclog.cli.access_log import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.cli.flags.common import AccessesFlags, Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.policies import read_premises, refuse_unless_known
from aclog.cli.unused_wording import unread_text
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError, printable
from aclog.sources.logs import LogSource, cluster_id_of
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import BYTES, note, progress, say, time_text, warn
from aclog.usage.accesses.access_log import NewAccesses, Part, only_new
from aclog.usage.coverage import Coverage
from aclog.usage.index.tallies import DayTally, Spool
from aclog.usage.index.usage_index import GIVEN, KAFKA, REGISTERED, Run, TakenContent, UsageIndex
from aclog.usage.judging import Each, TalliedPart, tally_log
from aclog.usage.rules import seen_rules
from aclog.usage.window import UnreadAccesses


def _time_text(timestamp: int | None) -> str:
    return "" if timestamp is None else time_text(timestamp)


TAKEN_COLUMNS: Final = (
    Column(key="files"),
    Column(key="newFiles"),
    Column(key="grownFiles"),
    Column(key="accesses"),
    Column(key="rejected"),
    Column(key="first", text=_time_text),
    Column(key="last", text=_time_text),
    Column(key="brokers", cut=True),
    Column(key="acls"),
)
"""What a run took."""
UNREAD_COLUMN: Final = Column(key="unread")
"""If there is anything that could not be read or decided."""


@define(eq=False)
class _Seen:
    """What came along while the log was tallied."""

    coverage: Coverage = field(factory=Coverage.nothing)
    rejects: Counter[Reason] = field(factory=Counter)
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """What could not be read, or has no time."""
    undecided: UnreadAccesses = field(factory=UnreadAccesses)
    untimed: int = 0
    """Accesses without a time."""
    denials: int = 0
    """Those that the log itself calls denied."""

    @property
    def all_unread(self) -> UnreadAccesses:
        """What could not be read or decided."""
        return UnreadAccesses.sum_of((self.unread, self.undecided))

    @property
    def lines(self) -> int:
        """The accesses with a time."""
        return int(self.coverage.rows.sum())

    def tallies(self, parts: Iterable[TalliedPart]) -> Iterator[DayTally]:
        """Yield the tallies, and note the rest."""
        with progress("reading the accesses", "rows") as advance:
            done = 0
            for part in parts:
                done += part.counted.rows.total
                advance(done, None)
                self.coverage = Coverage.sum((self.coverage, part.counted.coverage))
                self.rejects += part.counted.rejects
                self.unread = UnreadAccesses.sum_of((self.unread, part.counted.unread))
                self.undecided = UnreadAccesses.sum_of((self.undecided, *(tally.unread for tally in part.tallies)))
                self.untimed += part.counted.rows.without_time
                self.denials += part.counted.logged_denials
                yield from part.tallies


def update_index(
    source: SourceFlags,
    flags: AccessesFlags,
    settings: Settings,
    directory: Path,
    output: Output,
    each: Each | None = None,
    *,
    given: AbstractSet[str] = frozenset(),
) -> None:
    """Take what is new in an access log into an index, and print what that was.

    `each` reads and judges it, by default processes of this machine. `given`: the properties of brokers whose values
    `settings` has.

    Raises:
        ConfigError: what decides is unknown: the index keeps what accesses needed, for good.
        MetadataError, OSError: the log, the source or the index cannot be read, or the index not written.

    """
    log = AccessLog.of(flags, each)
    chosen = source.choose()
    cluster_id = cluster_id_of(chosen.source.directory) if isinstance(chosen.source, LogSource) else None
    with UsageIndex.create(directory) as index:
        index.check_cluster(cluster_id)  # before hours of reading
        version = index.contents_version
        with progress("looking for what is new", BYTES) as advance:
            new = only_new(log.found, index.known_contents(), advance)
        if not new.contents:
            _print(output, new, _Seen(), 0)
            return
        judging = Judging.of(chosen, settings)
        settings, rules_kafka = judging.settings, judging.rules.intervals.kafka
        premises = read_premises(chosen, given)
        refuse_unless_known(premises, "what accesses need cannot be judged")
        rules, seen = seen_rules(judging.rules, own_time=judging.own_time), _Seen()
        parts = tally_log(new.input.parts, judging.how(None), log.each)
        with Spool.of(seen.tallies(parts), directory) as spool:
            seen.unread = seen.unread.but_of(settings.super_users)
            if (complaint := _complaint(seen, new)) is not None:
                if seen.all_unread and flags.accesses_format is None:  # else it may be the wrong one
                    index.note_unread(seen.all_unread, current_time_ms() * 1000)
                    complaint += f", but the index notes that {unread_text(seen.all_unread)}"
                raise ConfigError(complaint)
            run = Run(
                rules=rules,
                source=chosen.source.name,
                settings={
                    **asdict(settings, filter=lambda attribute, _: attribute.name != "is_kafka_stated"),
                    "super_users": sorted(settings.super_users),
                    **({} if rules_kafka is None else {KAFKA: REGISTERED}),
                    GIVEN: sorted((given | SETTLED if chosen.is_live else given) - set(premises.names)),
                },
                at=current_time_ms(),
                coverage=seen.coverage,
                unread=seen.unread,
                contents=[_taken(part) for part in new.contents],
                contents_version=version,
                cluster_id=cluster_id,
            )
            with progress("writing the index"):
                index.take(run, spool)
    if not judging.own_time:
        note("the source has no times: all of its ACLs count as in force for all that was read")
    _print(output, new, seen, len(rules))


def _complaint(seen: _Seen, new: NewAccesses) -> str | None:
    """Return why files are not remembered of which nothing was understood, or by which no rule is ever needed."""
    if seen.denials and seen.denials == seen.lines + seen.untimed:
        return (
            f"{new.contents[0].content.path}: all {seen.denials:,} accesses of {len(new.contents):,} files are "
            "denials, by which no rule is ever needed: Kafka logs what it allows only if kafka.authorizer.logger is at "
            "DEBUG: nothing was taken"
        )
    if seen.lines or not (seen.rejects or seen.untimed):
        return None
    reasons = [f"{reason} {count:,}" for reason, count in seen.rejects.most_common()]
    reasons += [f"without a time {seen.untimed:,}"] if seen.untimed else []
    return (
        f"{new.contents[0].content.path}: no line of {len(new.contents):,} files is an access with a time: "
        f"{', '.join(reasons)}: nothing was taken"
    )


def _taken(part: Part) -> TakenContent:
    length, digest = part.content.known
    return TakenContent(length, digest, part.content.path, part.start)


def _print(output: Output, new: NewAccesses, seen: _Seen, acls: int) -> None:
    covered = seen.coverage
    first, last = (int(covered.first.min()) // 1000, int(covered.last.max()) // 1000) if len(covered) else (None, None)
    row: Row = {
        "files": new.files,
        "newFiles": len(new.contents) - new.grown,
        "grownFiles": new.grown,
        "accesses": seen.lines,
        "rejected": sum(seen.rejects.values()),
        "first": first,
        "last": last,
        "brokers": [broker for broker in covered.brokers if broker is not None],
        "acls": acls,
    }
    unread = seen.all_unread
    if output.is_rows:
        columns = (*TAKEN_COLUMNS, UNREAD_COLUMN) if unread else TAKEN_COLUMNS
        output.print_rows(columns, [{**row, "unread": unread.total} if unread else row])
    else:
        for line in _lines(row):
            say(printable(line))
    for path in new.waiting:
        note(f"{path}: its last line is not whole yet, and is left for the next time")
    if seen.untimed:
        warn(f"{seen.untimed:,} accesses have no time: they were left out")
    warn_of_rejects(seen.rejects)
    warn_of_unread(unread, "the index keeps that, and no rule that they may need is called unused")


def _lines(row: Row) -> Iterator[str]:
    yield f"{row['files']:,} files, {row['newFiles']:,} of them new, {row['grownFiles']:,} grown"
    if row["first"] is None:
        yield "nothing new"
        return
    brokers = f", of brokers {', '.join(row['brokers'])}" if row["brokers"] else ""
    yield f"{row['accesses']:,} accesses from {time_text(row['first'])} to {time_text(row['last'])}{brokers}"
    yield f"judged by {row['acls']:,} ACLs"
