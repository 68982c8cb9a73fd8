"""An access log in a topic of Kafka, for `aclog usage-index`: each record counts once, and lost ones are recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import define, field

from aclog.cli.flags.common import AccessesFlags, Output, SourceFlags
from aclog.cli.index_follow import workers_for
from aclog.cli.index_update import AddedRun, IndexRuns, print_taken
from aclog.config.client_config import librdkafka_properties
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.topiclog import TopicId, TopicSettings
from aclog.ops.usage import TOPIC_SCHEME, note_layouts, note_unread_lines, stated_format
from aclog.snapshots.moments import parse_zone
from aclog.sources.choice import ChosenSource
from aclog.terminal.output import time_text, warn
from aclog.usage.accesses.access_log import AccessInput, NewAccesses, accesses_in
from aclog.usage.accesses.lines import PinnedFile, StreamCopy
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
_FIELDS: Final = ("offset", "epoch", "time")
"""The streams of a partition in the index: those of Place."""


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
    where = "" if command_config is None else f"{command_config}: "
    properties = librdkafka_properties(client_security(command_config), where)
    return TopicSettings(topic=topic, properties={"bootstrap.servers": servers, **properties})


class _Loss(NamedTuple):
    """Records that cannot be read any more."""

    partition: int
    records: int
    """0 if their number is unknown."""
    since: int
    """The time of the last record that was read, in ms since 1970."""
    why: str


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
    _ends: dict[int, int] | None = field(default=None, init=False)
    """Where to stop, by partition."""

    def step(self, runs: IndexRuns, choose: Callable[[], ChosenSource]) -> AddedRun | None:
        """See Feed."""
        from aclog.metalog.topiclog.records import GoneError

        records = self.records
        topic_id, number = records.describe()
        bounds = {partition: records.bounds(partition) for partition in range(number)}
        if self._ends is None or self.follow:
            self._ends = {partition: end for partition, (_, end) in bounds.items()}
        stored = self._stored(runs.index, topic_id, bounds)
        starts = {partition: stored.get(partition, _begin(low)) for partition, (low, _) in bounds.items()}
        bounds = {partition: (low, min(self._ends.get(partition, 0), end)) for partition, (low, end) in bounds.items()}
        after = dict(starts)
        try:
            copy = StreamCopy.of_blocks(self._lines(records, starts, bounds, after), self.topic.name)
        except GoneError as error:
            loss, moved = self._loss(error.partition, starts[error.partition], records.bounds(error.partition))
            self._note_lost(runs.index, topic_id, [loss], stored, {error.partition: moved})
            return self.step(runs, choose)
        with copy:
            if after == starts:
                return None
            if records.describe()[0] != topic_id:  # its records are not those of the stored positions
                raise LogError(f"{self.topic.name}: the topic was created again while it was being read: run again")
            return self._take(runs, choose, copy, self._positions(topic_id, stored, after))

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
        file = PinnedFile.of(self.topic.name, copy.place)
        log = accesses_in([file], parse_zone(self.flags.accesses_timezone), form, profile)
        new = NewAccesses(input=log, contents=(), files=1, waiting=())
        if not log.files:  # only records of other logs
            runs.index.note_lost(UnreadAccesses(), positions, current_time_ms() * 1000)
            return AddedRun.nothing(new)
        note_layouts(log)
        if self.flags.explain_unread:
            note_unread_lines(log, self.flags.explain_unread)
        each = workers_for(file.size, self.flags.workers)
        return runs.take(choose(), new, each, contents_version=None, positions=positions)

    def _prefix(self, cluster_id: str) -> str:
        return f"kafka:{cluster_id}:{self.topic.topic}:"

    def _stored(
        self, index: UsageIndex, topic_id: "TopicId", bounds: Mapping[int, tuple[int, int]]
    ) -> dict[int, "Place"]:
        """Return the positions in the index, after those of records that are gone were moved."""
        prefix = self._prefix(topic_id.kafka_cluster_id)
        fields: dict[tuple[str, int], dict[str, int]] = {}
        for name, number in index.positions(prefix).items():
            own_id, text, kind = name.removeprefix(prefix).split(":")
            fields.setdefault((own_id, int(text)), {})[kind] = number
        places = {key: _place(values) for key, values in fields.items()}
        stored = {partition: place for (own_id, partition), place in places.items() if own_id == topic_id.topic_id}
        latest = max((place.time for place in places.values()), default=None)
        if latest is None:
            return {}
        losses, moved = list[_Loss](), dict[int, "Place"]()
        for partition, (low, high) in bounds.items():
            place = stored.get(partition)
            if place is None:
                if not stored:
                    losses.append(_Loss(partition, 0, latest, "the topic was deleted and created again"))
                elif low:
                    losses.append(_Loss(partition, low, latest, "the first records of a new partition were removed"))
                else:
                    continue
                moved[partition] = _begin(low)
            elif not low <= place.offset <= high:
                loss, moved[partition] = self._loss(partition, place, (low, high))
                losses.append(loss)
        if losses:
            self._note_lost(index, topic_id, losses, stored, moved)
        return stored

    def _loss(self, partition: int, place: "Place", bounds: tuple[int, int]) -> "tuple[_Loss, Place]":
        """Return what is lost after a position, and the next one that exists."""
        low, high = bounds
        if place.offset < low:
            loss = _Loss(partition, low - place.offset, place.time, "retention has removed records")
        else:
            loss = _Loss(partition, 0, place.time, "the log of the partition was truncated")
        return loss, place._replace(offset=min(max(place.offset, low), high))

    def _note_lost(
        self,
        index: UsageIndex,
        topic_id: "TopicId",
        losses: Sequence[_Loss],
        stored: dict[int, "Place"],
        moved: Mapping[int, "Place"],
    ) -> None:
        """Record what is lost together with the positions behind it, and change `stored` to these."""
        now = current_time_ms()
        begin = {partition: place._replace(epoch=-1, time=now) for partition, place in moved.items()}
        unread = UnreadCounter()
        for each in losses:
            # an access is logged before its record is written, whose time the producer may set
            first = min(each.since, now) * 1000 - DAY
            unread.add(None, None, LOST_RECORDS, UnreadSpan(each.records, first, now * 1000))
            number = f"{each.records:,} records" if each.records else "records"
            warn(
                f"{self.topic.name}: partition {each.partition}: {number} since {time_text(each.since)} cannot be "
                f"read: {each.why}: no rule is called unused for that time"
            )
        index.note_lost(unread.total, self._positions(topic_id, stored, begin), now * 1000)
        stored.update(begin)

    def _positions(
        self, topic_id: "TopicId", stored: Mapping[int, "Place"], after: Mapping[int, "Place"]
    ) -> list[Position]:
        prefix = f"{self._prefix(topic_id.kafka_cluster_id)}{topic_id.topic_id}:"
        return [
            Position(
                f"{prefix}{partition}:{kind}",
                getattr(place, kind),
                getattr(stored[partition], kind) if partition in stored else None,
            )
            for partition, place in after.items()
            for kind in _FIELDS
        ]


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


def _place(values: Mapping[str, int]) -> "Place":
    from aclog.metalog.topiclog.records import Place

    return Place(*(values[kind] for kind in _FIELDS))


def _itself(choice: ChosenSource) -> ChosenSource:
    return choice


def update_from_topic(feed: TopicFeed, runs: IndexRuns, source: SourceFlags, output: Output) -> None:
    """Add the records up to the end offsets of the start, and print each batch. Raises as IndexRuns.take."""
    more = True
    while more:
        choice = source.choose()
        try:
            run = feed.step(runs, partial(_itself, choice))
        finally:
            choice.source.close()
        nothing = NewAccesses(input=AccessInput(parts=(), files=()), contents=(), files=1, waiting=())
        print_taken(output, run or AddedRun.nothing(nothing))
        more = run is not None and feed.has_more
