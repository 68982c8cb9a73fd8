"""Checkpoints: reading, writing, retention, and image files.

A snapshot file is read completely or refused, and written atomically.
"""

import os
import stat
import struct
from collections.abc import Callable, Iterator, Sized
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from attrs import evolve, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import base_of
from aclog.metalog import control_records
from aclog.metalog.batches import (
    MAX_BATCH_BYTES,
    BatchHeader,
    build_batch,
    check_crc,
    grouped,
    iter_batches,
    read_records,
)
from aclog.metalog.codec import decode_values, encode_record
from aclog.metalog.errors import CheckpointError, DecodeError, LogError, NewerKafkaError
from aclog.metalog.filelog import files
from aclog.metalog.machine import disk
from aclog.metalog.records import MetadataRecord
from aclog.metalog.values import define, frozen
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import METADATA_VERSION, Image, NewerKafka, Provenance
from aclog.snapshots.image_file import (
    BLOCK_BYTES,
    HEADER_BYTES,
    CheckpointIdentity,
    ImageHeader,
    MappedFile,
    check_mapping,
    checksum_of,
    checksums_of,
    decode_header,
    digest_of,
    digest_of_file,
    encode_header,
)
from aclog.snapshots.moments import Moment, milliseconds

# Reads checkpoints: a snapshot file is accepted whole or refused (FileRawSnapshotReader, RecordsSnapshotReader).


BOOTSTRAP_NAME = "bootstrap.checkpoint"
"""Written by `kafka-storage format` next to a log: records for the log's first transaction, not in any log yet."""


