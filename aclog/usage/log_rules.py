"""All ACLs of a metadata log, each with the interval in which it was in force: the history that Spark computes, too.

And which Kafka decided when, as the brokers registered in the log, or in a state.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.file_names import list_checkpoints
from aclog.metalog.log import LogReader
from aclog.metalog.vectors import Int64s
from aclog.snapshots.deciding_kafka import possible_generations
from aclog.snapshots.image import Image
from aclog.snapshots.kafka_history import kafka_history
from aclog.snapshots.moments import READ_BYTES
from aclog.snapshots.rule_history import Change, ChangeKind, history_from, start_of_history
from aclog.usage.decisions.acl_intervals import ALWAYS, RULE_COLUMNS
from aclog.usage.decisions.rules import Rules


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
            intervals.add(change)
        rules = Rules.of_table(intervals.table(), known_from=times.known_from)
        return rules.by_kafka(settings, lambda: _kafka_of(reader, start, times))


def deciding_rules_of_state(image: Image, settings: Settings) -> tuple[Rules, Settings]:
    """Return the ACLs of one state, and the settings; if these name no Kafka, that which its brokers run decides."""
    return Rules.of_image(image.acls).by_kafka(settings, lambda: [(ALWAYS, possible_generations(image))])


def kafka_of_log(directory: Path) -> Iterator[tuple[int, Sequence[Generation]]]:
    """Yield from which times on, in ms since 1970, which generations of Kafka may have decided.

    An ACL of that time is in force from the same time on. Before the first broker of a log there is no access.

    Raises as deciding_rules_of_log.
    """
    with open_reader(directory) as reader:
        start = start_of_history(reader, list_checkpoints(directory))
        yield from _kafka_of(reader, start, _Times.of(reader, start))


def _kafka_of(reader: LogReader, start: Image, times: "_Times") -> Iterator[tuple[int, Sequence[Generation]]]:
    first, *later = kafka_history(start, reader)
    if later and not first.kafka.nodes.of_generation:
        first, *later = later
    yield ALWAYS, first.kafka.generations
    yield from ((times.visible_at(each.end_offset), each.kafka.generations) for each in later)


@frozen(eq=False)
class _Times:
    """When states became visible."""

    ends: Int64s
    """The end offsets of batches, ascending."""
    latest: Int64s
    """The latest timestamp up to each of them, in ms since 1970."""
    known_from: int
    """The earliest time for which a state is known."""

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
            ends.append(batches.base_offset + batches.record_count)
            times.append(batches.max_timestamp)
            offset = int(ends[-1][-1])
        all_ends, latest = np.concatenate(ends), np.maximum.accumulate(np.concatenate(times))
        known_from = int(latest[0])
        if start is not Image.EMPTY:
            latest = np.maximum(latest, start.timestamp)
            covered = int(np.searchsorted(all_ends, start.end_offset, "right"))
            known_from = int(latest[covered - 1]) if covered else start.timestamp
        return cls(all_ends, latest, known_from)

    def visible_at(self, end_offset: int) -> int:
        """Return the earliest time as of which the state up to an offset is seen, in ms since 1970."""
        return int(self.latest[np.searchsorted(self.ends, end_offset)])


@define
class _Intervals:
    """The intervals of ACLs: rows in the order in which they began."""

    times: _Times
    _rules: list[StandardAclWithId] = field(factory=list, init=False)
    _from: list[int | None] = field(factory=list, init=False)
    _to: list[int | None] = field(factory=list, init=False)
    _rows: dict[object, int] = field(factory=dict, init=False)
    """The row of each ACL that is in force, by id."""

    def add(self, change: Change) -> None:
        """Take in a change, in log order."""
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
