"""An access log in a topic of Kafka, for `aclog accesses index`: each record counts once, lost ones are recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import field

from aclog.authorizer.settings import Settings
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.index_update import AddedRun, IndexRuns, NothingTakenError, note_waiting, print_taken
from aclog.config.client_config import librdkafka_properties
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.topiclog import TopicId, TopicSettings
from aclog.metalog.values import define
from aclog.ops.usage import TOPIC_SCHEME, note_input, stated_format, workers_for, zone_of
from aclog.sources.choice import ChosenSource
from aclog.terminal.output import time_text, warn
from aclog.usage.accesses.access_log import AccessInput, NewAccesses, accesses_in
from aclog.usage.accesses.lines import PinnedFile, StreamCopy
from aclog.usage.index.stored import writing_batches
from aclog.usage.index.usage_index import Position, UsageIndex
from aclog.usage.window import DAY, LOST_RECORDS, UnreadAccesses, UnreadCounter, UnreadSpan

if TYPE_CHECKING:
    from aclog.metalog.topiclog import TopicRecords
    from aclog.metalog.topiclog.records import Place

# A batch of records is copied to a temporary file, whose lines are read as those of any access log. The positions after
# the batch go into the index with it, in one transaction: after a kill, the next run begins where the index ends. The
# consumer commits no offsets, and the topic needs no consumer group.


_MOST_BYTES: Final = 1 << 28
"""The approximate size of a batch: it bounds the temporary file and the time until a signal is noticed."""
_FIELDS: Final = ("offset", "epoch", "time", "since")
"""The streams of a partition in the index: those of Place, and since when records may be unread."""


def topic_settings(flags: AccessesFlags, command_config: Path | None) -> TopicSettings | None:
    """Return the topic that --accesses names; None for files.

    Raises:
        ConfigError: a topic beside other paths, no address, or a bad properties file.

    """
    from aclog.sources.server_flags import client_security, parse_servers

    topics = [path for path in flags.accesses if path.startswith(TOPIC_SCHEME)]
    if not topics:
        if command_config is not None:
            raise ConfigError(f"--accesses-command-config: expected --accesses {TOPIC_SCHEME}HOST:PORT/TOPIC")
        return None
    if len(flags.accesses) > 1:
        raise ConfigError(f"--accesses {topics[0]}: expected no other --accesses beside a topic")
    servers, slash, topic = topics[0].removeprefix(TOPIC_SCHEME).partition("/")
    if not slash or not topic or "/" in topic or not servers:
        raise ConfigError(f"--accesses {topics[0]}: expected {TOPIC_SCHEME}HOST:PORT[,HOST:PORT...]/TOPIC")
    parse_servers("--accesses", servers)
    flags.moment().check_used(flags.accesses, ())
    where = "" if command_config is None else f"{command_config}: "
    properties = librdkafka_properties(client_security(command_config), where)
    return TopicSettings(topic=topic, properties={"bootstrap.servers": servers, **properties})


class _Loss(NamedTuple):
    """Records that cannot be read any more."""

    partition: int
    records: int
    """0 if their number is unknown."""
    since: int
    """The time from which records may be unread, in ms since 1970; 0: it is unknown."""
    why: str


class _Progress(NamedTuple):
    """What was read of a partition."""

    place: "Place"
    since: int
    """A time, in ms since 1970, before which all records were written that are before the place, or are in the index as
    lost. It is that of this machine, when the end of the partition was at the place: the times of records are those of
    their producers. 0: that is not known.
    """

    @property
    def numbers(self) -> dict[str, int]:
        """The values of _FIELDS."""
        return dict(zip(_FIELDS, (*self.place, self.since), strict=True))

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> "_Progress":
        """Return that of stored values; those of an earlier version have no `since`."""
        from aclog.metalog.topiclog.records import Place

        *place, since = (numbers.get(kind, 0) for kind in _FIELDS)
        return cls(Place(*place), since)


class _Look(NamedTuple):
    """The partitions at the beginning of a step."""

    at: int
    """A time before all of this was determined, in ms since 1970."""
    topic_id: "TopicId"
    bounds: dict[int, tuple[int, int]]


@define(eq=False, kw_only=True)
class TopicFeed:
    """The records of a topic."""

    topic: TopicSettings
    records: "TopicRecords"
    flags: AccessesFlags
    follow: bool
    """Whether to read what was written since the start."""
    most_bytes: int = _MOST_BYTES
    has_more: bool = field(default=False, init=False)
    _first: _Look | None = field(default=None, init=False)
    """The look whose ends are those to read to."""

    def step(self, runs: IndexRuns, choose: Callable[[], ChosenSource]) -> AddedRun | None:
        """See Feed."""
        from aclog.metalog.topiclog.records import GoneError

        records, look = self.records, self._look()
        if self._first is None or self.follow or self._first.topic_id != look.topic_id:
            self._first = look
        ends = {partition: end for partition, (_, end) in self._first.bounds.items()}
        numbers = runs.index.positions(self._prefix(look.topic_id.kafka_cluster_id))
        starts = self._starts(runs.index, look, numbers)
        places = {partition: start.place for partition, start in starts.items()}
        bounds = {partition: (low, min(ends.get(partition, 0), end)) for partition, (low, end) in look.bounds.items()}
        after = dict(places)
        try:
            copy = StreamCopy.of_lines(self._lines(records, places, bounds, after), self.topic.name)
        except GoneError as error:
            loss, moved = self._loss(error.partition, starts[error.partition], records.bounds(error.partition))
            self._note_lost(runs.index, look, [loss], numbers, {error.partition: moved})
            return self.step(runs, choose)
        with copy:
            if after == places:
                return None
            if records.describe()[0] != look.topic_id:  # its records are not those of the stored positions
                raise LogError(f"{self.topic.name}: the topic was created again while it was being read: run again")
            reached = {
                partition: _Progress(place, max(starts[partition].since, self._read_until(look, partition, place)))
                for partition, place in after.items()
            }
            return self._take(runs, choose, copy, self._positions(look.topic_id, numbers, reached))

    def _look(self) -> _Look:
        at = current_time_ms()
        topic_id, number = self.records.describe()
        return _Look(at, topic_id, {partition: self.records.bounds(partition) for partition in range(number)})

    def _read_until(self, look: _Look, partition: int, place: "Place") -> int:
        """Return the time of the latest look at which a partition ended at a place or before it; 0 without one."""
        for each in (look, self._first):
            if each is not None and partition in each.bounds and each.bounds[partition][1] <= place.offset:
                return each.at
        return 0

    @property
    def status(self) -> str:
        """See Feed."""
        return self.topic.name

    def _lines(
        self,
        records: "TopicRecords",
        starts: Mapping[int, "Place"],
        bounds: Mapping[int, tuple[int, int]],
        after: dict[int, "Place"],
    ) -> Iterator[bytes]:
        """Yield the records of a batch, each as a line, and move `after` past them."""
        size, self.has_more = 0, False
        for read in records.read(starts, bounds):
            if read.value is None:
                place = after[read.partition]
                after[read.partition] = place._replace(offset=max(place.offset, read.place.offset))
                continue
            after[read.partition] = read.place
            if line := read.value.rstrip(b"\r\n"):
                size += len(line) + 1
                yield line + b"\n"
            if size >= self.most_bytes:
                self.has_more = True
                return

    def _take(
        self, runs: IndexRuns, choose: Callable[[], ChosenSource], copy: StreamCopy, positions: Sequence[Position]
    ) -> AddedRun:
        form, profile = stated_format(self.flags.accesses_format)
        file = PinnedFile.of(f"{self.topic.name} (records)", copy.place)  # a topic may be named like a packed file
        log = accesses_in([file], zone_of(self.flags), form, profile)
        new = NewAccesses(input=log, contents=(), files=1, waiting=())
        if not log.files:  # only records of other logs
            runs.index.note_lost(UnreadAccesses(), positions, current_time_ms() * 1000)
            return AddedRun.nothing(new)
        note_input(log, self.flags.explain_unread)
        each = workers_for(file.size, self.flags.workers)
        try:
            return runs.take(choose(), new, each, contents_version=None, positions=positions)
        except NothingTakenError as error:
            is_perhaps_misread = bool(error.unread) and self.flags.accesses_format is not None
            if not self.has_more or is_perhaps_misread:
                raise note_waiting(runs.index, error, self.flags.accesses_format) from error
            # the next batch would be the same one: it cannot grow
            runs.index.note_lost(error.unread, positions, current_time_ms() * 1000)
            warn(f"{error}: reading continues with the records after them")
            return AddedRun.nothing(new, error.unread)

    def _prefix(self, cluster_id: str) -> str:
        return f"kafka:{cluster_id}:{self.topic.topic}:"

    def _starts(self, index: UsageIndex, look: _Look, numbers: dict[str, int]) -> dict[int, _Progress]:
        """Return where to begin, by partition, after what is lost was recorded; `numbers`: those of the index."""
        prefix = self._prefix(look.topic_id.kafka_cluster_id)
        fields: dict[str, dict[int, dict[str, int]]] = {}
        for name, number in numbers.items():
            own_id, text, kind = name.removeprefix(prefix).split(":")
            fields.setdefault(own_id, {}).setdefault(int(text), {})[kind] = number
        topics = {own_id: {key: _Progress.of(each) for key, each in of.items()} for own_id, of in fields.items()}
        stored = topics.get(look.topic_id.topic_id, {})
        # a partition without a place did not exist at any look of the stored ones
        since = max((each.since for each in stored.values()), default=0)
        if topics and not stored:
            latest = max(topics.values(), key=lambda each: max(progress.since for progress in each.values()))
            since = min(progress.since for progress in latest.values())
        losses, moved, starts = list[_Loss](), dict[int, _Progress](), dict[int, _Progress]()
        for partition, (low, high) in look.bounds.items():
            start = stored.get(partition)
            if start is None:
                start = _Progress(_begin(low), look.at if low == high else since)
                if topics and not stored:
                    losses.append(_Loss(partition, 0, since, "the topic was deleted and created again"))
                    moved[partition] = start
                elif topics and low:
                    losses.append(_Loss(partition, low, since, "the first records of a new partition were removed"))
                    moved[partition] = start
            elif not low <= start.place.offset <= high:
                loss, moved[partition] = self._loss(partition, start, (low, high))
                losses.append(loss)
            starts[partition] = moved.get(partition, start)
        if losses:
            self._note_lost(index, look, losses, numbers, moved)
        return starts

    def _loss(self, partition: int, start: _Progress, bounds: tuple[int, int]) -> tuple[_Loss, _Progress]:
        """Return what is lost after a place, and the next place that exists."""
        (low, high), place = bounds, start.place
        if place.offset < low:
            loss = _Loss(partition, low - place.offset, start.since, "retention has removed records")
        else:
            loss = _Loss(partition, 0, start.since, "the log of the partition was truncated")
        return loss, start._replace(place=_begin(min(max(place.offset, low), high)))

    def _note_lost(
        self,
        index: UsageIndex,
        look: _Look,
        losses: Sequence[_Loss],
        numbers: dict[str, int],
        moved: Mapping[int, _Progress],
    ) -> None:
        """Record what is lost together with the places behind it, also in `numbers`, which are those of the index."""
        now = current_time_ms()
        unread = UnreadCounter()
        for each in losses:
            # an access is logged before its record is written
            first = max(min(each.since, now) * 1000 - DAY, 0)
            unread.add(None, None, LOST_RECORDS, UnreadSpan(each.records, first, now * 1000))
            number = f"{each.records:,} records" if each.records else "records"
            since = f" since {time_text(each.since)}" if each.since else ""
            warn(
                f"{self.topic.name}: partition {each.partition}: {number}{since} cannot be read: {each.why}: no rule "
                "is reported as unused for that time"
            )
        positions = self._positions(look.topic_id, numbers, moved)
        index.note_lost(unread.total, positions, now * 1000)
        numbers.update({each.stream: each.number for each in positions})

    def _positions(
        self, topic_id: "TopicId", numbers: Mapping[str, int], after: Mapping[int, _Progress]
    ) -> list[Position]:
        prefix = f"{self._prefix(topic_id.kafka_cluster_id)}{topic_id.topic_id}:"
        names = {
            f"{prefix}{key}:{kind}": number for key, each in after.items() for kind, number in each.numbers.items()
        }
        return [Position(name, number, numbers.get(name)) for name, number in names.items()]


@contextmanager
def topic_feed(topic: TopicSettings, flags: AccessesFlags, *, follow: bool) -> Iterator[TopicFeed]:
    """Yield what reads a topic, up to its present end or, to `follow` it, on.

    Raises:
        ConfigError, LogError: no such topic, no broker responds, or one refuses; confluent-kafka is not installed.

    """
    from aclog.metalog.topiclog import TopicRecords  # it takes an extra

    records = TopicRecords.open(topic)
    try:
        records.describe()
        yield TopicFeed(topic=topic, records=records, flags=flags, follow=follow)
    finally:
        records.close()


def _begin(offset: int) -> "Place":
    from aclog.metalog.topiclog.records import Place

    return Place(offset, -1, current_time_ms())


def update_from_topic(
    feed: TopicFeed,
    source: SourceFlags,
    settings: Settings,
    place: Path | str,
    output: Output,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Add the records up to the end offsets of the start, and print each batch: of a store, once it is stored.

    `settings`, `place`, `configs`: as of update_index, which also has the errors. Batches before an error are stored.
    """
    added, batches = list[AddedRun](), None
    try:
        with writing_batches(place, kept=(MetadataError, OSError)) as batches:
            runs = IndexRuns(index=batches.index, settings=settings, configs=configs)
            for run in _batches(feed, runs, source):
                added.append(run)
                if batches.store():
                    _print_all(output, added)
    finally:
        if batches is not None and batches.is_stored:
            _print_all(output, added)


def _print_all(output: Output, added: list[AddedRun]) -> None:
    for run in added:
        print_taken(output, run)
    added.clear()


def _batches(feed: TopicFeed, runs: IndexRuns, source: SourceFlags) -> Iterator[AddedRun]:
    choice = source.choose()  # once: its rules may come from stdin
    try:
        more = True
        while more:
            run = feed.step(runs, lambda: choice)
            nothing = NewAccesses(input=AccessInput(parts=(), files=()), contents=(), files=1, waiting=())
            yield run or AddedRun.nothing(nothing)
            more = run is not None and feed.has_more
    finally:
        choice.source.close()
