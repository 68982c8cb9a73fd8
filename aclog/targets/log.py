"""A log directory as a target."""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from glob import escape
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path

from attrs import field

from aclog.authorizer.acl import StandardAcl, acl_text, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.batches import MAX_BATCH_BYTES, grouped
from aclog.metalog.codec import encode_record
from aclog.metalog.committed_log import Appended
from aclog.metalog.control_records import ControlRecord
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError, LogError
from aclog.metalog.filelog import FileLog, open_log, open_reader
from aclog.metalog.filelog.files import PARTIAL_SUFFIX, fsync_directory, list_checkpoints, log_error
from aclog.metalog.filelog.locks import LOCK_FILE, holder_of
from aclog.metalog.machine import disk, randomness
from aclog.metalog.primitives import current_time_ms, random_uuid, uuid_text
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    RemoveAccessControlEntryRecord,
)
from aclog.metalog.values import define
from aclog.planning.plan import ApplyNote, Batching, Completion, PlaceState, Step, StoppedError
from aclog.server.controller.activation import begun_log, formatted_log
from aclog.snapshots.checkpoints import find_bootstrap
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_with
from aclog.snapshots.history import visible_records
from aclog.snapshots.image import METADATA_VERSION, TRANSACTIONS_SINCE, Image, NewerKafka, Provenance
from aclog.snapshots.publisher import recover_log
from aclog.sources.choice import gaps_of
from aclog.sources.logs import LogSource, cluster_id_of, in_bytes, refuse_other_writers
from aclog.targets.applies import (
    AppliedChange,
    append_applies,
    applied_line,
    done_line,
    read_applies,
    records_digest,
)
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import note

# The writer of a log directory for commands that change one, with the state that new records must fit.


MAX_BYTES = MAX_BATCH_BYTES
"""Per batch, as in a checkpoint; more records need a metadata transaction (KIP-868)."""

_PARTIAL_NAME = re.compile(rf"\.[0-9a-f]{{8}}{re.escape(PARTIAL_SUFFIX)}")
"""The suffix of the directory in which a log is made."""

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
    """Whether committed records outlive a failure of the command; a new log is removed."""
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
            self.flush()  # everything was submitted, and is committed in a moment: waiting avoids an unknown outcome
            if self.stays:
                written = f"offsets {offsets.start} to {offsets.stop - 1} are written"
                note(f"{self.log.name}: {written}: too late to stop")
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
            what = f"metadata.version {level} does not support transactions, and these records need more than one batch"
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
) -> Iterator[LogWriter]:
    """Open a log for writing, with its newest state; a transaction that an earlier writer left open is aborted.

    A new log begins at `timestamp` (ms since 1970), by default now; that of a formatted directory with the records of
    the bootstrap checkpoint, as at a node's first start.

    Raises:
        LockedError: another process writes to it, or a Kafka node runs on it.
        LogError: it is not a log, belongs to a Kafka node and `force` is not given, or belongs to `aclog sync`.
        DecodeError: it is damaged.

    """
    if not create and not directory.is_dir():
        raise LogError(f"{directory}: {'not a directory' if directory.exists() else NO_SUCH_PATH}")
    refuse_other_writers(directory)
    formatted = formatted_log(directory) if create else None
    node_id = 1
    if formatted is not None:
        formatted.prepare(force=force)
        node_id = formatted.node_id
    with open_log(directory, create=create, force=force, timestamp=timestamp, node_id=node_id) as log:
        for text in log.notes:
            note(text)
        yield recovered_writer(log)