def read_checkpoint(path: Path | str, *, newer: NewerKafka | None = None) -> Image:
    """Return the image in a checkpoint file, whose name has its end offset and epoch.

    The file must begin with a SnapshotHeader and end with a SnapshotFooter, and every batch must have the epoch of the
    name, which no CRC covers. `newer` is the policy for a newer Kafka's records; the default is to refuse them.

    Raises:
        CheckpointError: the file is not a complete checkpoint, or does not match its name.

    """
    path = Path(path)
    end_offset, epoch = _parse_name(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read: {error.strerror or error}") from error
    try:
        return decode_checkpoint(data, end_offset=end_offset, epoch=epoch, newer=newer)
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error


def _parse_name(path: Path) -> tuple[int, int]:
    if path.name == BOOTSTRAP_NAME:
        # Not in Kafka's naming scheme for snapshots, as it is not a state at an offset.
        return 0, 0
    key = files.parse_checkpoint_name(path.name)
    if key is not None:
        return key
    if path.name.endswith(files.PARTIAL_SUFFIX):
        raise CheckpointError(f"{path}: an unfinished checkpoint: expected a file without {files.PARTIAL_SUFFIX}")
    raise CheckpointError(
        f"{path}: not a checkpoint file name: expected <20 digits of end offset>-<10 digits of epoch>.checkpoint"
    )


def decode_checkpoint(data: bytes, *, end_offset: int, epoch: int, newer: NewerKafka | None = None) -> Image:
    """Return the image in the bytes of a checkpoint with this end offset and epoch.

    Raises:
        DecodeError: damaged or truncated, not a checkpoint, or of another epoch; positions are in `data`.

    """
    batches = _checked_batches(data, epoch)
    (first_at, first), (last_at, last) = batches[0], batches[-1]
    opening = _control_records(data, first_at, first)
    if not opening or not isinstance(opening[0], control_records.SnapshotHeader):
        raise DecodeError("no SnapshotHeader: every checkpoint begins with one", position=0)
    closing = _control_records(data, last_at, last)
    if len(closing) != 1 or not isinstance(closing[0], control_records.SnapshotFooter):
        raise DecodeError("no SnapshotFooter: the checkpoint is truncated", position=last_at)
    kraft = next((r.kraft_version for r in opening if isinstance(r, control_records.KRaftVersion)), 0)
    voters = next((r for r in opening if isinstance(r, control_records.KRaftVoters)), None)
    timestamp = opening[0].last_contained_log_timestamp
    # The applier expects contiguous offsets, so replay runs with the checkpoint's own offsets (from the header on);
    # afterwards the image gets the end offset that the file name states.
    start = Provenance(
        end_offset=first.record_count, epoch=epoch, timestamp=timestamp, kraft_version=kraft, voters=voters
    )
    content = _replay(data, first.size, last_at, start=Image(provenance=start), newer=newer)
    provenance = Provenance(end_offset=end_offset, epoch=epoch, timestamp=timestamp, kraft_version=kraft, voters=voters)
    return content.at(provenance)


def _replay(data: bytes, position: int, end: int, start: Image, newer: NewerKafka | None) -> Image:
    """Replay what is between header and footer; it has the form of a log, except that offsets begin at 0."""
    applier = Applier(image=start, newer=newer or NewerKafka())
    image = applier.apply(data, position, end)
    if applier.in_transaction:
        raise DecodeError("the checkpoint ends inside a transaction: checkpoints have none", position=end)
    return image


def _checked_batches(data: bytes, epoch: int) -> list[tuple[int, BatchHeader]]:
    """Return every batch's position and header: whole, of this epoch, dense offsets, control batches at both ends."""
    batches = list(iter_batches(data))
    whole = batches[-1][0] + batches[-1][1].size if batches else 0
    if len(batches) < 2 or whole != len(data):
        raise DecodeError("truncated: expected a header, whole batches and a footer", position=whole)
    offset = 0
    for number, (position, header) in enumerate(batches):
        # Neither is covered by the CRC: offsets are checked by continuity, the epoch against the file name.
        if header.base_offset != offset or header.leader_epoch != epoch:
            raise DecodeError(
                f"a batch at offset {header.base_offset} of epoch {header.leader_epoch}: "
                f"expected offset {offset}, and epoch {epoch} as in the checkpoint's name",
                position=position,
            )
        if header.is_control != (number in {0, len(batches) - 1}):
            what = (
                "a control batch between data batches"
                if header.is_control
                else "no footer: the checkpoint is truncated"
            )
            raise DecodeError(f"{what}: expected control batches at both ends, and only there", position=position)
        offset = header.end_offset
    return batches


def _control_records(data: bytes, position: int, header: BatchHeader) -> list[control_records.ControlRecord]:
    check_crc(data, position, header)
    return [
        control_records.decode_control(record.key or b"", record.value)
        for record in read_records(data, position, header)
    ]


# Writes checkpoints: an image as the batches of a snapshot file (RecordsSnapshotWriter, FileRawSnapshotWriter).


def checkpoint_batches(image: Image, *, max_batch_bytes: int = MAX_BATCH_BYTES) -> Iterator[bytes]:
    """Yield the batches of a checkpoint one by one, so that a large one is never in memory as a whole.

    Control records come first, then feature levels, brokers, uninterpreted records in log order, ACLs, SCRAM
    credentials and tokens; the footer is last. Offsets begin at 0, epoch and timestamp are the image's: the same image
    yields the same bytes.

    Raises:
        CheckpointError: kraft.version is 1 without a voter set: a cluster could not elect a leader from that
            checkpoint.

    """
    provenance = image.provenance
    if provenance.kraft_version and provenance.voters is None:
        raise CheckpointError(
            f"the image at offset {image.end_offset} has kraft.version {provenance.kraft_version} and no voters: "
            "expected a KRaftVoters record before that offset; no cluster can start from a checkpoint without it"
        )
    epoch, timestamp = image.epoch, max(image.timestamp, 0)
    header = control_records.snapshot_header_records(
        last_contained_log_timestamp=timestamp,
        kraft_version=provenance.kraft_version,
        voters=provenance.voters,
    )
    yield control_records.control_batch(*header, base_offset=0, leader_epoch=epoch, timestamp=timestamp)
    offset = len(header)
    for values in grouped(_values(image), max_batch_bytes):
        yield build_batch(values, base_offset=offset, leader_epoch=epoch, timestamp=timestamp)
        offset += len(values)
    yield control_records.control_batch(
        control_records.SnapshotFooter(), base_offset=offset, leader_epoch=epoch, timestamp=timestamp
    )


def _values(image: Image) -> Iterator[bytes]:
    yield from map(encode_record, image.features.records())
    yield from map(encode_record, image.cluster.records(image.features.level(METADATA_VERSION)))
    yield from image.opaque.values()
    yield from image.acls.records()
    yield from map(encode_record, image.scram.records())
    yield from map(encode_record, image.tokens.records())


def write_checkpoint(image: Image, directory: Path | str, *, progress: Callable[[int], None] | None = None) -> Path:
    """Write `<end offset>-<epoch>.checkpoint` into `directory`, atomically: it gets its name only when complete.

    `progress` is called with the number of bytes written so far.

    Raises:
        LogError: the disk is full or fails, or the image file that the state is mapped from was overwritten.
        CheckpointError: see `checkpoint_batches`.

    """
    path = Path(directory) / files.checkpoint_name(image.end_offset, image.epoch)
    written = 0
    try:
        with files.written_whole(path) as fd:
            for batch in checkpoint_batches(image):
                files.write_all(fd, batch)
                written += len(batch)
                if progress is not None:
                    progress(written)
            # Retention removes covered segments, so an overwritten image file must not become the state.
            check_mapping(image.acls)
    except OSError as error:
        raise files.log_error(error, path, "cannot write the checkpoint") from error
    return path


# The bootstrap records: written by formatting, and committed by the first leader of an empty log; not state yet.
#
# Kafka up to 4.3 keeps them in bootstrap.checkpoint in the node's directory. From 4.4 on (KIP-1170) they are data
# batches of the 0-0 checkpoint beside the log; if it has any, a bootstrap.checkpoint is ignored.


FIRST_CHECKPOINT = files.checkpoint_name(0, 0)
"""The checkpoint that formatting leaves in the log's directory: the voters, and from 4.4 on the records."""


@frozen(kw_only=True)
class BootstrapRecords:
    """The records of a file, and their state, with the voters of the file."""

    path: Path
    records: tuple[MetadataRecord, ...] = field(repr=False)
    image: Image = field(repr=False)

    @property
    def in_first_checkpoint(self) -> bool:
        """Whether the file is a 0-0 checkpoint, of which Kafka before 4.4 reads only the voters."""
        return self.path.name == FIRST_CHECKPOINT


def find_bootstrap(log_directory: Path) -> BootstrapRecords | None:
    """Return the records that the first leader of the log in this directory commits; None if there is no such file.

    Raises:
        CheckpointError: a file is damaged, or was written by a newer Kafka.

    """
    first = log_directory / FIRST_CHECKPOINT
    if first.is_file() and (bootstrap := read_bootstrap(first)).records:
        return bootstrap
    legacy = legacy_bootstrap(log_directory)
    return None if legacy is None else read_bootstrap(legacy)


def uncommitted_bootstrap(log_directory: Path, image: Image) -> str | None:
    """Return the problem of a log in this state that was begun without the records of its 0-0 checkpoint.

    Versions of aclog without KIP-1170 read these records as state, and no leader committed them: Kafka does not start
    on such a log, and the users and ACLs of the file are in no state. None for any other log. Raises CheckpointError:
    as find_bootstrap.
    """
    parts: tuple[Sized, ...] = (image.acls, image.scram, image.tokens, image.cluster, image.opaque)
    if len(image.features) or not any(len(part) for part in parts):
        return None
    bootstrap = find_bootstrap(log_directory)
    if bootstrap is None or not bootstrap.in_first_checkpoint:
        return None
    return (
        f"begun without the {len(bootstrap.records)} records of {bootstrap.path.name}, and so without metadata.version:"
        " export what the log has (`aclog export --log`), format an empty directory, and import it there"
    )


def legacy_bootstrap(log_directory: Path) -> Path | None:
    """Return the bootstrap.checkpoint beside a metadata log, or None."""
    path = log_directory.absolute().parent / BOOTSTRAP_NAME
    return path if log_directory.name == files.METADATA_DIRECTORY and path.is_file() else None


def read_bootstrap(path: Path) -> BootstrapRecords:
    """Return the records of a bootstrap.checkpoint or 0-0 checkpoint. Raises CheckpointError: as find_bootstrap."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read: {error.strerror or error}") from error
    try:
        image = decode_checkpoint(data, end_offset=0, epoch=0, newer=NewerKafka(strict=True))
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error
    batches = [(position, header) for position, header in iter_batches(data) if not header.is_control]
    records = tuple(record for position, header in batches for record in decode_values(data, position, header))
    return BootstrapRecords(path=path, records=records, image=image)


# Image files: the state of a checkpoint without replaying its ACLs, whose base is mapped and shared.
#
# An image file is a cache. It is used only if it was made from exactly this checkpoint, by its digest, and no byte of
# it has changed since; otherwise the checkpoint is read.


_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
# A link could lead to another user's file, and opening a FIFO would wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_image_file(checkpoint: Path) -> Image | None:
    """Return the state of a checkpoint from the image file beside it, or None.

    Raises:
        DecodeError: the image file is not valid, with its path.

    """
    named = files.parse_checkpoint_name(checkpoint.name)
    if named is None:
        return None
    path = files.image_path(checkpoint)
    try:
        fd = disk.open(path, _FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DecodeError(f"cannot open: {error.strerror or error}", path=str(path)) from error
    try:
        return _ImageFile(fd=fd, checkpoint=checkpoint, name=named).read()
    except OSError as error:
        raise DecodeError(f"cannot read: {error.strerror or error}", path=str(path)) from error
    except DecodeError as error:
        raise error.at(path=str(path)) from error
    finally:
        disk.close(fd)


@frozen(kw_only=True)
class _Place:
    """The owner and the size of a file."""

    owner: int
    size: int

    @classmethod
    def of(cls, fd: int, what: str) -> "_Place":
        """Return those of an open file. Raises DecodeError if it is not a regular file."""
        status = disk.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise DecodeError(f"{what} is not a regular file")
        return cls(owner=status.st_uid, size=status.st_size)


@define(kw_only=True, eq=False, repr=False)
class _ImageFile:
    """An open image file, while it is checked and read."""

    fd: int
    checkpoint: Path
    name: tuple[int, int]
    """End offset and epoch of the checkpoint's name."""

    def read(self) -> Image:
        """Check everything, then map the base. Raises DecodeError and OSError."""
        place = _Place.of(self.fd, "it")
        if disk.fstat(self.fd).st_mode & _OTHERS_MAY_WRITE:
            raise DecodeError("writable by others than its owner: expected mode 0600")
        header = decode_header(files.read_at(self.fd, 0, HEADER_BYTES))
        if header.file_size != place.size:
            raise DecodeError(f"{place.size} bytes: expected {header.file_size}, according to its header")
        self._check_checkpoint(header, place.owner)
        return mapped_image(self.fd, files.image_path(self.checkpoint), header)

    def _check_checkpoint(self, header: ImageHeader, owner: int) -> None:
        """Check that the file was made from the checkpoint, and that its owner is the checkpoint's."""
        made_from = header.checkpoint
        if (made_from.end_offset, made_from.epoch) != self.name:
            raise DecodeError(
                f"made from the checkpoint of offset {made_from.end_offset}, epoch {made_from.epoch}, not from "
                f"{self.checkpoint.name}"
            )
        fd = disk.open(self.checkpoint, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            place = _Place.of(fd, self.checkpoint.name)
            if place.owner != owner:
                raise DecodeError(f"its owner is user {owner}: expected {place.owner}, the checkpoint's")
            if place.size != made_from.size or digest_of_file(fd, place.size) != made_from.digest:
                raise DecodeError(f"made from another {self.checkpoint.name} than the one beside it")
        finally:
            disk.close(fd)


def mapped_image(fd: int, path: Path, header: ImageHeader) -> Image:
    """Return the state in an open image file with this header, whose base it maps. Raises DecodeError and OSError."""
    mapped = MappedFile(fd, path, header)
    rest = files.read_at(fd, HEADER_BYTES, header.rest_size)
    # Strict: a newer Kafka's records have to be reported by what the file was made from.
    image = decode_checkpoint(rest, end_offset=header.checkpoint.end_offset, epoch=header.checkpoint.epoch)
    return image.with_acls(_acls_of(mapped))


def _acls_of(mapped: MappedFile) -> AclsImage:
    header = mapped.header
    try:
        base = base_of(memoryview(mapped)[header.base_start : header.checksums_start])
    except (ValueError, LookupError, struct.error) as error:  # its checksums match, but aclog has not written it
        raise DecodeError(f"its base cannot be read: {error}") from error
    return AclsImage(index=AclIndex(base))


# Image files: writing the state of a checkpoint in its mapped form.


Progress = Callable[[int, int], None]
"""Called with (bytes written, bytes to write)."""


def write_image_file(checkpoint: Path, *, progress: Progress | None = None) -> Path:
    """Write the image file of a checkpoint beside it, atomically; return its path.

    It is made from the checkpoint's bytes, never from a state in memory, so that the two cannot differ.

    Raises:
        CheckpointError: the checkpoint cannot be read or is not valid, or has records of a newer Kafka.
        LogError: the disk is full or fails, or the checkpoint was removed meanwhile.

    """
    contents = _contents(checkpoint)
    path = files.image_path(checkpoint)
    try:
        with files.written_whole(path) as fd:
            write_contents(fd, contents, progress)
        if not checkpoint.exists():  # retention removed it meanwhile: the image file is useless
            path.unlink(missing_ok=True)
    except OSError as error:
        raise files.log_error(error, path, "cannot write the image file") from error
    return path


@frozen(kw_only=True, eq=False, repr=False)
class _Contents:
    """The parts of the file: header, rest with its padding, base, checksums."""

    pieces: tuple[bytes | memoryview, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(memoryview(piece).nbytes for piece in self.pieces)


def _contents(checkpoint: Path) -> _Contents:
    named = files.parse_checkpoint_name(checkpoint.name)
    if named is None:
        raise CheckpointError(f"{checkpoint}: only a checkpoint of an offset and epoch has an image file")
    end_offset, epoch = named
    try:
        data = checkpoint.read_bytes()
        image = decode_checkpoint(data, end_offset=end_offset, epoch=epoch)
        rest = checked_rest(image)
    except OSError as error:
        raise CheckpointError(f"{checkpoint}: cannot read: {error.strerror or error}") from error
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(checkpoint)))) from error
    made_from = CheckpointIdentity(end_offset=end_offset, epoch=epoch, size=len(data), digest=digest_of(data))
    del data
    return laid_out(made_from, rest, flat_of(image.acls))


