"""The ACLs of a log, each with the interval in which it was in force."""

from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from attrs import Factory, evolve, field

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.settings import Settings
from aclog.metalog.batches import scan_batches
from aclog.metalog.columns import Bools, Bytes, Int64s
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.values import define, frozen
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_history, possible_kafka
from aclog.snapshots.history import Change, ChangeKind, RuleWatch, history_from, start_of_history
from aclog.snapshots.image import Image
from aclog.snapshots.moments import READ_BYTES
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.intervals import ALWAYS, FOREVER, RULE_COLUMNS, AclIntervals, Rules, change_times
from aclog.usage.index.lives import KEY_BYTES, STILL, UNKNOWN, RuleText, SeenRules, digests
from aclog.usage.window import Window, micros_of

# All ACLs of a metadata log, each with the interval in which it was in force; Spark computes the same history.
#
# Also the generations of Kafka that decided, as the brokers registered in the log or in a state.


def deciding_rules_of_log(directory: Path, settings: Settings) -> tuple[Rules, Settings]:
    """Return all ACLs that a log directory ever had, and the settings.

    An ACL is in force from the running maximum of batch timestamps at the batch that makes it visible, up to that of
    its removal: the state as of a time T (--as-of) has the ACLs with from <= T < to. If the settings name no Kafka,
    each access is decided by that of its time.

    Raises:
        LogError: there is no log, it cannot be read, or it has no record.
        CheckpointError: the log does not begin at offset 0, and no valid checkpoint covers what precedes it.
        DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

    """
    with open_reader(directory) as reader:
        start = start_of_history(reader, list_checkpoints(directory))
        times = _Times.of(reader, start)
        intervals = _Intervals(times)
        for change in history_from(start, reader):
            if change.end_offset > int(intervals.times.ends[-1]):  # the log has grown since its times were read
                times = intervals.times = times.extended(reader)
            intervals.add(change)
        rules = Rules.of_table(intervals.table(), known_from=times.known_from)
        return rules.by_kafka(settings, lambda controllers: _kafka_of(reader, start, times, controllers=controllers))


def deciding_rules_of_state(image: Image, settings: Settings) -> tuple[Rules, Settings]:
    """Return the ACLs and settings of one state; if the settings have no generation of Kafka, its brokers' decides."""
    return Rules.of_image(image.acls).by_kafka(
        settings, lambda controllers: [(ALWAYS, possible_kafka(image, controllers=controllers))]
    )


def kafka_of_log(directory: Path, controllers: bool) -> Iterator[tuple[int, DecidingKafka]]:
    """Yield which generations of Kafka may have decided, and from which time on, in ms since 1970.

    An ACL of that time is in force from the same time on. Before the first broker of a log there is no access.
    `controllers`: whether those of controllers matter.

    Raises as deciding_rules_of_log.
    """
    with open_reader(directory) as reader:
        start = start_of_history(reader, list_checkpoints(directory))
        yield from _kafka_of(reader, start, _Times.of(reader, start), controllers=controllers)


def _kafka_of(
    reader: LogReader, start: Image, times: "_Times", *, controllers: bool
) -> Iterator[tuple[int, DecidingKafka]]:
    first, *later = kafka_history(start, reader, controllers=controllers)
    while later and not first.kafka.has_brokers:
        first, *later = later
    yield ALWAYS, first.kafka
    yield from ((times.visible_at(each.end_offset), each.kafka) for each in later)


@frozen(eq=False)
class _Times:
    """When states became visible."""

    ends: Int64s
    """The end offsets of batches, ascending."""
    latest: Int64s
    """The latest timestamp up to each of them, in ms since 1970."""
    known_from: int
    """The earliest time with a known state."""

    @classmethod
    def of(cls, reader: LogReader, start: Image) -> "_Times":
        """Read the times of a log's batches; `start` is the state with which its history begins."""
        offset, end = reader.start_offset(), reader.high_watermark()
        if end <= 0:
            raise LogError(
                f"{reader.name}: the log has no record: no access can be decided by the ACLs of its own time"
            )
        ends, times = [], []
        while offset < end:
            batches, damage = scan_batches(reader.read(offset, READ_BYTES))
            if damage is not None or not len(batches):
                raise LogError(
                    f"{reader.name}: offset {offset}: damaged batches, which its reader should have rejected"
                )
            ends.append(batches.end_offset)
            times.append(batches.max_timestamp)
            offset = int(ends[-1][-1])
        all_ends, latest = np.concatenate(ends), np.maximum.accumulate(np.concatenate(times))
        known_from = int(latest[0])
        if start is not Image.EMPTY:
            latest = np.maximum(latest, start.timestamp)
            covered = int(np.searchsorted(all_ends, start.end_offset, "right"))
            known_from = int(latest[covered - 1]) if covered else start.timestamp
        return cls(all_ends, latest, known_from)

    def extended(self, reader: LogReader) -> "_Times":
        """Return the times with those of the batches that were appended since."""
        ends, times = [self.ends], [self.latest]
        offset, end = int(self.ends[-1]), reader.high_watermark()
        while offset < end:
            batches, _ = scan_batches(reader.read(offset, READ_BYTES))
            if not len(batches):
                raise LogError(f"{reader.name}: offset {offset}: no batch, although the log has offsets up to {end}")
            ends.append(batches.end_offset)
            times.append(batches.max_timestamp)
            offset = int(ends[-1][-1])
        return evolve(self, ends=np.concatenate(ends), latest=np.maximum.accumulate(np.concatenate(times)))

    def visible_at(self, end_offset: int) -> int:
        """Return the earliest time as of which the state up to an offset is seen, in ms since 1970."""
        return int(self.latest[np.searchsorted(self.ends, end_offset)])


