"""The writer of a log directory for commands that change one, with the state that new records must fit."""

import re
import secrets
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from glob import escape
from itertools import chain
from pathlib import Path

from attrs import define, field

from aclog.metalog.batch_groups import MAX_BATCH_BYTES, grouped
from aclog.metalog.clock import current_time_ms
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import ControlRecord
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.file_names import PARTIAL_SUFFIX, list_checkpoints
from aclog.metalog.filelog.filesystem import fsync_directory, log_error
from aclog.metalog.filelog.locks import LOCK_FILE, holder_of
from aclog.metalog.log import Appended
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.nodes.controller.write_path.formatted_log import begun_log, formatted_log
from aclog.snapshots.bootstrap_records import find_bootstrap
from aclog.snapshots.features import METADATA_VERSION, TRANSACTIONS_SINCE
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.recovery import recover_log
from aclog.sources.log_bytes import in_bytes
from aclog.sources.sync_properties import refuse_other_writers
from aclog.terminal.notices import note
from aclog.terminal.progress import BYTES, progress

MAX_BYTES = MAX_BATCH_BYTES
"""Per batch, as in a checkpoint; what needs more is a metadata transaction (KIP-868)."""

_PARTIAL_NAME = re.compile(rf"\.[0-9a-f]{{8}}{re.escape(PARTIAL_SUFFIX)}")
"""What follows the name of a log in that of the directory where it is made."""

_INTERRUPTED = "its writer was interrupted"

_MAX_IN_FLIGHT = 1000
_MAX_BYTES_IN_FLIGHT = 32 << 20
"""Appends that the log has not committed yet: it commits them in groups, and refuses more than 64 MiB."""


@define
class LogWriter:
    """An open log and its newest state; owned by the command that writes."""

    log: FileLog
    image: Image
    stays: bool = True
    """Whether what is committed outlives a failure of the command; a new log is removed."""
    _in_flight: deque[tuple[Future[Appended], int]] = field(factory=deque, init=False)
    _bytes_in_flight: int = field(default=0, init=False)

    def append(
        self,
        values: Iterable[bytes],
        *,
        atomic: bool = True,
        timestamp: int | None = None,
        transaction: str = "aclog import",
    ) -> range:
        """Append record values and wait until they are committed; return their offsets.

        With `atomic` they become visible all at once, in a metadata transaction of this name if need be. `timestamp` is
        in ms since 1970, by default now.

        Raises:
            LogError: the log cannot be written.

        """
        now = current_time_ms() if timestamp is None else timestamp
        offsets = self.submit(values, atomic=atomic, timestamp=now, transaction=transaction)
        try:
            self.flush()
        except KeyboardInterrupt:
            self.flush()  # all of it was handed over, and is committed in a moment: better waited for than unknown
            if self.stays:
                written = f"offsets {offsets.start} to {offsets.stop - 1} are written"
                note(f"{self.log.name}: {written}: it was too late to stop")
            raise
        return offsets

    def submit(
        self, values: Iterable[bytes], *, atomic: bool, timestamp: int, transaction: str = "aclog import"
    ) -> range:
        """Append without waiting for the last ones; return the offsets that the values get once they are committed.

        With `atomic` more than one batch becomes a metadata transaction of this name. Raises as `append`.
        """
        batches = batched(values)
        first = next(batches, None)
        if first is None:
            return range(0)
        second = next(batches, None)
        # A reader applies the batches of a transaction only once it has seen the end record.
        in_transaction = atomic and second is not None
        if in_transaction:
            self._check_transactions()
            self._submit([encode_record(BeginTransactionRecord(name=transaction))], timestamp)
        begin = self.log.end_offset()
        try:
            for batch in chain([first], [] if second is None else [second], batches):
                self._submit(batch, timestamp)
        except BaseException:  # Ctrl-C included
            if in_transaction:
                with suppress(LogError):  # else it stays open, which is as invisible
                    self._submit([encode_record(AbortTransactionRecord(reason=_INTERRUPTED))], timestamp)
            raise
        offsets = range(begin, self.log.end_offset())
        if in_transaction:
            self._submit([encode_record(EndTransactionRecord())], timestamp)
        return offsets

    def _check_transactions(self) -> None:
        level = self.image.features.level(METADATA_VERSION)
        if 0 < level < TRANSACTIONS_SINCE:
            what = f"metadata.version {level} has no transactions, and these records need more than one batch"
            raise ConfigError(f"{self.log.name}: {what}: raise metadata.version to {TRANSACTIONS_SINCE} or later first")

    def _submit(self, batch: list[bytes], timestamp: int) -> None:
        size = sum(map(len, batch))
        self._in_flight.append((self.log.append(batch, timestamp=timestamp), size))
        self._bytes_in_flight += size
        while len(self._in_flight) > _MAX_IN_FLIGHT or self._bytes_in_flight > _MAX_BYTES_IN_FLIGHT:
            self._wait_for_first()

    def _wait_for_first(self) -> None:
        done, size = self._in_flight.popleft()
        self._bytes_in_flight -= size
        done.result()

    def flush(self) -> None:
        """Wait until all that was submitted is committed. Raises LogError."""
        while self._in_flight:
            self._wait_for_first()

    def append_control(self, records: Sequence[ControlRecord]) -> None:
        """Append control records in one batch and wait until they are committed. Raises LogError."""
        self.log.append_control(*records, timestamp=current_time_ms()).result()


