"""The history of ACLs: every addition and removal, in log order."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from sys import intern
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.metalog.errors import CheckpointError, DecodeError, ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.file_names import CheckpointFile, list_checkpoints
from aclog.metalog.log import LogReader
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.uuids import uuid_text
from aclog.snapshots.checkpoint_state import read_state
from aclog.snapshots.image import Image
from aclog.snapshots.moments import timestamp_text
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.visible_records import VisibleRecord, visible_records


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
    had replaced. Offset and time are the snapshot's last, and ACLs that came and went meanwhile are not told.
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


def history_from(start: Image, reader: LogReader) -> Iterator[Change]:
    """Yield the rules of the state with which a history begins, and every change after it. Raises as `history`."""
    found = _History()
    yield from found.initial_changes(start)
    try:
        for seen in visible_records(start.provenance, reader):
            change = found.change(seen)
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

    def initial_changes(self, image: Image) -> Iterator[Change]:
        for rule in image.acls:
            if rule.id is not None:
                self._rules[rule.id], self._ids[rule.acl] = rule.acl, rule.id
                yield Change(
                    offset=image.end_offset - 1,
                    end_offset=image.end_offset,
                    timestamp=image.timestamp,
                    kind=ChangeKind.ADDED,
                    rule=rule,
                    first_seen=True,
                )

    def change(self, seen: VisibleRecord) -> Change | None:
        """Return the change that a record makes; None if it is about no ACL."""
        offset, end_offset, timestamp, record = seen
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
                found = self._rules.pop(record.id, None)
                if found is None:
                    raise ReplayError(f"ACL {uuid_text(record.id)} is removed, but does not exist", offset=offset)
                del self._ids[found]
                acl, kind = found, ChangeKind.REMOVED
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
