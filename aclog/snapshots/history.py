"""The history of a log: changes of ACLs and topics in the order in which they became visible."""

from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from sys import intern
from typing import NamedTuple
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, acl_of, record_of
from aclog.authorizer.acls_image import AclsImage, changes_between
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.metalog.batches import BatchHeader, iter_batches, read_values, scan_batches, scan_values
from aclog.metalog.codec import decode_record
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import CheckpointError, DecodeError, MetadataError, ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import CheckpointFile, list_checkpoints
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    OpaqueRecord,
    RecordType,
    RemoveAccessControlEntryRecord,
)
from aclog.metalog.values import define, frozen
from aclog.snapshots.applier import Transactions
from aclog.snapshots.checkpoints import read_state
from aclog.snapshots.image import Appended, Image, NewerKafka, Provenance, Removed, check_follows, effect_of
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import timestamp_text
from aclog.snapshots.publisher import next_batches
from aclog.snapshots.record_filters import AclsNear, RecordFilter, has_markers

# The records of a log in the order in which they became visible, without those of aborted transactions.


_READ_BYTES = 4 << 20


class VisibleRecord(NamedTuple):
    """A committed record: its offset, and the time of its batch (ms since 1970).

    `end_offset` is that of the first state that includes it: records with the same one became visible together.
    """

    offset: int
    end_offset: int
    timestamp: int
    record: MetadataRecord


def visible_records(
    start: Provenance, reader: LogReader, predicate: RecordFilter | None = None
) -> Iterator[VisibleRecord]:
    """Yield every record from a state on, up to the high-water mark.

    Those that `predicate` rejects are neither decoded nor yielded.

    Raises:
        LogError: the log cannot be read.
        DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

    """
    replay = RecordReplay(replayed_to=start, predicate=predicate)
    try:
        while replay.replayed_to.end_offset < reader.high_watermark():
            yield from replay.replay(reader.read(replay.replayed_to.end_offset, _READ_BYTES))
    except DecodeError as e:
        raise type(e)(e.what, offset=e.offset, path=e.path or reader.name) from None


@define(kw_only=True)
class RecordReplay:
    """A replay in progress: the batches since the last visible state."""

    replayed_to: Provenance
    predicate: RecordFilter | None = None
    """Of which values the records are of interest, as in `visible_records`."""
    _transactions: Transactions = field(factory=Transactions, init=False)
    _times: list[tuple[int, int]] = field(factory=list, init=False)

    def replay(self, chunk: bytes) -> Iterator[VisibleRecord]:
        """Yield the records of whole batches that continue the log, once they are visible. Raises DecodeError."""
        proved = None
        if self.predicate is not None and not self._transactions.is_open:
            proved = self._proved(chunk, self.predicate)
        yield from self._one_by_one(chunk) if proved is None else proved

    def _proved(self, chunk: bytes, accepts: RecordFilter) -> list[VisibleRecord] | None:
        """Return the records of interest, found in bulk; None if that cannot prove the whole chunk valid.

        Nor with markers of transactions: without them, each batch becomes visible on its own.
        """
        before = self.replayed_to
        batches = scan_batches(chunk)[0].in_order(before.end_offset, before.epoch)
        values, bad = scan_values(chunk, batches)
        start, end = values.value_start, values.value_end
        if not len(batches) or batches.end[-1] != len(chunk) or bad is not None or has_markers(chunk, start, end):
            return None
        ends, records = batches.end_offset, []
        for row in accepts.rows(chunk, start, end).tolist():
            value = chunk[int(start[row]) : int(end[row])]
            if accepts(value):
                batch = int(values.batch[row])
                try:
                    record = decode_record(value)
                except DecodeError:
                    return None  # reported when the records before it have been yielded
                time = int(batches.max_timestamp[batch])
                records.append(VisibleRecord(int(values.offset[row]), int(ends[batch]), time, record))
        self.replayed_to = Provenance(end_offset=int(ends[-1]), epoch=int(batches.leader_epoch[-1]))
        return records

    def _one_by_one(self, chunk: bytes) -> Iterator[VisibleRecord]:
        for position, header in iter_batches(chunk):
            check_follows(self.replayed_to, header, position)
            self.replayed_to = Provenance(end_offset=header.end_offset, epoch=header.leader_epoch)
            if not header.is_control:
                # A transaction may span batches: a record has the time of its own batch, but the last makes it visible.
                self._times.append((header.end_offset, header.max_timestamp))
                for offset, record in self._decoded(chunk, position, header):
                    self._transactions.add(offset, record)
            if not self._transactions.is_open:
                yield from self._visible()

    def _decoded(self, chunk: bytes, position: int, header: BatchHeader) -> Iterator[tuple[int, MetadataRecord]]:
        for offset, (start, value) in enumerate(read_values(chunk, position, header), header.base_offset):
            if self.predicate is None or self.predicate(value):
                try:
                    yield offset, decode_record(value)
                except DecodeError as e:
                    raise e.at(offset=offset, base=start) from None

    def _visible(self) -> Iterator[VisibleRecord]:
        times = iter(self._times)
        self._times = []
        end, timestamp = -1, -1
        visible_at = self.replayed_to.end_offset
        for offset, record in self._transactions.take():
            while offset >= end:
                end, timestamp = next(times)
            yield VisibleRecord(offset, visible_at, timestamp, record)