def batched(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the values in batches of a size that Kafka accepts."""
    return grouped(values, MAX_BYTES)


@contextmanager
def open_writer(
    directory: Path,
    *,
    create: bool = False,
    force: bool = False,
    timestamp: int | None = None,
    for_sync: bool = False,
) -> Iterator[LogWriter]:
    """Open a log for writing, with its newest state; a transaction that an earlier writer left open is aborted.

    A new log begins at `timestamp` (ms since 1970), by default now; that of a formatted directory with what formatting
    left for it, as at a node's first start. `for_sync` permits a log that `aclog sync` writes.

    Raises:
        LockedError: another process writes to it, or a Kafka node runs on it.
        LogError: it is not a log, belongs to a Kafka node and `force` is not given, or belongs to `aclog sync`.
        DecodeError: it is damaged.

    """
    if not create and not directory.is_dir():
        raise LogError(f"{directory}: no such directory")
    if not for_sync:
        refuse_other_writers(directory)
    formatted = formatted_log(directory) if create else None
    node_id = 1
    if formatted is not None:
        formatted.prepare(force=force)
        node_id = formatted.node_id
    with open_log(directory, create=create, force=force, timestamp=timestamp, node_id=node_id) as log:
        # Recovered under the lock that open_log holds, so that no other writer can change the state in between.
        with progress(f"reading {directory}", BYTES) as advance:
            shown = in_bytes(directory, advance)
            found = recover_log(log, list_checkpoints(directory), newer=NewerKafka(strict=True), progress=shown)
        for text in (*log.notes, *found.notes):
            note(text)
        writer = LogWriter(log, found.image)
        if found.applier.in_transaction:  # or the records to come would become part of it
            note(f"{directory}: aborted a transaction that its writer left open")
            writer.append([encode_record(AbortTransactionRecord(reason="left open by its writer"))])
        if not found.image.features.level(METADATA_VERSION) and find_bootstrap(directory) is not None:
            # Of a log that was just begun, or whose beginning was interrupted: without these records no Kafka takes it.
            writer.image = begun_log(log, found.applier)
        yield writer


@contextmanager
def open_or_create(directory: Path, *, force: bool, timestamp: int | None = None) -> Iterator[tuple[LogWriter, bool]]:
    """Yield a writer of the log in this directory, and whether the log is new.

    A new log is written under a temporary name and renamed at the end, so that a failed import leaves nothing; a note
    names what a killed one has left. It begins at `timestamp`, by default now. The log of a formatted directory is
    begun in place, and is not new: it has features and users. Raises as open_writer,
    and LogError: another program has made the log meanwhile.
    """
    is_formatted = formatted_log(directory) is not None
    if is_formatted or (directory.exists() and (not directory.is_dir() or any(directory.iterdir()))):
        with open_writer(directory, create=is_formatted, force=force) as writer:
            yield writer, False
        return
    check_parent(directory)
    _name_remains(directory)
    partial = directory.with_name(f"{directory.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with open_writer(partial, create=True, force=force, timestamp=timestamp) as writer:
            writer.stays = False
            yield writer, True
        _name(partial, directory)
        fsync_directory(directory.absolute().parent)  # else a power loss could undo the rename of what is acknowledged
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _name(partial: Path, directory: Path) -> None:
    try:
        partial.replace(directory)  # rename() also replaces an empty directory
    except OSError as error:
        raise log_error(error, directory, "another program has made it meanwhile, or it cannot be made") from error


def _name_remains(directory: Path) -> None:
    """Tell of the directories in which a log of this name was being made when its writer was killed."""
    for path in sorted(directory.absolute().parent.glob(f"{escape(directory.name)}.*{PARTIAL_SUFFIX}")):
        is_ours = path.is_dir() and _PARTIAL_NAME.fullmatch(path.name.removeprefix(directory.name))
        if is_ours and holder_of(path / LOCK_FILE) is None:  # nobody is writing to it
            note(f"{path}: left by an interrupted import or sync: remove it")


def check_parent(path: Path) -> None:
    """Check that the directory in which a file or directory is to be created exists. Raises LogError."""
    if not path.absolute().parent.is_dir():
        raise LogError(f"{path.parent}: no such directory: expected one to create {path.name} in")