def rest_of(image: Image) -> bytes:
    """Return a state without its ACLs as a checkpoint. Raises what `checkpoint_batches` raises."""
    return b"".join(checkpoint_batches(image.with_acls(AclsImage.empty())))


def checked_rest(image: Image) -> bytes:
    """Return the same, if it can be read back.

    Raises:
        DecodeError: what it reads back as is not the same.

    """
    rest = rest_of(image)
    decoded = decode_checkpoint(rest, end_offset=image.end_offset, epoch=image.epoch)
    if decoded.provenance != image.provenance:
        raise DecodeError("an image file cannot hold when its last record was written, or its voters")
    return rest


def flat_of(acls: AclsImage) -> memoryview:
    """Return the flat base of all ACLs."""
    merged = acls.merged() if acls.overlay_size else acls
    return merged.index.base.buffer


def laid_out(made_from: CheckpointIdentity, rest: bytes, base: memoryview) -> _Contents:
    """Return the parts of the file."""
    header = ImageHeader(checkpoint=made_from, rest_size=len(rest), base_size=base.nbytes, checksums_crc=0)
    padded = rest.ljust(header.base_start - HEADER_BYTES, b"\0")
    checksums = checksums_of(_blocks(padded, base))
    header = evolve(header, checksums_crc=checksum_of(checksums))
    return _Contents(pieces=(encode_header(header), padded, base, checksums))