# The history of ACLs: every addition and removal, in log order.


class ChangeKind(Enum):
    """What happened to an ACL."""

    ADDED = "ADDED"
    REMOVED = "REMOVED"

    def __str__(self) -> str:
        return self.value


@frozen(kw_only=True)
class Change:
    """One committed change: offset and time (ms since 1970) of its record, and the ACL, also for a removal.

    `end_offset` is that of the first state that includes it: changes with the same one became visible together.
    `first_seen`: the log does not reach back to the addition of this ACL. It was in the checkpoint that this history
    starts from, and offset and time are the checkpoint's last. `gap`: a watch did not see the record, which a snapshot
    had replaced. Offset and time are the snapshot's last, and ACLs that were added and removed meanwhile are missing.
    """

    offset: int
    end_offset: int
    timestamp: int
    kind: ChangeKind
    rule: StandardAclWithId
    first_seen: bool = False
    gap: bool = False

    def __str__(self) -> str:
        time = f", {timestamp_text(self.timestamp)}" if self.timestamp >= 0 else ""
        until = " or before" if self.first_seen or self.gap else ""
        return f"offset {self.offset}{until}{time}: {self.kind.value.lower()} {self.rule}"

    def record(self, *, undo: bool = False) -> AccessControlEntryRecord | RemoveAccessControlEntryRecord:
        """Return the record that makes this change, or that reverts it. Raises ReplayError: the ACL has no id."""
        rule_id = self.rule.id
        if rule_id is None:
            raise ReplayError(f"a change has no id: {self}")
        adds = (self.kind is ChangeKind.ADDED) is not undo
        return record_of(self.rule.acl, rule_id) if adds else RemoveAccessControlEntryRecord(id=rule_id)

    def to_dict(self) -> dict[str, object]:
        """Return the object of `aclog export --history --format jsonl`, and `gap` if it is one."""
        return {
            "offset": self.offset,
            "endOffset": self.end_offset,
            "timestamp": self.timestamp,
            "change": self.kind.value,
            "firstSeen": self.first_seen,
            "acl": self.rule.to_dict(),
            **({"gap": True} if self.gap else {}),
        }


def history(directory: Path | str) -> Iterator[Change]:
    """Yield every change of an ACL in a log directory, up to the high-water mark, except in aborted transactions.

    Raises:
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no valid checkpoint covers what precedes it.
        DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

    """
    directory = Path(directory)
    with open_reader(directory) as reader:
        yield from log_history(reader, list_checkpoints(directory))


def log_history(reader: LogReader, checkpoints: tuple[CheckpointFile, ...]) -> Iterator[Change]:
    """Do the same for a log wherever it is stored; `checkpoints` are sorted by offset."""
    yield from history_from(start_of_history(reader, checkpoints), reader)


def start_of_history(reader: LogReader, checkpoints: tuple[CheckpointFile, ...]) -> Image:
    """Return the state with which a history begins: the empty one, or that of a checkpoint. Raises as `history`."""
    return Image.EMPTY if reader.start_offset() == 0 else first_image(reader, checkpoints)


def history_from(start: Image, reader: LogReader, near: AclsNear | None = None) -> Iterator[Change]:
    """Yield the rules of the state with which a history begins, and every change after it. Raises as `history`.

    With `near`, only of ACLs that it accepts.
    """
    tracker = _History()
    yield from tracker.initial_changes(start, near)
    try:
        for visible in visible_records(start.provenance, reader, near):
            change = tracker.change(visible)
            if change is not None:
                yield change
    except DecodeError as e:
        raise type(e)(e.what, offset=e.offset, path=e.path or reader.name) from None


