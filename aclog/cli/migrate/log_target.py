"""A log directory as the target of a migration, written as one metadata transaction (KIP-868)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import define, field, frozen

from aclog.cli.migrate.target import AclIds, TargetContents, TargetWriter, contents_of, default_features
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.nodes.controller.write_path.formatted_log import formatted_log
from aclog.nodes.storage.feature_levels import METADATA_VERSIONS
from aclog.places.log_writer import LogWriter, batched, check_parent, open_writer
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.snapshots.recovery import recover
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, record_values, state_of_image

TRANSACTION = "aclog migrate"
_ABORT_REASON = "aclog migrate was stopped before the switch"
_REQUIRED_VERSION = "3.6-IV2"
"""The first metadata.version with transactions, SCRAM credentials and delegation tokens."""


@frozen(kw_only=True)
class LogTarget:
    """A log directory, new or written by aclog."""

    directory: Path
    force: bool

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def limitation(self) -> str:
        """None."""
        return ""

    def supported(self, state: AccessState) -> AccessState:
        """Return the whole state."""
        return state

    def contents(self) -> TargetContents:
        """Read the visible state of the log; a log that does not exist yet is empty."""
        return contents_of(recover(self.directory).image if self._exists() else Image.EMPTY)

    def existing(self) -> TargetContents:
        """Read the visible state of a log that must exist. Raises LogError."""
        return contents_of(recover(self.directory).image)

    def _exists(self) -> bool:
        directory = self.directory
        return directory.is_dir() and bool(list_segments(directory) or list_checkpoints(directory))

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Open the log for writing, and create it if missing; the transaction of an interrupted run is aborted."""
        if formatted := formatted_log(self.directory):
            raise ConfigError(
                f"{self.directory}: no node has started there since it was formatted: expected --bootstrap-checkpoint "
                f"{formatted.bootstrap}"
            )
        is_new = not self._exists()
        if is_new:
            check_parent(self.directory)
        with open_writer(self.directory, create=is_new, force=self.force) as writer:
            _check_metadata_version(self.directory, writer.image)
            ids = {each.acl: each.id for each in writer.image.acls if each.id is not None}
            is_empty = not writer.image.features.level(METADATA_VERSION)
            target = LogTargetWriter(
                state=state_of_image(writer.image),
                writer=writer,
                ids=AclIds(ids),
                features=default_features() if is_empty else [],
            )
            try:
                yield target
            except BaseException:  # Ctrl-C included
                target.abort()
                raise


def _check_metadata_version(directory: Path, image: Image) -> None:
    level = image.features.level(METADATA_VERSION)
    if 0 < level < METADATA_VERSIONS[_REQUIRED_VERSION]:
        raise ConfigError(
            f"{directory}: metadata.version {level}: expected {_REQUIRED_VERSION} or later, which has transactions"
        )


@define(kw_only=True)
class LogTargetWriter:
    """An open log. Everything between two commits is one metadata transaction.

    Readers see none of it until its EndTransactionRecord is on disk, and then all of it.
    """

    state: AccessState
    _writer: LogWriter
    _ids: AclIds
    _features: list[bytes]
    _in_transaction: bool = field(default=False, init=False)

    def write(self, wanted: AccessState) -> StateChange:
        """See TargetWriter. Raises LogError, EncodeError."""
        change = difference(self.state, wanted)
        values = [*self._features, *record_values(change, self._ids.of(change))]
        if values and not self._in_transaction:
            self._writer.append([encode_record(BeginTransactionRecord(name=TRANSACTION))])
            # Only now: if the append fails, the marker may or may not be on disk. An Abort without a Begin would
            # corrupt the log, while a transaction left open is aborted by the next writer.
            self._in_transaction = True
        for batch in batched(values):
            self._writer.append(batch, atomic=False)
        self.state, self._features = wanted, []
        return change

    def commit(self) -> None:
        """See TargetWriter. Raises LogError."""
        if self._in_transaction:
            # Cleared first: if the append fails, the End may be on disk, and no Abort may follow it.
            self._in_transaction = False
            self._writer.append([encode_record(EndTransactionRecord())])

    def abort(self) -> None:
        """See TargetWriter. If the log cannot be written, the transaction stays open, which is as invisible."""
        if self._in_transaction:
            self._in_transaction = False
            with suppress(LogError):
                self._writer.append([encode_record(AbortTransactionRecord(reason=_ABORT_REASON))])