def _blocks(*pieces: bytes | memoryview) -> Iterator[memoryview]:
    for piece in pieces:
        view = memoryview(piece).cast("B")
        for start in range(0, len(view), BLOCK_BYTES):
            yield view[start : start + BLOCK_BYTES]


def write_contents(fd: int, contents: _Contents, progress: Progress | None) -> None:
    """Write the file. Raises OSError."""
    written, size = 0, contents.size
    for block in _blocks(*contents.pieces):
        files.write_all(fd, block)
        written += len(block)
        if progress is not None:
            progress(written, size)


def is_own_directory(directory: Path) -> bool:
    """Return whether image files may be written into a directory: one without a log, or with a log that aclog writes.

    A Kafka's directory is not aclog's to add files to.

    Raises:
        DecodeError, LogError: its files cannot be read.

    """
    if not files.list_segments(directory) and directory.absolute().name != files.METADATA_DIRECTORY:
        return True
    from aclog.metalog.filelog.committed_mark import open_valid_mark_file  # noqa: PLC0415 - needed to write, not to read

    marks = open_valid_mark_file(directory)
    if marks is not None:
        marks.close()
    return marks is not None


def remove_orphaned_images(directory: Path) -> None:
    """Remove image files whose checkpoint is gone. What cannot be removed stays: nothing depends on it.

    Raises:
        LogError: the directory cannot be listed.

    """
    for path in files.list_images(directory):
        checkpoint = files.image_checkpoint(path)
        if checkpoint is not None and not checkpoint.exists():
            with suppress(OSError):
                path.unlink()