@define
class _Intervals:
    """The intervals of ACLs: rows in the order of their begins."""

    times: _Times
    _rules: list[StandardAclWithId] = field(factory=list, init=False)
    _from: list[int | None] = field(factory=list, init=False)
    _to: list[int | None] = field(factory=list, init=False)
    _rows: dict[object, int] = field(factory=dict, init=False)
    """The row of each ACL that is in force, by id."""

    def add(self, change: Change) -> None:
        """Add a change, in log order."""
        if change.kind is ChangeKind.REMOVED:
            self._to[self._rows.pop(change.rule.id)] = self.times.visible_at(change.end_offset)
            return
        self._rows[change.rule.id] = len(self._rules)
        self._rules.append(change.rule)
        self._from.append(None if change.first_seen else self.times.visible_at(change.end_offset))
        self._to.append(None)

    def table(self) -> pa.Table:
        """Return RULE_COLUMNS, visible_from and visible_to."""
        rows = [rule.to_dict() for rule in self._rules]
        columns: dict[str, Any] = {name: pa.array([row[name] for row in rows], pa.string()) for name in RULE_COLUMNS}
        times = {"visible_from": pa.array(self._from, pa.int64()), "visible_to": pa.array(self._to, pa.int64())}
        return pa.table({**columns, **times})


# The ACLs of a log that grows.


@define(eq=False)
class FollowedRules:
    """All ACLs of a log directory with their intervals, of which `update` reads what was appended. For one thread."""

    directory: Path
    settings: Settings
    """As they are stated; `deciding` has those that decide."""
    deciding: Settings = field(init=False)
    rules: Rules = field(init=False)
    _times: _Times = field(init=False)
    _intervals: "_Intervals" = field(init=False)
    _watch: RuleWatch = field(init=False)

    @classmethod
    def of(cls, directory: Path, settings: Settings) -> Self:
        """Read a log from its start. Raises as deciding_rules_of_log."""
        followed = cls(directory, settings)
        with open_reader(directory) as reader:
            start = start_of_history(reader, list_checkpoints(directory))
            followed._times = _Times.of(reader, start)
            followed._intervals = _Intervals(followed._times)
            for rule in start.acls:
                change = Change(offset=start.end_offset - 1, end_offset=start.end_offset, timestamp=start.timestamp,
                                kind=ChangeKind.ADDED, rule=rule, first_seen=True)  # fmt: skip
                followed._intervals.add(change)
            followed._watch = RuleWatch.after(start, reader, newest=lambda: start, notify=lambda _text: None)
            followed._replay(reader)
            followed._take(reader)
        return followed

    @property
    def end_time(self) -> int:
        """The latest time of a record that was read, in ms since 1970."""
        return int(self._times.latest[-1])

    def update(self) -> bool:
        """Read what was appended; return whether that changes decisions.

        Raises:
            LogError: the log is shorter than it was, or retention has removed records that were not read.
            DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

        """
        before = int(self._times.ends[-1])
        with open_reader(self.directory) as reader:
            end = reader.high_watermark()
            if end < before:
                raise LogError(f"{reader.name}: ends at offset {end}, and was read up to {before}: another log?")
            if end == before:
                return False
            self._times = self._intervals.times = self._times.extended(reader)
            changed = self._replay(reader)
            if changed or (self.rules.ranges and not self.settings.is_kafka_stated):
                self._take(reader)
                return True
        return False

    def _replay(self, reader: LogReader) -> bool:
        self._watch.log, changed = reader, False
        while self._watch.end_offset < int(self._times.ends[-1]):
            changes = self._watch.step(0)
            if self._watch.end_offset > int(self._times.ends[-1]):  # the log has grown since its times were read
                self._times = self._intervals.times = self._times.extended(reader)
            for change in changes:
                if change.gap:
                    raise LogError(
                        f"{reader.name}: retention has removed records that were not read: their changes of ACLs are "
                        "unknown: restart, and accesses before the oldest checkpoint will be ERROR"
                    )
                self._intervals.add(change)
                changed = True
        return changed

    def _take(self, reader: LogReader) -> None:
        rules = Rules.of_table(self._intervals.table(), known_from=self._times.known_from)
        start = start_of_history(reader, list_checkpoints(self.directory))
        self.rules, self.deciding = rules.by_kafka(
            self.settings, lambda controllers: _kafka_of(reader, start, self._times, controllers=controllers)
        )