def first_image(reader: LogReader, checkpoints: tuple[CheckpointFile, ...]) -> Image:
    """Return the image of the oldest checkpoint that the log continues: it leaves the most history after it.

    Raises:
        CheckpointError: no valid checkpoint reaches the log start.

    """
    start = reader.start_offset()
    failures = []
    for checkpoint in checkpoints:
        # A checkpoint below the log start would leave a gap of unknown changes.
        if checkpoint.end_offset >= start:
            try:
                return read_state(checkpoint.path, newer=NewerKafka(strict=False))
            except CheckpointError as e:
                failures.append(e)
    if failures:
        raise failures[0]
    raise CheckpointError(
        f"{reader.name}: the log begins at offset {start}: expected a checkpoint that covers what precedes it"
    )


@define
class _History:
    """A history in progress: the existing ACLs, by id and by content."""

    _rules: dict[UUID, StandardAcl] = field(factory=dict, init=False)
    _ids: dict[StandardAcl, UUID] = field(factory=dict, init=False)

    def initial_changes(self, image: Image, near: AclsNear | None) -> Iterator[Change]:
        for rule in image.acls:
            if rule.id is not None and (near is None or near.add_known(rule.acl.resource_name, rule.id.bytes)):
                self._rules[rule.id], self._ids[rule.acl] = rule.acl, rule.id
                yield Change(
                    offset=image.end_offset - 1,
                    end_offset=image.end_offset,
                    timestamp=image.timestamp,
                    kind=ChangeKind.ADDED,
                    rule=rule,
                    first_seen=True,
                )

    def change(self, visible: VisibleRecord) -> Change | None:
        """Return the change that a record makes; None if it is about no ACL."""
        offset, end_offset, timestamp, record = visible
        match record:
            case AccessControlEntryRecord():
                if record.id in self._rules:
                    raise ReplayError(f"ACL {uuid_text(record.id)} is added, but exists already", offset=offset)
                acl = _acl(record)
                other = self._ids.setdefault(acl, record.id)
                if other != record.id:
                    both = f"ACL {uuid_text(record.id)} is the same as ACL {uuid_text(other)}"
                    raise ReplayError(f"{both}: expected every ACL once", offset=offset)
                self._rules[record.id] = acl
                kind = ChangeKind.ADDED
            case RemoveAccessControlEntryRecord():
                removed = self._rules.pop(record.id, None)
                if removed is None:
                    raise ReplayError(f"ACL {uuid_text(record.id)} is removed, but does not exist", offset=offset)
                del self._ids[removed]
                acl, kind = removed, ChangeKind.REMOVED
            case _:
                return None
        rule = StandardAclWithId(id=record.id, acl=acl)
        return Change(offset=offset, end_offset=end_offset, timestamp=timestamp, kind=kind, rule=rule)


def _acl(record: AccessControlEntryRecord) -> StandardAcl:
    return StandardAcl(
        resource_type=record.resource_type,
        resource_name=record.resource_name,
        pattern_type=record.pattern_type,
        principal=intern(record.principal),
        host=intern(record.host),
        operation=record.operation,
        permission_type=record.permission_type,
    )


# The history of topics: which names came into being and went, at which offsets.


_TOPICS = frozenset({RecordType.TOPIC_RECORD, RecordType.REMOVE_TOPIC_RECORD})


@define
class TopicHistory:
    """The topics of a log, record by record: for each name when it existed.

    A name may come and go; `spans` has an interval of end offsets for each time, open at the end while it exists. Those
    of the state with which the history begins exist since its end offset, as far as is known.
    """

    spans: dict[str, list[tuple[int, int | None]]] = field(factory=dict, init=False)
    _names: dict[bytes, str] = field(factory=dict, init=False)

    @staticmethod
    def beginning(image: Image) -> "TopicHistory":
        """Return the history with the topics of a state."""
        topics = TopicHistory()
        for topic, name in image.opaque.topics():
            topics._add(topic, name, image.end_offset)  # its own
        return topics

    def replay(self, visible: VisibleRecord) -> None:
        """Take note of a record; records come in the order of the log.

        Raises:
            DecodeError: a damaged record about a topic.

        """
        record = visible.record
        if not isinstance(record, OpaqueRecord) or record.api_key not in _TOPICS:
            return
        match effect_of(record):
            case Appended(subject=(_, topic), topic_name=str(name)):
                self._add(topic, name, visible.end_offset)
            case Removed(subject=(_, topic)):
                self._remove(topic, visible.end_offset)
            case _:
                return

    def _add(self, topic: bytes, name: str, end_offset: int) -> None:
        self._names[topic] = name
        self.spans.setdefault(name, []).append((end_offset, None))

    def _remove(self, topic: bytes, end_offset: int) -> None:
        name = self._names.pop(topic, None)
        if name is not None:
            spans = self.spans[name]
            spans[-1] = (spans[-1][0], end_offset)