def remove_partial_images(directory: Path) -> None:
    """Remove incomplete image files of killed processes, while none is being written. Errors are ignored."""
    for path in directory.glob(f"*{files.IMAGE_SUFFIX}{files.PARTIAL_SUFFIX}"):
        name = path.name.removesuffix(files.PARTIAL_SUFFIX).removesuffix(files.IMAGE_SUFFIX).rpartition("-")[0]
        if files.image_checkpoint(directory / f"{name}{files.IMAGE_SUFFIX}") is not None:
            with suppress(OSError):
                path.unlink()


# The fastest way to the state of a checkpoint: its image file if that is valid, otherwise its records.


def read_state(
    path: Path, *, newer: NewerKafka | None = None, notify: Callable[[str], object] = lambda _: None
) -> Image:
    """Return and raise the same as `read_checkpoint`; an image file only makes it faster.

    `notify` is called with a message about an image file that was not used.
    """
    try:
        image = read_image_file(path)
    except DecodeError as error:
        notify(f"{error}; ignored: reading the checkpoint instead")
    else:
        if image is not None:
            _check_level(path, image, newer or NewerKafka())
            return image
    image = read_checkpoint(path, newer=newer)
    release_freed_memory()
    return image


def _check_level(path: Path, image: Image, newer: NewerKafka) -> None:
    try:
        for record in image.features.records():
            newer.check_feature(record, image.end_offset - 1)
    except NewerKafkaError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error