def recovered_writer(log: FileLog) -> LogWriter:
    """Return the writer of an open log, with its newest state. Raises DecodeError: it is damaged.

    A transaction that an earlier writer left open is aborted.
    """
    directory = log.directory
    # Recovered under the lock that open_log holds, so that no other writer can change the state in between.
    with progress(f"reading {directory}", BYTES) as advance:
        advance_bytes = in_bytes(directory, advance)
        recovered = recover_log(log, list_checkpoints(directory), newer=NewerKafka(strict=True), progress=advance_bytes)
    for text in recovered.notes:
        note(text)
    writer = LogWriter(log, recovered.image)
    if recovered.applier.in_transaction:  # otherwise new records would become part of it
        note(f"{directory}: aborted a transaction that its writer left open")
        writer.append([encode_record(AbortTransactionRecord(reason="left open by its writer"))])
    if not recovered.image.features.level(METADATA_VERSION) and find_bootstrap(directory) is not None:
        # A new log, or one whose creation was interrupted: without these records no Kafka takes it.
        writer.image = begun_log(log, recovered.applier)
    return writer


@contextmanager
def open_or_create(directory: Path, *, force: bool, timestamp: int | None = None) -> Iterator[tuple[LogWriter, bool]]:
    """Yield a writer of the log in this directory, and whether the log is new.

    A new log is written under a temporary name and renamed at the end, so that a failed import leaves nothing; a note
    names the remains of a killed one. It begins at `timestamp`, by default now. The log of a formatted directory is
    created in place, and is not new: it has features and users. Raises as open_writer, and
    LogError: another program has made the log meanwhile.
    """
    is_formatted = formatted_log(directory) is not None
    if is_formatted or (directory.exists() and (not directory.is_dir() or any(directory.iterdir()))):
        with open_writer(directory, create=is_formatted, force=force) as writer:
            yield writer, False
        return
    check_parent(directory)
    _name_remains(directory)
    partial = directory.with_name(f"{directory.name}.{randomness.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with open_writer(partial, create=True, force=force, timestamp=timestamp) as writer:
            writer.stays = False
            yield writer, True
        _name(partial, directory)
        fsync_directory(
            directory.absolute().parent
        )  # otherwise a power loss could undo the rename of an acknowledged log
    except BaseException:
        disk.rmtree(partial, ignore_errors=True)
        raise


def _name(partial: Path, directory: Path) -> None:
    try:
        partial.replace(directory)  # rename() also replaces an empty directory
    except OSError as error:
        raise log_error(
            error, directory, "it was created by another program meanwhile, or cannot be created"
        ) from error


def _name_remains(directory: Path) -> None:
    """Print a note for each directory in which a killed writer was creating a log of this name."""
    for path in sorted(directory.absolute().parent.glob(f"{escape(directory.name)}.*{PARTIAL_SUFFIX}")):
        is_ours = path.is_dir() and _PARTIAL_NAME.fullmatch(path.name.removeprefix(directory.name))
        if is_ours and holder_of(path / LOCK_FILE) is None:  # no process is writing to it
            note(f"{path}: left by an interrupted import or sync: remove it")


def check_parent(path: Path) -> None:
    """Check that the directory in which a file or directory is to be created exists. Raises LogError."""
    if not path.absolute().parent.is_dir():
        raise LogError(f"{path.parent}: no such directory: expected one to create {path.name} in")


# A log directory as a target: a whole plan is one batch, or one metadata transaction, so there is no state between.


_CHANGES = (AccessControlEntryRecord, RemoveAccessControlEntryRecord)


@define(eq=False, kw_only=True)
class LogPlace:
    """A log directory, or one that is not created yet; owned by one command."""

    directory: Path
    notify: Callable[[str], None]
    force: bool = False
    """Whether a log may be written that belongs to a Kafka node."""
    _writer: LogWriter | None = None
    """The open log, whose writer's lock is held; None for reading, and for a log that is yet to be made."""
    _note: ApplyNote | None = field(default=None, init=False)
    """The note of the apply, until it is written."""
    _source: LogSource | None = field(default=None, init=False)
    _image: Image = field(default=Image.EMPTY, init=False)
    """The last state read; empty while there is no log."""

    batching: Batching = field(default=Batching.ALL, init=False)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    def identity(self) -> str | None:
        """Return the id of the log's cluster, or the one from the log's first apply. Raises as Place."""
        cluster = cluster_id_of(self.directory)  # a formatted directory has it, before there is a log
        if cluster is not None:
            return cluster
        applies = read_applies(self.directory)
        return None if applies is None else applies.id

    def fingerprint(self, end_offset: int) -> str | None:
        """Return the SHA-256 of the log's first batch and of the one before an offset. Raises as open_reader."""
        if is_absent(self.directory) or formatted_log(self.directory) is not None:
            return None
        with open_reader(self.directory) as reader:
            first = reader.start_offset()
            if not first < end_offset <= reader.high_watermark():
                return None
            digest = sha256()
            for offset in first, end_offset - 1:
                digest.update(reader.read(offset, 1))  # one batch is whole, however large
        return digest.hexdigest()

    def premises(self, properties: AbstractSet[str]) -> Premises:  # noqa: ARG002  # as the protocol has it
        """Return the gaps of the state: a log has no settings, and those of the flags decide."""
        return ALL_KNOWN if self._source is None else gaps_of(self._source)

    def settings(self) -> Settings | None:
        """Return None: a log does not contain the settings of its brokers."""
        return None

    def read(self) -> PlaceState:
        """Return the newest state. Raises as LogSource.image."""
        if self._writer is not None:
            return self._state(self._writer.image, self._writer.log.end_offset())
        formatted = formatted_log(self.directory)
        if formatted is not None:
            self._image = formatted.image
            return PlaceState.of_image(formatted.image.acls, exists=False)
        if is_absent(self.directory):
            self._image = Image.EMPTY
            check_parent(self.directory)
            return PlaceState.of_image(AclsImage.empty(), exists=False)
        self._source = self._source or LogSource(self.directory, self.notify)
        image = self._source.image()
        return self._state(image, image.end_offset)

    def kafka(self, ranges: Collection[StandardAcl]) -> DecidingKafka:
        """Return the Kafka version of the finalized level, or of the nodes' registrations. As Place has it."""
        return kafka_with(self._image, ranges)

    def note_begin(self, note: ApplyNote) -> None:
        """Remember the apply: its note is written together with its records."""
        self._note = note

    def check(self, steps: Sequence[Step]) -> None:
        """Do nothing: a log holds every ACL that a record can hold."""

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield all steps at once."""
        if steps:
            yield steps

    def write(self, piece: Sequence[Step]) -> None:
        """Make all steps in one batch or transaction.

        Raises LogError; StoppedError: the log has changed since the read.

        """
        if self._writer is not None:
            self._append(self._writer, piece)
            return
        with open_or_create(self.directory, force=self.force) as (writer, is_new):
            if not is_new and len(writer.image.acls):
                raise StoppedError(f"{self.directory}: it was changed by another program since it was read")
            self._append(writer, piece)

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs the log has now: read anew, from the files that readers use."""
        source = LogSource(self.directory, self.notify)
        try:
            image = source.image().acls
        finally:
            source.close()
        return {acl for acl in acls if image.find(acl) is not None}

    def note_done(self, note: ApplyNote) -> None:
        """Record the end of the apply.

        One that wrote nothing, as it only changed the managed ACLs, is noted as a whole here: an older copy of its
        journal is detected by this file.

        Raises:
            LogError: it cannot be written. DecodeError: as read_applies.

        """
        if is_absent(self.directory):
            return
        if self._note is not None and not self.was_noted(note.apply):
            line = applied_line(note, offset=self.read().end_offset or 0, steps=0, digest=records_digest(()))
            append_applies(self.directory, _new_id(), [line])
        append_applies(self.directory, _new_id(), [done_line(note)])

    def noted(self, plan: str) -> ApplyNote | None:
        """Return the note of the newest apply of a plan. Raises as read_applies."""
        applies = read_applies(self.directory)
        notes = () if applies is None else applies.applied
        return next((each.note for each in reversed(notes) if each.note.plan == plan), None)

    def was_noted(self, apply: str) -> bool:
        """Return whether applies.jsonl names the apply. Raises as read_applies."""
        applies = read_applies(self.directory)
        return applies is not None and any(each.note.apply == apply for each in applies.applied)

    def completion(self, apply: str) -> Completion | None:
        """Return whether the log has all records of an apply, or none; they are written at once.

        None: its records may have been deleted since, or it may have been made through a node, which keeps no note.
        Raises as read_applies and visible_records.
        """
        applies = read_applies(self.directory)
        change = next((each for each in (() if applies is None else applies.applied) if each.note.apply == apply), None)
        if change is None:
            return Completion.NONE if cluster_id_of(self.directory) is None else None
        return Completion.ALL if change.done else self._made_records(change)

    def _state(self, image: Image, end_offset: int) -> PlaceState:
        self._image = image
        return PlaceState.of_image(image.acls, end_offset)

    def _made_records(self, change: AppliedChange) -> Completion | None:
        """Return whether the records of an apply are the first that change ACLs from the offset of its note on."""
        if is_absent(self.directory) or formatted_log(self.directory) is not None:
            return Completion.NONE
        with open_reader(self.directory) as reader:
            if change.digest is None or reader.start_offset() > change.offset:
                return None
            begin = Provenance(end_offset=change.offset)
            changes = (each for each in visible_records(begin, reader) if isinstance(each.record, _CHANGES))
            first = list(islice(changes, change.steps))
        return (
            Completion.ALL
            if records_digest(encode_record(each.record) for each in first) == change.digest
            else Completion.NONE
        )

    def _append(self, writer: LogWriter, steps: Sequence[Step]) -> None:
        """Append the records of the steps, the note of the apply first, and wait until they are committed.

        The note of a new log is where that is made, under a temporary name: the log is never there without it.
        """
        values = [encode_record(_record(writer.image.acls, step)) for step in steps]
        if self._note is not None:
            end, digest = writer.log.end_offset(), records_digest(values)
            line = applied_line(self._note, offset=end, steps=len(steps), digest=digest)
            append_applies(writer.log.directory, _new_id(), [line])
            self._note = None
        writer.append(values, transaction="aclog apply")


@contextmanager
def open_log_place(
    directory: Path, notify: Callable[[str], None], *, write: bool, force: bool = False
) -> Iterator[LogPlace]:
    """Open a log directory as a target; with `write`, it is locked against other writers until the end of the `with`.

    Raises:
        LockedError, LogError, DecodeError: as open_writer.

    """
    if directory.exists() and not directory.is_dir():
        raise LogError(f"{directory}: not a directory: expected that of a log; the desired state is given by --want")
    formatted = formatted_log(directory)
    if write and formatted is not None:
        formatted.check_writable(force=force)
    if not write or formatted is not None or is_absent(directory):
        yield LogPlace(directory=directory, notify=notify, force=force)
        return
    with open_writer(directory, force=force) as writer:
        yield LogPlace(directory=directory, notify=notify, force=force, writer=writer)


def is_absent(directory: Path) -> bool:
    """Return whether the path is missing, or an empty directory. Raises LogError: it cannot be read."""
    try:
        return not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    except OSError as error:
        raise LogError(f"{directory}: {error.strerror}") from error


def _record(acls: AclsImage, step: Step) -> AccessControlEntryRecord | RemoveAccessControlEntryRecord:
    rule_id = acls.find(step.acl)
    if step.adds is (rule_id is not None):
        raise StoppedError(f"{acl_text(step.acl)}: {'exists' if step.adds else 'does not exist'} already")
    if rule_id is None:
        return record_of(step.acl, random_uuid(randomness.token_bytes))
    return RemoveAccessControlEntryRecord(id=rule_id)


def _new_id() -> str:
    return uuid_text(random_uuid(randomness.token_bytes))
