"""A log directory as a place: a whole plan is one batch, or one metadata transaction, so there is no state between."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acl_records import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Settings
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.nodes.controller.write_path.formatted_log import formatted_log
from aclog.places.applies_file import (
    AppliedChange,
    append_applies,
    applied_line,
    done_line,
    read_applies,
    records_digest,
)
from aclog.places.log_writer import LogWriter, check_parent, open_or_create, open_writer
from aclog.planning.batching import Batching
from aclog.planning.errors import StoppedError
from aclog.planning.journal.sent import Made
from aclog.planning.place import ApplyNote, PlaceState
from aclog.planning.step import Step
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_of_image
from aclog.snapshots.image import Image
from aclog.snapshots.provenance import Provenance
from aclog.snapshots.visible_records import visible_records
from aclog.sources.choice import gaps_of
from aclog.sources.cluster_identity import cluster_id_of
from aclog.sources.paths import LogSource

_CHANGES = (AccessControlEntryRecord, RemoveAccessControlEntryRecord)


@define(eq=False, kw_only=True)
class LogPlace:
    """A log directory, or one that is yet to be made; owned by one command."""

    directory: Path
    notify: Callable[[str], None]
    force: bool = False
    """Whether a log may be written that belongs to a Kafka node."""
    _writer: LogWriter | None = None
    """The open log, whose writer's lock is held; None for reading, and for a log that is yet to be made."""
    _note: ApplyNote | None = field(default=None, init=False)
    """Of the apply, until it is written."""
    _source: LogSource | None = field(default=None, init=False)
    _image: Image = field(default=Image.EMPTY, init=False)
    """What was read last; empty while there is no log."""

    batching: Batching = field(default=Batching.ALL, init=False)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    def identity(self) -> str | None:
        """Return the id of the log's cluster, or the one that the first apply gave the log. Raises as Place."""
        cluster = cluster_id_of(self.directory)  # a formatted directory tells, before there is a log
        if cluster is not None:
            return cluster
        found = read_applies(self.directory)
        return None if found is None else found.id

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

    def premises(self, given: AbstractSet[str]) -> Premises:  # noqa: ARG002  # as the protocol has it
        """Return what the state lacks that was read: a log has no settings, and what is given decides there."""
        return ALL_KNOWN if self._source is None else gaps_of(self._source)

    def settings(self) -> Settings | None:
        """Return None: a log does not tell the settings of its brokers."""
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

    def kafka(self, ranges: Iterable[str]) -> DecidingKafka:
        """Return what the finalized level implies, or the registrations of the brokers state. As Place has it."""
        return kafka_of_image(self._image, ranges)

    def note_begin(self, note: ApplyNote) -> None:
        """Remember the apply: its note is written together with what it writes."""
        self._note = note

    def check(self, steps: Sequence[Step]) -> None:
        """Do nothing: a log holds what a record can."""

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield all steps at once."""
        if steps:
            yield steps

    def write(self, piece: Sequence[Step]) -> None:
        """Make all steps in one batch or transaction. Raises LogError; StoppedError: the log is not what was read."""
        if self._writer is not None:
            self._append(self._writer, piece)
            return
        with open_or_create(self.directory, force=self.force) as (writer, is_new):
            if not is_new and len(writer.image.acls):
                raise StoppedError(f"{self.directory}: another program has written to it since it was read")
            self._append(writer, piece)

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs the log has now: read anew, from the files that others read."""
        source = LogSource(self.directory, self.notify)
        try:
            found = source.image().acls
        finally:
            source.close()
        return {acl for acl in acls if found.find(acl) is not None}

    def note_done(self, note: ApplyNote) -> None:
        """Keep that the apply has ended.

        One that wrote nothing, as it only changed who owns what, is noted as a whole here: an older copy of its journal
        is known by what this file has.

        Raises:
            LogError: it cannot be written. DecodeError: as read_applies.

        """
        if is_absent(self.directory):
            return
        lines = [done_line(note)]
        if self._note is not None and not self.was_noted(note.apply):
            lines = [applied_line(note, offset=self.read().end_offset or 0, steps=0, digest=records_digest(())), *lines]
        append_applies(self.directory, _new_id(), lines)

    def noted(self, plan: str) -> ApplyNote | None:
        """Return the note of the newest apply of a plan. Raises as read_applies."""
        found = read_applies(self.directory)
        notes = () if found is None else found.applied
        return next((each.note for each in reversed(notes) if each.note.plan == plan), None)

    def was_noted(self, apply: str) -> bool:
        """Return whether applies.jsonl names the apply. Raises as read_applies."""
        found = read_applies(self.directory)
        return found is not None and any(each.note.apply == apply for each in found.applied)

    def made(self, apply: str) -> Made | None:
        """Return whether the log has all records of an apply, or none; they are written at once.

        None: its records may have been deleted since, or it may have been made through a node, which keeps no note.
        Raises as read_applies and visible_records.
        """
        kept = read_applies(self.directory)
        found = next((each for each in (() if kept is None else kept.applied) if each.note.apply == apply), None)
        if found is None:
            return Made.NONE if cluster_id_of(self.directory) is None else None
        return Made.ALL if found.done else self._made_records(found)

    def _state(self, image: Image, end_offset: int) -> PlaceState:
        self._image = image
        return PlaceState.of_image(image.acls, end_offset)

    def _made_records(self, found: AppliedChange) -> Made | None:
        """Return whether the records of an apply are the first that change ACLs from the offset of its note on."""
        if is_absent(self.directory) or formatted_log(self.directory) is not None:
            return Made.NONE
        with open_reader(self.directory) as reader:
            if found.digest is None or reader.start_offset() > found.offset:
                return None
            begin = Provenance(end_offset=found.offset)
            changes = (each for each in visible_records(begin, reader) if isinstance(each.record, _CHANGES))
            first = list(islice(changes, found.steps))
        return Made.ALL if records_digest(encode_record(each.record) for each in first) == found.digest else Made.NONE

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
    """Open a log directory as a place; with `write`, nobody else can write to the log until the end of the `with`.

    Raises:
        LockedError, LogError, DecodeError: as open_writer.

    """
    if directory.exists() and not directory.is_dir():
        raise LogError(f"{directory}: not a directory: expected that of a log; what is wanted is given by --want")
    formatted = formatted_log(directory)
    if write and formatted is not None:
        formatted.check_writable(force=force)
    if not write or formatted is not None or is_absent(directory):
        yield LogPlace(directory=directory, notify=notify, force=force)
        return
    with open_writer(directory, force=force) as writer:
        yield LogPlace(directory=directory, notify=notify, force=force, writer=writer)


def is_absent(directory: Path) -> bool:
    """Return whether nothing is there: no directory, or an empty one. Raises LogError: it cannot be looked at."""
    try:
        return not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    except OSError as error:
        raise LogError(f"{directory}: {error.strerror}") from error


def _record(acls: AclsImage, step: Step) -> AccessControlEntryRecord | RemoveAccessControlEntryRecord:
    found = acls.find(step.acl)
    if step.adds is (found is not None):
        raise StoppedError(f"{acl_text(step.acl)}: {'is there' if step.adds else 'is not there'} already")
    if found is None:
        return record_of(step.acl, random_uuid(secrets.token_bytes))
    return RemoveAccessControlEntryRecord(id=found)


def _new_id() -> str:
    return uuid_text(random_uuid(secrets.token_bytes))
