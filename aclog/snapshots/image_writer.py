"""Writes image files: reads a checkpoint whole, and keeps what it says in the form that is mapped."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from attrs import evolve, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.errors import CheckpointError, DecodeError
from aclog.metalog.filelog.file_names import (
    IMAGE_SUFFIX,
    METADATA_DIRECTORY,
    PARTIAL_SUFFIX,
    image_checkpoint,
    image_path,
    list_images,
    list_segments,
    parse_checkpoint_name,
)
from aclog.metalog.filelog.filesystem import log_error, write_all
from aclog.metalog.filelog.mark import open_valid_mark_file
from aclog.metalog.filelog.partial_files import written_whole
from aclog.snapshots.checkpoint_reader import decode_checkpoint
from aclog.snapshots.checkpoint_writer import checkpoint_batches
from aclog.snapshots.content_digest import digest_of
from aclog.snapshots.image import Image
from aclog.snapshots.image_header import (
    BLOCK_BYTES,
    HEADER_BYTES,
    CheckpointIdentity,
    ImageHeader,
    checksum_of,
    checksums_of,
    encode_header,
)

Progress = Callable[[int, int], None]
"""Called with (bytes written, bytes to write)."""


def write_image_file(checkpoint: Path, *, progress: Progress | None = None) -> Path:
    """Write the image file of a checkpoint beside it, atomically; return its path.

    It is made from what the checkpoint's bytes say, never from a state in memory, so that it cannot say anything else.

    Raises:
        CheckpointError: the checkpoint cannot be read or is not valid, or a newer Kafka wrote records of it.
        LogError: the disk is full or fails, or the checkpoint was removed meanwhile.

    """
    contents = _contents(checkpoint)
    path = image_path(checkpoint)
    try:
        with written_whole(path) as fd:
            _write(fd, contents, progress)
        if not checkpoint.exists():  # retention removed it meanwhile: then its image file goes, too
            path.unlink(missing_ok=True)
    except OSError as error:
        raise log_error(error, path, "cannot write the image file") from error
    return path


@frozen(kw_only=True, eq=False)
class _Contents:
    """What goes into the file: header, rest with its zeros, base, checksums."""

    pieces: tuple[bytes | memoryview, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(memoryview(piece).nbytes for piece in self.pieces)


def _contents(checkpoint: Path) -> _Contents:
    named = parse_checkpoint_name(checkpoint.name)
    if named is None:
        raise CheckpointError(f"{checkpoint}: only a checkpoint of an offset and epoch has an image file")
    end_offset, epoch = named
    try:
        data = checkpoint.read_bytes()
        image = decode_checkpoint(data, end_offset=end_offset, epoch=epoch)
        rest = _rest(image)
    except OSError as error:
        raise CheckpointError(f"{checkpoint}: cannot read: {error.strerror or error}") from error
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(checkpoint)))) from error
    made_from = CheckpointIdentity(end_offset=end_offset, epoch=epoch, size=len(data), digest=digest_of(data))
    del data
    return _laid_out(made_from, rest, _flat(image.acls))


def rest_of(image: Image) -> bytes:
    """Return a state without its ACLs as a checkpoint. Raises what `checkpoint_batches` raises."""
    return b"".join(checkpoint_batches(image.with_acls(AclsImage.empty())))


def _rest(image: Image) -> bytes:
    """Return the same, if it can be read back.

    Raises:
        DecodeError: what it reads back as is not the same.

    """
    rest = rest_of(image)
    found = decode_checkpoint(rest, end_offset=image.end_offset, epoch=image.epoch)
    if found.provenance != image.provenance:
        raise DecodeError("an image file cannot hold when its last record was written, or its voters")
    return rest


def _flat(acls: AclsImage) -> memoryview:
    merged = acls.merged() if acls.overlay_size else acls
    return merged.index.base.buffer


def _laid_out(made_from: CheckpointIdentity, rest: bytes, base: memoryview) -> _Contents:
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


def _write(fd: int, contents: _Contents, progress: Progress | None) -> None:
    written, size = 0, contents.size
    for block in _blocks(*contents.pieces):
        write_all(fd, block)
        written += len(block)
        if progress is not None:
            progress(written, size)


def is_own_directory(directory: Path) -> bool:
    """Return whether image files may be written into a directory: one without a log, or with a log that aclog writes.

    A Kafka's directory is not aclog's to add files to.

    Raises:
        DecodeError, LogError: its files cannot be read.

    """
    if not list_segments(directory) and directory.absolute().name != METADATA_DIRECTORY:
        return True
    marks = open_valid_mark_file(directory)
    if marks is not None:
        marks.close()
    return marks is not None


def remove_orphaned_images(directory: Path) -> None:
    """Remove image files whose checkpoint is gone. What cannot be removed stays: nothing depends on it.

    Raises:
        LogError: the directory cannot be listed.

    """
    for path in list_images(directory):
        checkpoint = image_checkpoint(path)
        if checkpoint is not None and not checkpoint.exists():
            with suppress(OSError):
                path.unlink()


def remove_partial_images(directory: Path) -> None:
    """Remove image files that a process left half written; what cannot be removed stays. Nobody may be writing one."""
    for path in directory.glob(f"*{IMAGE_SUFFIX}{PARTIAL_SUFFIX}"):
        name = path.name.removesuffix(PARTIAL_SUFFIX).removesuffix(IMAGE_SUFFIX).rpartition("-")[0]
        if image_checkpoint(directory / f"{name}{IMAGE_SUFFIX}") is not None:
            with suppress(OSError):
                path.unlink()
