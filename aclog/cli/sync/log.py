"""The log of `aclog sync`: one atomic batch or transaction for each poll that found changes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from uuid import UUID

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.cli.sync.changes import AclChanges, acl_changes
from aclog.cli.sync.poller import Poll
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.filesystem import log_error
from aclog.metalog.filelog.notice import leave_notice, withdraw_notice
from aclog.metalog.uuids import RandomIds
from aclog.places.log_writer import LogWriter, open_or_create, open_writer
from aclog.snapshots.image import Image
from aclog.snapshots.rule_history import Change, ChangeKind
from aclog.sources.sync_properties import SYNC_FILE, SyncProperties, read_sync_properties, write_sync_properties

_TRANSACTION = "aclog sync"


@define(eq=False)
class SyncLog:
    """The open log of a cluster; `recorded` are the ACLs of its newest state, with their ids."""

    directory: Path
    cluster_id: str
    recorded: dict[StandardAcl, UUID]
    _writer: LogWriter
    _stack: ExitStack = field(factory=ExitStack)

    @classmethod
    def open(cls, directory: Path, written: Sequence[Change] = ()) -> Self:
        """Open an existing log; it is recovered if its last writer was interrupted.

        `written` is what this process has just created it with: those ACLs are not read again.

        Raises:
            ConfigError: the directory is not a log of `aclog sync`.
            LockedError, LogError, DecodeError: as aclog.places.log_writer.open_writer.

        """
        properties = read_sync_properties(directory)
        if properties is None:
            raise ConfigError(
                f"{directory}: no {SYNC_FILE} in it: expected a log of `aclog sync`, or an empty or missing directory"
            )
        with ExitStack() as stack:
            writer = stack.enter_context(open_writer(directory, for_sync=True))
            rules: Iterator[StandardAclWithId] = (each.rule for each in written)
            if not written or writer.log.end_offset() != written[-1].end_offset:
                rules = iter(writer.image.acls)
            recorded = {each.acl: each.id for each in rules if each.id is not None}
            writer.image = Image.EMPTY  # it is not updated from here on: free the memory
            return cls(
                directory=directory,
                cluster_id=properties.cluster_id,
                recorded=recorded,
                writer=writer,
                stack=stack.pop_all(),
            )

    def end_offset(self) -> int:
        """Return the offset of the next record."""
        return self._writer.log.end_offset()

    def changes(self, poll: Poll) -> AclChanges:
        """Return the changes from the newest state to a poll, with new ids for added ACLs."""
        return _changes(self.recorded, poll)

    def differs_from(self, poll: Poll) -> bool:
        """Return whether a poll has other ACLs than are recorded."""
        return self.recorded.keys() != set(poll.acls)

    def removed_by(self, poll: Poll) -> int:
        """Return how many of the recorded ACLs are not in a poll."""
        return len(self.recorded.keys() - set(poll.acls))

    def leave_notice(self, text: str) -> None:
        """Tell every reader of the log something until `withdraw_notice`, durably. Raises LogError."""
        leave_notice(self.directory, text)

    def withdraw_notice(self) -> None:
        """End what `leave_notice` began, durably. Raises LogError."""
        withdraw_notice(self.directory)

    def append(self, changes: AclChanges, timestamp: int) -> list[Change]:
        """Append changes atomically and durably, with a timestamp in ms since 1970.

        Raises:
            EncodeError: an ACL that is too long for a record; nothing was written.
            LogError: the log cannot be written; it accepts no further appends.

        """
        done = append_changes(self._writer, changes, timestamp)
        for each in changes.removed:
            del self.recorded[each.acl]
        self.recorded |= {each.acl: each.id for each in changes.added if each.id is not None}
        return done

    def close(self) -> None:
        """Close the log. Idempotent."""
        self._stack.close()


def create_sync_log(directory: Path, poll: Poll) -> list[Change]:
    """Create the log of a cluster with its first poll, atomically: the directory appears when it is complete.

    Raises:
        ConfigError: the directory is not empty.
        LogError: it cannot be written.
        EncodeError: an ACL that is too long for a record.

    """
    try:
        with open_or_create(directory, force=False, timestamp=poll.timestamp) as (writer, is_new):
            if not is_new:
                raise ConfigError(f"{directory}: no longer empty: expected no other process to write to it")
            properties = SyncProperties(cluster_id=poll.cluster_id, first_poll=poll.timestamp)
            write_sync_properties(writer.log.directory, properties)
            changes = append_changes(writer, _changes({}, poll), poll.timestamp)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    return changes


def _changes(recorded: dict[StandardAcl, UUID], poll: Poll) -> AclChanges:
    return acl_changes(recorded, poll.acls, RandomIds())


def append_changes(writer: LogWriter, changes: AclChanges, timestamp: int) -> list[Change]:
    """Append changes as one batch, or as a transaction if they do not fit into one, and wait for each batch.

    Raises:
        EncodeError, LogError: as SyncLog.append.

    """
    # All are encoded before the first is appended: one that is too long must not leave half a transaction.
    offsets = writer.submit(changes.values(), atomic=True, timestamp=timestamp, transaction=_TRANSACTION)
    writer.flush()
    # In the order of AclChanges.values.
    kinds = [(ChangeKind.REMOVED, each) for each in changes.removed] + [
        (ChangeKind.ADDED, each) for each in changes.added
    ]
    end = writer.log.end_offset()
    return [_change(offset, end, timestamp, *each) for offset, each in zip(offsets, kinds, strict=True)]


def _change(offset: int, end_offset: int, timestamp: int, kind: ChangeKind, rule: StandardAclWithId) -> Change:
    return Change(offset=offset, end_offset=end_offset, timestamp=timestamp, kind=kind, rule=rule)
