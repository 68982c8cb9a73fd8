"""Adds new access-log entries to an index, and reports them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, Self

from attrs import asdict, field

from aclog.authorizer.audit import Reason
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import SETTLED
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen
from aclog.ops.policies import read_premises, refuse_unless_known
from aclog.ops.usage import AccessLog, Judging, warn_of_long_lines, warn_of_rejects, warn_of_unread
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import cluster_of
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import note, optional_time_text, say, time_text, warn
from aclog.usage.accesses.access_log import NewAccesses, Part, only_new
from aclog.usage.accesses.lines import LongLine
from aclog.usage.counting import RowCounts
from aclog.usage.index.stored import index_place, writing_index
from aclog.usage.index.tallies import DayTally, Spool
from aclog.usage.index.usage_index import KAFKA, PROPERTIES_KEY, REGISTERED, Position, Run, TakenContent, UsageIndex
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
class Totals:
    """What came along while the log was tallied."""

    coverage: Coverage = field(factory=Coverage.nothing)
    rejects: Counter[Reason] = field(factory=Counter)
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """What could not be read, or has no time."""
    undecided: UnreadAccesses = field(factory=UnreadAccesses)
    rows: RowCounts = field(factory=RowCounts)
    long_lines: list[LongLine] = field(factory=list)

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
                self.rows = RowCounts.sum_of((self.rows, part.counted.rows))
                self.long_lines += part.counted.long_lines
                yield from part.tallies


def update_index(
    source: SourceFlags,
    flags: AccessesFlags,
    settings: Settings,
    place: Path | str,
    output: Output,
    log: AccessLog | None = None,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Take what is new in an access log into an index, and print what that was.

    `place`: the index, as --index names it. `log`: what the flags name, by default read by processes of this machine.
    `configs`: the properties of brokers whose values `settings` has.

    Raises:
        ConfigError: what decides is unknown: the index keeps what accesses needed, for good.
        MetadataError, OSError: the log, the source or the index cannot be read, or the index not written.

    """
    index_place(place)  # before the log is copied
    log = log or flags.open()
    choice = source.choose()
    cluster_id = cluster_of(choice.source)
    with writing_index(place, kept=NothingTakenError) as index:
        index.check_cluster(cluster_id)  # before hours of reading
        version = index.contents_version
        with progress("looking for what is new", BYTES) as advance:
            new = only_new(log.accesses, index.known_contents(), advance)
        runs, added = IndexRuns(index=index, settings=settings, configs=configs), AddedRun.nothing(new)
        try:
            if new.contents:
                added = runs.take(choice, new, log.each, contents_version=version)
        except NothingTakenError as error:
            raise note_waiting(index, error, flags.accesses_format) from error
    print_taken(output, added)


class NothingTakenError(ConfigError):
    """No line was understood, or by none of them any rule is needed."""

    def __init__(self, text: str, unread: UnreadAccesses) -> None:
        super().__init__(text)
        self.unread = unread


def note_waiting(index: UsageIndex, error: NothingTakenError, stated_format: str | None) -> NothingTakenError:
    """Note the unread accesses of what was not taken, and may be read again; return the error, which names them.

    Those that a stated format does not read are not noted: it may be the wrong one.
    """
    if not error.unread or stated_format is not None:
        return NothingTakenError(str(error), error.unread)
    index.note_unread(error.unread, current_time_ms() * 1000)
    return NothingTakenError(f"{error}, but the index notes that {unread_text(error.unread)}", error.unread)


@frozen(eq=False, kw_only=True)
class AddedRun:
    """What a run has added."""

    new: NewAccesses
    totals: Totals
    acls: int
    own_time: bool

    @classmethod
    def nothing(cls, new: NewAccesses, unread: UnreadAccesses | None = None) -> Self:
        """Return a run without new accesses, or only with unread ones."""
        return cls(new=new, totals=Totals(unread=unread or UnreadAccesses()), acls=0, own_time=True)