# Watching a log: every change of an ACL after a state, as it is committed.


_MANY_CHANGES = 32_768
"""Changes after which they are merged into the index, which keeps their memory small."""


@define(kw_only=True, eq=False)
class RuleWatch:
    """A watch in progress; owned by one thread. It holds no file: `log` is its source's."""

    log: LogReader
    newest: Callable[[], Image]
    """Returns the newest state of the source, in any thread."""
    _acls: AclsImage
    _records: RecordReplay
    _notify: Callable[[str], None]
    merge_at: int = _MANY_CHANGES
    """Changes after which they are merged into the index."""
    pause: Pause = no_pause
    """Called at each record, for who lets others go first."""
    _failure: MetadataError | None = field(default=None, init=False)

    @staticmethod
    def after(
        image: Image,
        log: LogReader,
        *,
        newest: Callable[[], Image],
        notify: Callable[[str], None],
        merge_at: int = _MANY_CHANGES,
        pause: Pause = no_pause,
    ) -> "RuleWatch":
        """Return a watch that begins with the first change after a state; `notify` is called for gaps."""
        records = RecordReplay(replayed_to=image.provenance)
        return RuleWatch(
            log=log, newest=newest, acls=image.acls, records=records, notify=notify, merge_at=merge_at, pause=pause
        )

    @property
    def end_offset(self) -> int:
        """Everything below it has been seen."""
        return self._records.replayed_to.end_offset

    @property
    def acls(self) -> AclsImage:
        """The rules after what has been seen."""
        return self._acls

    def step(self, timeout: float) -> tuple[Change, ...]:
        """Return the next changes, in the order of the log; none if nothing was committed within `timeout` seconds.

        If a snapshot has replaced the next records, those are the changes that lead to the newest state, with `gap`.
        After damage every later call raises the same error: no change is ever skipped.

        Raises:
            MetadataError: the log is damaged, deleted or closed, or can never be followed again; or the image file that
                the state is mapped from was overwritten.

        """
        if self._failure is not None:
            raise self._failure
        if self._acls.overlay_size > self.merge_at:
            self._merge()
        chunk = next_batches(self.log, self.end_offset, timeout)
        check_mapping(self._acls)
        return self._over_gap() if chunk is None else self._replayed(chunk)

    def _replayed(self, chunk: bytes) -> tuple[Change, ...]:
        changes = []
        try:
            for visible in self._records.replay(chunk):
                self.pause()
                change = self._change(visible)
                if change is not None:
                    changes.append(change)
        except DecodeError as error:
            # The valid changes before the damage are returned first.
            self._failure = error.at(path=self.log.name)
            if not changes:
                raise self._failure from None
        return tuple(changes)

    def _merge(self) -> None:
        merged = self._acls.merged(self.pause)
        check_mapping(self._acls)  # otherwise bytes written over a file would persist in the merged index
        self._acls = merged

    def _change(self, visible: VisibleRecord) -> Change | None:
        record = visible.record
        if isinstance(record, AccessControlEntryRecord):
            acl, kind = acl_of(record), ChangeKind.ADDED
        elif isinstance(record, RemoveAccessControlEntryRecord):
            removed, kind = self._acls.get(record.id), ChangeKind.REMOVED
            if removed is None:
                raise ReplayError(f"ACL {uuid_text(record.id)} is removed, but does not exist", offset=visible.offset)
            acl = removed
        else:
            return None
        self._acls = self._acls.apply((record,))
        rule = StandardAclWithId(id=record.id, acl=acl)
        return Change(
            offset=visible.offset, end_offset=visible.end_offset, timestamp=visible.timestamp, kind=kind, rule=rule
        )

    def _over_gap(self) -> tuple[Change, ...]:
        before, first, newest = self._acls, self.end_offset, self.newest()
        self._notify(
            f"{self.log.name}: offsets {first} to {newest.end_offset - 1} were not watched: a snapshot has replaced "
            "records in between; only the net changes are reported"
        )
        self._acls, self._records = newest.acls, RecordReplay(replayed_to=newest.provenance)
        return tuple(
            Change(
                offset=newest.end_offset - 1,
                end_offset=newest.end_offset,
                timestamp=newest.timestamp,
                kind=ChangeKind.ADDED if change.added else ChangeKind.REMOVED,
                rule=StandardAclWithId(id=(newest.acls if change.added else before).find(change.acl), acl=change.acl),
                gap=True,
            )
            for change in changes_between(before, newest.acls)
        )