# The ACLs by which accesses are evaluated, in the form of the index of last use.


def seen_rules(rules: Rules, *, own_time: bool) -> SeenRules:
    """Return the ACLs by which a run evaluates; with `own_time`, each access by those of its time."""
    intervals = rules.intervals
    records = (intervals.records[start:end] for start, end in pairwise([0, *intervals.record_ends.tolist()]))
    permissions = np.asarray(rules.table.column("permissionType").to_numpy())

    def texts(ordinals: Sequence[int]) -> list[RuleText]:
        """Return the texts of some rules."""
        rows: list[RuleText] = rules.table.select(ACL_FIELDS).take(list(ordinals)).to_pylist()
        return rows

    return SeenRules(
        ids=_ids(rules),
        digests=digests(records)[intervals.content_of],
        denies=permissions != "ALLOW",
        texts=texts,
        begins=np.where(intervals.visible_from == ALWAYS, UNKNOWN, intervals.visible_from * 1000),
        ends=np.where(intervals.visible_to == FOREVER, STILL, intervals.visible_to * 1000),
        is_history=own_time,
        known_from=None if intervals.known_from == ALWAYS else intervals.known_from * 1000,
    )


def _ids(rules: Rules) -> Bytes | None:
    column = rules.table.column("id")
    if column.null_count:
        return None
    # 22 characters of base64 each: two more make 18 whole bytes
    data = urlsafe_b64decode("".join(f"{text}AA" for text in column.to_pylist()))
    return np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(-1, KEY_BYTES + 2)[:, :KEY_BYTES])


# ACLs that were in force in the whole window.


@frozen(eq=False, kw_only=True)
class WindowRules:
    """The assessed ACLs, by ordinal."""

    throughout: Bools
    """In force in the whole window: assessed, unless `concerned`."""
    stays: Bools
    """Not assessed but in force now, so that it will not be removed."""
    version: int
    """The last version."""
    concerned: Bools = field(default=Factory(lambda self: np.zeros_like(self.throughout), takes_self=True))
    """An unread access may have needed it, so the only possible answer is that it is needed."""
    unread: Int64s = field(default=Factory(lambda self: np.zeros(len(self.throughout), np.int64), takes_self=True))
    """The number of such accesses."""
    removed: Bools = field(default=Factory(lambda self: np.zeros_like(self.throughout), takes_self=True))
    """Removed after the window: what it covers is no longer covered, and it cannot be removed again."""

    @classmethod
    def of(cls, intervals: AclIntervals, window: Window, *, own_time: bool) -> Self:
        """Assess the ACLs for a window."""
        throughout, removed = in_force_throughout(window, intervals), intervals.visible_to != FOREVER
        if not own_time:
            throughout &= ~removed
        version = len(change_times(intervals))
        return cls(throughout=throughout, stays=~throughout & ~removed, version=version, removed=removed)

    def but_for(self, concerned: Bools, unread: Int64s) -> Self:
        """Return the same, given which ACLs unread accesses may have needed, and how many."""
        stays = self.stays | self.throughout & concerned & ~self.removed
        return evolve(self, stays=stays, concerned=concerned, unread=unread)


def in_force_throughout(window: Window, intervals: AclIntervals) -> Bools:
    """Return by ordinal whether the ACL is known to have been in force in the whole window."""
    start, until = micros_of(window.start), micros_of(window.until)
    # from * 1000 <= start and to * 1000 > until, but compared in ms: FOREVER in us would overflow
    in_force: Bools = (intervals.visible_from <= start // 1000) & (intervals.visible_to > until // 1000)
    return in_force & (max(intervals.known_from, ALWAYS) <= start // 1000)
