"""The writer of a log directory for commands that change one, with the state that new records must fit."""

import secrets
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from attrs import define

from aclog.metalog.clock import current_time_ms
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import ControlRecord
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.file_names import list_checkpoints
from aclog.metalog.log import Appended
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.recovery import recover_log
from aclog.sources.sync_properties import refuse_other_writers
from aclog.terminal.notices import note

MAX_RECORDS = 10_000
"""Per batch (QuorumController.MAX_RECORDS_PER_USER_OP); more go into a metadata transaction (KIP-868)."""

MAX_BYTES = 4 << 20
"""Per batch, well below the 8 MiB that Kafka accepts."""


@define
class LogWriter:
    """An open log and its newest state; owned by the command that writes."""

    log: FileLog
    image: Image

    def append(self, values: Sequence[bytes], *, atomic: bool = True) -> None:
        """Append record values and wait until they are committed; with `atomic` they become visible all at once.

        Raises:
            LogError: the log cannot be written.

        """
        for done in self.submit(values, atomic=atomic, timestamp=current_time_ms()):
            done.result()

    def submit(self, values: Sequence[bytes], *, atomic: bool, timestamp: int) -> list[Future[Appended]]:
        """Append without waiting; `timestamp` is in ms since 1970."""
        batches = list(batched(values))
        if atomic and len(batches) > 1:
            # A reader applies the batches of a transaction only once it has seen the end record.
            begin = encode_record(BeginTransactionRecord(name="aclog import"))
            batches = [[begin], *batches, [encode_record(EndTransactionRecord())]]
        return [self.log.append(batch, timestamp=timestamp) for batch in batches]

    def append_control(self, records: Sequence[ControlRecord]) -> None:
        """Append control records in one batch and wait until they are committed. Raises LogError."""
        self.log.append_control(*records, timestamp=current_time_ms()).result()


def batched(values: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield the values in batches of a size that Kafka accepts."""
    batch: list[bytes] = []
    size = 0
    for value in values:
        if batch and (len(batch) >= MAX_RECORDS or size + len(value) > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(value)
        size += len(value)
    if batch:
        yield batch


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

    A new log begins at `timestamp` (ms since 1970), by default now. `for_sync` permits a log that `aclog sync` writes.

    Raises:
        LockedError: another process writes to it, or a Kafka node runs on it.
        LogError: it is not a log, belongs to a Kafka node and `force` is not given, or belongs to `aclog sync`.
        DecodeError: it is damaged.

    """
    if not create and not directory.is_dir():
        raise LogError(f"{directory}: no such directory")
    if not for_sync:
        refuse_other_writers(directory)
    with open_log(directory, create=create, force=force, timestamp=timestamp) as log:
        # Recovered under the lock that open_log holds, so that no other writer can change the state in between.
        found = recover_log(log, list_checkpoints(directory), newer=NewerKafka(strict=True))
        for text in (*log.notes, *found.notes):
            note(text)
        writer = LogWriter(log, found.image)
        if found.applier.in_transaction:  # or the records to come would become part of it
            note(f"{directory}: aborted a transaction that its writer left open")
            writer.append([encode_record(AbortTransactionRecord(reason="left open by its writer"))])
        yield writer


@contextmanager
def open_or_create(directory: Path, *, force: bool, timestamp: int | None = None) -> Iterator[tuple[LogWriter, bool]]:
    """Yield a writer of the log in this directory, and whether the log is new.

    A new log is written under a temporary name and renamed at the end, so that a failed import leaves nothing. It
    begins at `timestamp`, by default now. Raises as open_writer.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        with open_writer(directory, force=force) as writer:
            yield writer, False
        return
    check_parent(directory)
    partial = directory.with_name(f"{directory.name}.{secrets.token_hex(4)}.part")
    try:
        with open_writer(partial, create=True, force=force, timestamp=timestamp) as writer:
            yield writer, True
        partial.replace(directory)  # rename() also replaces an empty directory
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def check_parent(path: Path) -> None:
    """Check that the directory in which a file or directory is to be created exists. Raises LogError."""
    if not path.absolute().parent.is_dir():
        raise LogError(f"{path.parent}: no such directory: expected one to create {path.name} in")
