"""The log of `aclog sync`: what a cluster told, one atomic batch or transaction for each poll that found a change."""

import secrets
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Self
from uuid import UUID

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.cli.log_writer import LogWriter, batched, open_writer
from aclog.cli.sync.changes import RuleChanges, rule_changes
from aclog.cli.sync.poller import Poll
from aclog.cli.transfer.importer import open_target
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.filesystem import fsync_directory, log_error
from aclog.metalog.records import BeginTransactionRecord, EndTransactionRecord
from aclog.metalog.uuids import random_uuid
from aclog.snapshots.image import Image
from aclog.snapshots.rule_history import Change, ChangeKind
from aclog.sources.sync_properties import SYNC_FILE, SyncProperties, read_sync_properties, write_sync_properties

_TRANSACTION = "aclog sync"


@define(eq=False)
class SyncLog:
    """An open record of a cluster and its one writer; `standing` are the rules that its newest state holds."""

    directory: Path
    cluster_id: str
    standing: dict[StandardAcl, UUID]
    _writer: LogWriter
    _stack: ExitStack = field(factory=ExitStack)

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open a record to go on with it; what an interrupted writer left is recovered, and said.

        Raises:
            ConfigError: the directory holds something else.
            LockedError, LogError, DecodeError: as aclog.cli.log_writer.open_writer.

        """
        properties = read_sync_properties(directory)
        if properties is None:
            raise ConfigError(f"{directory}: no {SYNC_FILE} in it: expected a record of `aclog sync`, or nothing yet")
        with ExitStack() as stack:
            writer = stack.enter_context(open_writer(directory, for_sync=True))
            standing = {rule.acl: rule.id for rule in writer.image.acls if rule.id is not None}
            writer.image = Image.EMPTY  # nobody keeps it up from here on, and of many rules it is large
            return cls(directory, properties.cluster_id, standing, writer, stack.pop_all())

    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._writer.log.end_offset()

    def changes(self, poll: Poll) -> RuleChanges:
        """What has changed since the newest state, with new ids for what is new."""
        return _changes(self.standing, poll)

    def append(self, changes: RuleChanges, timestamp: int) -> list[Change]:
        """Record changes at a time (ms since 1970), visible all at once; on the disk when it returns.

        Raises:
            EncodeError: a rule that no record holds; nothing is written.
            LogError: the log cannot be written; it takes no more then.

        """
        done = append_changes(self._writer, changes, timestamp)
        for rule in changes.removed:
            del self.standing[rule.acl]
        self.standing |= {rule.acl: rule.id for rule in changes.added if rule.id is not None}
        return done

    def close(self) -> None:
        """Close the log; a second close is nothing."""
        self._stack.close()


def create_sync_log(directory: Path, poll: Poll) -> list[Change]:
    """Make the record of a cluster with its first poll, all or nothing: the directory is there when all is in it.

    Raises:
        ConfigError: the directory holds something.
        LogError: it cannot be written.
        EncodeError: a rule that no record holds.

    """
    try:
        with open_target(directory, force=False, timestamp=poll.timestamp) as (writer, is_new):
            if not is_new:
                raise ConfigError(f"{directory}: not empty any more: expected no other writer")
            properties = SyncProperties(cluster_id=poll.cluster_id, first_poll=poll.timestamp)
            write_sync_properties(writer.log.directory, properties)
            changes = append_changes(writer, _changes({}, poll), poll.timestamp)
        fsync_directory(directory.absolute().parent)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    return changes


def _changes(standing: dict[StandardAcl, UUID], poll: Poll) -> RuleChanges:
    return rule_changes(standing, poll.rules, lambda: random_uuid(secrets.token_bytes))


def append_changes(writer: LogWriter, changes: RuleChanges, timestamp: int) -> list[Change]:
    """Append changes as one batch, or as a transaction where they are more than one holds, and wait for each batch.

    Raises:
        EncodeError, LogError: as SyncLog.append.

    """
    batches = list(batched(changes.values()))
    if not batches:
        return []
    if len(batches) == 1:
        offsets = _append(writer, batches[0], timestamp)
    else:
        _append(writer, [encode_record(BeginTransactionRecord(name=_TRANSACTION))], timestamp)
        offsets = list(chain.from_iterable(_append(writer, batch, timestamp) for batch in batches))
        _append(writer, [encode_record(EndTransactionRecord())], timestamp)
    kinds = [(ChangeKind.REMOVED, rule) for rule in changes.removed] + [
        (ChangeKind.ADDED, rule) for rule in changes.added
    ]
    end = writer.log.end_offset()
    return [_change(offset, end, timestamp, *each) for offset, each in zip(offsets, kinds, strict=True)]


def _append(writer: LogWriter, values: list[bytes], timestamp: int) -> list[int]:
    """Append a batch, wait until it is durable, and give the offsets of its records."""
    done = writer.log.append(values, timestamp=timestamp).result()
    return list(range(done.base_offset, done.last_offset + 1))


def _change(offset: int, end_offset: int, timestamp: int, kind: ChangeKind, rule: StandardAclWithId) -> Change:
    return Change(offset=offset, end_offset=end_offset, timestamp=timestamp, kind=kind, rule=rule)