def state_in(
    path: Path, as_of: Moment | None = None, *, newer: NewerKafka, notify: Callable[[str], object] = lambda _: None
) -> Image:
    """Return the state in a checkpoint file, as of its end offset, or of a time not before its last record.

    `notify` is called as by `read_state`.

    Raises:
        CheckpointError: as `read_checkpoint`. LogError: it does not have the state of that moment.

    """
    image = read_state(path, newer=newer, notify=notify)
    reached = image.end_offset if isinstance(as_of, int) else image.timestamp
    target = milliseconds(as_of) if isinstance(as_of, datetime) else as_of
    if isinstance(as_of, datetime) and image.end_offset == 0:
        raise LogError(f"{path}: as of {as_of}: the state is unknown: a checkpoint that ends at offset 0 has no time")
    if target is not None and (target < reached or (isinstance(as_of, int) and target > reached)):
        raise LogError(
            f"{path}: as of {as_of}: expected {image.end_offset}, the end offset of this checkpoint, or a time not "
            f"before its last record's, {image.timestamp} ms"
        )
    return image


def release_freed_memory() -> None:
    """Return unused memory of the allocator to the system; after a large replay, most memory is unused.

    Only a hint: a C library without malloc_trim keeps it.
    """
    import ctypes  # noqa: PLC0415 - a mapped image leaves nothing to release

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


# Checkpoint retention: which checkpoints may be removed (KafkaMetadataLog.deleteSnapshotsWithSizeLimit).


def remove_old_checkpoints(directory: Path | str, *, keep: int) -> tuple[Path, ...]:
    """Remove all but the newest `keep` valid checkpoints; return what was removed.

    A damaged one does not count towards `keep`, and is not removed while it is newer than the oldest kept one: it is
    evidence. So the last valid checkpoint always stays. An image file goes with its checkpoint. Files that a process
    renamed before it died are removed too, and image files without a checkpoint.

    Raises:
        ValueError: keep is below 1.
        LogError: the directory cannot be listed, or the disk fails.

    """
    if keep < 1:
        raise ValueError(f"keep {keep}: expected at least 1")
    directory = Path(directory)
    checkpoints = files.list_checkpoints(directory)
    old = checkpoints[: _first_kept(checkpoints, keep)]
    try:
        for file in old:
            file.path.replace(file.path.with_name(file.path.name + files.DELETED_SUFFIX))
        files.fsync_directory(directory)
        # Renamed to `.deleted` first, unlinked once that is durable: no half-removed checkpoint counts after a crash.
        for path in directory.glob(f"*{files.DELETED_SUFFIX}"):
            if files.parse_checkpoint_name(path.name.removesuffix(files.DELETED_SUFFIX)) is not None:
                path.unlink(missing_ok=True)
        remove_orphaned_images(directory)
    except OSError as error:
        raise files.log_error(error, directory, "cannot remove checkpoints") from error
    return tuple(file.path for file in old)


def _first_kept(checkpoints: tuple[files.CheckpointFile, ...], keep: int) -> int:
    """Return the number of the oldest of the newest `keep` valid checkpoints, 0 if there are fewer."""
    whole = 0
    for number in range(len(checkpoints) - 1, -1, -1):
        if _is_whole(checkpoints[number].path):
            whole += 1
            if whole == keep:
                return number
    return 0


def _is_whole(path: Path) -> bool:
    try:
        read_state(path)
    except CheckpointError:
        return False
    return True
