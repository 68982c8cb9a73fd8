"""Adds new access-log entries to an index, and reports them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from attrs import asdict, define, field

from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import SETTLED
from aclog.cli.flags.common import AccessesFlags, Output, SourceFlags
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.primitives import current_time_ms
from aclog.ops.policies import read_premises, refuse_unless_known
from aclog.ops.usage import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.sources.logs import LogSource, cluster_id_of
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import note, optional_time_text, say, time_text, warn
from aclog.usage.accesses.access_log import NewAccesses, Part, only_new
from aclog.usage.index.tallies import DayTally, Spool
from aclog.usage.index.usage_index import KAFKA, PROPERTIES_KEY, REGISTERED, Run, TakenContent, UsageIndex
from aclog.usage.judging import Each, TalliedPart, tally_log
from aclog.usage.rules import seen_rules
from aclog.usage.window import Coverage, UnreadAccesses, unread_text

TAKEN_COLUMNS: Final = (
    Column(key="files"),
    Column(key="newFiles"),
    Column(key="grownFiles"),
    Column(key="accesses"),
    Column(key="rejected"),
    Column(key="first", text=optional_time_text),
    Column(key="last", text=optional_time_text),
    Column(key="brokers", cut=True),
    Column(key="acls"),
)
"""What a run took."""
UNREAD_COLUMN: Final = Column(key="unread")
"""If there is anything that could not be read or decided."""


@define(eq=False)
class _Totals:
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
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Take what is new in an access log into an index, and print what that was.

    `each` reads and judges it, by default processes of this machine. `configs`: the properties of brokers whose values
    `settings` has.

    Raises:
        ConfigError: what decides is unknown: the index keeps what accesses needed, for good.
        MetadataError, OSError: the log, the source or the index cannot be read, or the index not written.

    """
    log = AccessLog.of(flags, each, explain=flags.explain_unread)
    choice = source.choose()
    cluster_id = cluster_id_of(choice.source.directory) if isinstance(choice.source, LogSource) else None
    with UsageIndex.create(directory) as index:
        index.check_cluster(cluster_id)  # before hours of reading
        version = index.contents_version
        with progress("looking for what is new", BYTES) as advance:
            new = only_new(log.accesses, index.known_contents(), advance)
        if not new.contents:
            _print(output, new, _Totals(), 0)
            return
        judging = Judging.of(choice, settings)
        settings, rules_kafka = judging.settings, judging.rules.intervals.kafka
        premises = read_premises(choice, configs)
        refuse_unless_known(premises, "what accesses need cannot be judged")
        rules, totals = seen_rules(judging.rules, own_time=judging.own_time), _Totals()
        parts = tally_log(new.input.parts, judging.how(None), log.each)
        with Spool.of(totals.tallies(parts), directory) as spool:
            totals.unread = totals.unread.but_of(settings.super_users)
            if (complaint := _complaint(totals, new)) is not None:
                if totals.all_unread and flags.accesses_format is None:  # else it may be the wrong one
                    index.note_unread(totals.all_unread, current_time_ms() * 1000)
                    complaint += f", but the index notes that {unread_text(totals.all_unread)}"
                raise ConfigError(complaint)
            run = Run(
                rules=rules,
                source=choice.source.name,
                settings={
                    **asdict(settings, filter=lambda attribute, _: attribute.name != "is_kafka_stated"),
                    "super_users": sorted(settings.super_users),
                    **({} if rules_kafka is None else {KAFKA: REGISTERED}),
                    PROPERTIES_KEY: sorted((configs | SETTLED if choice.is_live else configs) - set(premises.names)),
                },
                at=current_time_ms(),
                coverage=totals.coverage,
                unread=totals.unread,
                contents=[_content_of(part) for part in new.contents],
                contents_version=version,
                cluster_id=cluster_id,
            )
            with progress("writing the index"):
                index.take(run, spool)
    if not judging.own_time:
        note("the source has no times: all of its ACLs count as in force for all that was read")
    _print(output, new, totals, len(rules))


def _complaint(totals: _Totals, new: NewAccesses) -> str | None:
    """Return why files are not remembered of which nothing was understood, or by which no rule is ever needed."""
    if totals.denials and totals.denials == totals.lines + totals.untimed:
        return (
            f"{new.contents[0].content.name}: all {totals.denials:,} accesses of {len(new.contents):,} files are "
            "denials, by which no rule is ever needed: Kafka logs what it allows only if kafka.authorizer.logger is at "
            "DEBUG: nothing was taken"
        )
    if totals.lines or not (totals.rejects or totals.untimed):
        return None
    reasons = [f"{reason} {count:,}" for reason, count in totals.rejects.most_common()]
    reasons += [f"without a time {totals.untimed:,}"] if totals.untimed else []
    return (
        f"{new.contents[0].content.name}: no line of {len(new.contents):,} files is an access with a time: "
        f"{', '.join(reasons)}: nothing was taken"
    )


def _content_of(part: Part) -> TakenContent:
    length, digest = part.content.key
    return TakenContent(length, digest, part.content.name, part.start)


def _print(output: Output, new: NewAccesses, totals: _Totals, acls: int) -> None:
    covered = totals.coverage
    first, last = (int(covered.first.min()) // 1000, int(covered.last.max()) // 1000) if len(covered) else (None, None)
    row: Row = {
        "files": new.files,
        "newFiles": len(new.contents) - new.grown,
        "grownFiles": new.grown,
        "accesses": totals.lines,
        "rejected": sum(totals.rejects.values()),
        "first": first,
        "last": last,
        "brokers": [broker for broker in covered.brokers if broker is not None],
        "acls": acls,
    }
    unread = totals.all_unread
    if output.is_rows:
        columns = (*TAKEN_COLUMNS, UNREAD_COLUMN) if unread else TAKEN_COLUMNS
        output.print_rows(columns, [{**row, "unread": unread.total} if unread else row])
    else:
        for line in _lines(row):
            say(printable(line))
    for path in new.waiting:
        note(f"{path}: its last line is not whole yet, and is left for the next time")
    if totals.untimed:
        warn(f"{totals.untimed:,} accesses have no time: they were left out")
    warn_of_rejects(totals.rejects)
    warn_of_unread(unread, "the index keeps that, and no rule that they may need is called unused")


def _lines(row: Row) -> Iterator[str]:
    yield f"{row['files']:,} files, {row['newFiles']:,} of them new, {row['grownFiles']:,} grown"
    if row["first"] is None:
        yield "nothing new"
        return
    brokers = f", of brokers {', '.join(row['brokers'])}" if row["brokers"] else ""
    yield f"{row['accesses']:,} accesses from {time_text(row['first'])} to {time_text(row['last'])}{brokers}"
    yield f"judged by {row['acls']:,} ACLs"