@frozen(eq=False, kw_only=True)
class IndexRuns:
    """The runs of a command."""

    index: UsageIndex
    settings: Settings
    configs: AbstractSet[str]
    """The properties of brokers whose values `settings` has."""

    def take(
        self,
        choice: ChosenSource,
        new: NewAccesses,
        each: Each,
        *,
        contents_version: int | None,
        positions: Sequence[Position] = (),
    ) -> AddedRun:
        """Judge new accesses by the ACLs of a source, and add them in one transaction.

        `contents_version`: that of the index when the files were compared with it; `positions`: those after what was
        read of streams.

        Raises:
            NothingTakenError: no access is understood, or all are denials.
            ConfigError: what decides is unknown, or the index has changed meanwhile.
            MetadataError, OSError: the log, the source or the index cannot be read, or the index not written.

        """
        index, settings, configs = self.index, self.settings, self.configs
        judging = Judging.of(choice, settings)
        settings, rules_kafka = judging.settings, judging.rules.intervals.kafka
        premises = read_premises(choice, configs)
        refuse_unless_known(premises, "what accesses need cannot be judged")
        rules, totals = seen_rules(judging.rules, own_time=judging.own_time), Totals()
        parts = tally_log(new.input.parts, judging.how(None), each)
        with Spool.of(totals.tallies(parts), index.database.path.parent) as spool:
            totals.unread = totals.unread.but_of(settings.super_users)
            warn_of_long_lines(totals.long_lines)
            if (complaint := _complaint(totals, new)) is not None:
                raise NothingTakenError(complaint, totals.all_unread)
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
                contents_version=contents_version,
                positions=positions,
                cluster_id=cluster_of(choice.source),
            )
            with progress("writing the index"):
                index.take(run, spool)
        return AddedRun(new=new, totals=totals, acls=len(rules), own_time=judging.own_time)


def _complaint(totals: Totals, new: NewAccesses) -> str | None:
    """Return why files are not remembered of which nothing was understood, or by which no rule is ever needed."""
    name, number = new.input.files[0].path, max(1, len(new.contents))
    if new.contents:
        name = new.contents[0].content.name
    if totals.rows.is_denials_only:
        of = f" of {plural(number, 'file')}"
        return f"{name}: {totals.rows.denials_text(of)}: nothing was taken"
    untimed = totals.rows.without_time
    if totals.lines or not (totals.rejects or untimed):
        return None
    reasons = [f"{reason} {count:,}" for reason, count in totals.rejects.most_common()]
    reasons += [f"without a time {untimed:,}"] if untimed else []
    return (
        f"{name}: no line of {plural(number, 'file')} is an access with a time: {', '.join(reasons)}: nothing was taken"
    )


def _content_of(part: Part) -> TakenContent:
    length, digest = part.content.key
    return TakenContent(length, digest, part.content.name, part.start)


def print_taken(output: Output, added: AddedRun) -> None:
    """Print what a run has added, and warn of the rest."""
    new, totals = added.new, added.totals
    if not added.own_time:
        note("the source has no history: all of its ACLs count as in force for all that was read")
    row, unread = taken_row(added), totals.all_unread
    if output.is_rows:
        columns = (*TAKEN_COLUMNS, UNREAD_COLUMN) if unread else TAKEN_COLUMNS
        output.print_rows(columns, [row])
    else:
        for line in _lines(row):
            say(printable(line))
    for path in new.waiting:
        note(f"{path}: its last line is not complete yet: a later run reads it")
    if untimed := totals.rows.without_time:
        warn(f"{untimed:,} accesses have no timestamp: they do not count")
    warn_of_rejects(totals.rejects)
    warn_of_unread(unread, "the index records them, and no rule that they may need is reported as unused")


def taken_row(added: AddedRun) -> Row:
    """Return a run as a JSON object; `unread` is only in it if there is any."""
    new, totals = added.new, added.totals
    covered = totals.coverage
    first, last = (int(covered.first.min()) // 1000, int(covered.last.max()) // 1000) if len(covered) else (None, None)
    unread: Row = {"unread": totals.all_unread.total} if totals.all_unread else {}
    return {
        "files": new.files,
        "newFiles": len(new.contents) - new.grown,
        "grownFiles": new.grown,
        "accesses": totals.lines,
        "rejected": sum(totals.rejects.values()),
        "first": first,
        "last": last,
        "brokers": [broker for broker in covered.brokers if broker is not None],
        "acls": added.acls,
        **unread,
    }


def _lines(row: Row) -> Iterator[str]:
    yield f"{plural(row['files'], 'file')}, {row['newFiles']:,} of them new, {row['grownFiles']:,} grown"
    if row["first"] is None:
        yield "nothing new"
        return
    brokers = f", of brokers {', '.join(row['brokers'])}" if row["brokers"] else ""
    accesses = "1 access" if row["accesses"] == 1 else f"{row['accesses']:,} accesses"
    yield f"{accesses} from {time_text(row['first'])} to {time_text(row['last'])}{brokers}"
    yield f"judged by {plural(row['acls'], 'ACL')}"
