"""The format of an image file: a checkpoint in a form that is mapped instead of replayed."""

import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.batches import crc32c
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.files import read_at
from aclog.metalog.machine import disk
from aclog.metalog.primitives import Buffer
from aclog.metalog.values import frozen

# The content digest of a checkpoint, by which its image file names it.
#
# SHA-256 over the SHA-256 of each part of 4 MiB, so that threads share the work: a checkpoint that differs in
# anything has another digest, also where its own checksums were made anew (docs/decisions/0016-image-file.md has the
# figures).


PART_BYTES = 4 << 20
DIGEST_BYTES = 32

_READ_BYTES = 1 << 18
"""Small enough for a processor's cache: what is read is hashed at once."""

_THREADS = 4


def digest_of(data: Buffer) -> bytes:
    """Return the digest of these bytes."""
    view = memoryview(data)
    return _combined(sha256(view[start : start + PART_BYTES]).digest() for start in range(0, len(view), PART_BYTES))


def digest_of_file(fd: int, size: int) -> bytes:
    """Return the digest of the first `size` bytes of an open file, of fewer if it is shorter.

    Raises:
        OSError: it cannot be read.

    """
    starts = range(0, size, PART_BYTES)
    if len(starts) <= 1:
        return _combined(_part(fd, start, size) for start in starts)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - it takes as long as a small file

    # hashlib and pread release the GIL, so threads help; a processor without SHA instructions needs them most.
    try:
        with ThreadPoolExecutor(min(_THREADS, len(starts), os.cpu_count() or 1)) as pool:
            return _combined(pool.map(lambda start: _part(fd, start, size), starts))
    except RuntimeError:  # the system starts no more threads (pids.max, RLIMIT_NPROC)
        return _combined(_part(fd, start, size) for start in starts)


def _part(fd: int, start: int, size: int) -> bytes:
    end = min(start + PART_BYTES, size)
    hasher, buffer = sha256(), bytearray(_READ_BYTES)
    while start < end and (count := disk.preadv(fd, [memoryview(buffer)[: end - start]], start)):
        hasher.update(memoryview(buffer)[:count])
        start += count
    return hasher.digest()


def _combined(parts: Iterable[bytes]) -> bytes:
    return sha256(b"".join(parts)).digest()


# The format of an image file: a checkpoint in a form that is mapped instead of replayed (docs/format.md).
#
# Header, rest (the checkpoint without its ACLs, as checkpoint batches) with zeros up to a page, the flat base of its
# ACLs, and the checksums: CRC-32C of each block of 1 MiB of the rest, then of the base. Little-endian, as the base
# is.


VERSION = 1
"""Raised whenever the format changes its meaning; the base has a version of its own (authorizer.index.layout)."""

BLOCK_BYTES = 1 << 20
"""How much a checksum covers: within it, CRC-32C finds every change of up to three bits, and every burst of 32."""

PAGE_BYTES = 1 << 12
"""The base begins at a multiple of this."""

_MAGIC = b"aclogimg"
_FIELDS = struct.Struct(f"<8sIIqIQ{DIGEST_BYTES}sQQI")
_CRC = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CRC.size


def _count(size: int, of: int) -> int:
    """Return how many blocks of a size are needed."""
    return -(-size // of)


@frozen(kw_only=True)
class CheckpointIdentity:
    """The checkpoint that an image file was made from: the values in its name, its size in bytes and its digest."""

    end_offset: int
    epoch: int
    size: int
    digest: bytes


@frozen(kw_only=True)
class ImageHeader:
    """The header: sizes in bytes, and the CRC-32C of the checksums at the end of the file."""

    checkpoint: CheckpointIdentity
    rest_size: int
    base_size: int
    checksums_crc: int

    @property
    def base_start(self) -> int:
        """The position of the base."""
        return PAGE_BYTES * _count(HEADER_BYTES + self.rest_size, PAGE_BYTES)

    @property
    def checksums_start(self) -> int:
        """The position of the checksums, where the base ends."""
        return self.base_start + self.base_size

    @property
    def file_size(self) -> int:
        """The size of the whole file."""
        return self.checksums_start + _CRC.size * (
            _count(self.base_start - HEADER_BYTES, BLOCK_BYTES) + _count(self.base_size, BLOCK_BYTES)
        )

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the positions at which each block begins and ends."""
        for first, end in ((HEADER_BYTES, self.base_start), (self.base_start, self.checksums_start)):
            for start in range(first, end, BLOCK_BYTES):
                yield start, min(start + BLOCK_BYTES, end)


def encode_header(header: ImageHeader) -> bytes:
    """Return the bytes at the beginning of the file."""
    named = header.checkpoint
    fields = _FIELDS.pack(
        _MAGIC,
        VERSION,
        BLOCK_BYTES,
        named.end_offset,
        named.epoch,
        named.size,
        named.digest,
        header.rest_size,
        header.base_size,
        header.checksums_crc,
    )
    return fields + _CRC.pack(crc32c(fields))


def decode_header(data: bytes) -> ImageHeader:
    """Parse the first HEADER_BYTES of a file.

    Raises:
        DecodeError: they are no header of this version, or damaged.

    """
    if len(data) < HEADER_BYTES or not data.startswith(_MAGIC):
        raise DecodeError("not an image file: it does not begin with the header of one")
    fields = data[: _FIELDS.size]
    _, version, block, end_offset, epoch, size, digest, rest_size, base_size, checksums = _FIELDS.unpack(fields)
    # The version comes first: a later one may have its checksum elsewhere.
    if version != VERSION:
        raise DecodeError(f"an image file of version {version}: expected {VERSION}")
    if _CRC.pack(crc32c(fields)) != data[_FIELDS.size : HEADER_BYTES] or block != BLOCK_BYTES:
        raise DecodeError("its header is damaged")
    named = CheckpointIdentity(end_offset=end_offset, epoch=epoch, size=size, digest=digest)
    return ImageHeader(checkpoint=named, rest_size=rest_size, base_size=base_size, checksums_crc=checksums)


def checksums_of(blocks: Iterator[Buffer]) -> bytes:
    """Return the checksums of these blocks, as they stand at the end of a file."""
    return b"".join(_CRC.pack(crc32c(block)) for block in blocks)


def checksum_of(checksums: bytes) -> int:
    """Return the checksum of the checksums, which the header holds."""
    return crc32c(checksums)


# An image file as it is mapped: its checksums, and whether it still is what it was when it was opened.


def check_blocks(fd: int, header: ImageHeader) -> None:
    """Check every block of an open image file.

    Raises:
        DecodeError: a checksum does not match, or the file is too short.
        OSError: it cannot be read.

    """
    checksums = read_at(fd, header.checksums_start, header.file_size - header.checksums_start)
    if checksum_of(checksums) != header.checksums_crc or checksums_of(_blocks(fd, header)) != checksums:
        raise DecodeError("damaged: a checksum does not match")


def _blocks(fd: int, header: ImageHeader) -> Iterator[Buffer]:
    """Yield every block, read into one buffer: through the mapping, all pages would count as this process's."""
    buffer = memoryview(bytearray(BLOCK_BYTES))
    for start, end in header.blocks():
        block = buffer[: end - start]
        if disk.preadv(fd, [block], start) != len(block):
            raise DecodeError("it changed while it was read")
        yield block


class MappedFile(mmap.mmap):
    """The whole file, read-only and shared. It outlives the file's name, and is unmapped with its last reference.

    Bytes written into the file in place are visible through the mapping. aclog never writes so, but a careless copy
    may: `check` detects it.
    """

    path: Path
    header: ImageHeader
    _fd: int = -1
    _stamp: tuple[int, int, int]

    def __new__(cls, fd: int, path: Path, header: ImageHeader) -> "MappedFile":
        """Map an open file, and check its blocks. Raises what `check_blocks` raises."""
        stamp = _stamp_of(fd)
        check_blocks(fd, header)
        mapped = super().__new__(cls, fd, header.file_size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        mapped.path, mapped.header, mapped._stamp = path, header, stamp
        mapped._fd = disk.dup(fd)
        return mapped

    def __del__(self) -> None:
        if self._fd >= 0:
            disk.close(self._fd)

    def check(self) -> None:
        """Check that the content is what was mapped; its blocks only if the file, or its name, has changed since.

        Raises:
            LogError: it is not.
            OSError: it cannot be read.

        """
        stamp = _stamp_of(self._fd)
        if stamp == self._stamp:
            return
        try:
            check_blocks(self._fd, self.header)
        except DecodeError as error:
            raise LogError(
                f"{self.path}: overwritten or truncated while it was in use: {error.what}. Replace such a file by "
                "another, and never change it in place; restart"
            ) from error
        self._stamp = stamp


def _stamp_of(fd: int) -> tuple[int, int, int]:
    """Return what changes when a file is written to or truncated; a rename or an unlink changes it too."""
    status = disk.fstat(fd)
    # A copy that keeps times (cp -p, rsync -t) sets the modification time back; the change time cannot be set.
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def check_mapping(acls: AclsImage) -> None:
    """Check the file that the base of these ACLs is mapped from, if it is. Raises as MappedFile.check."""
    mapped = acls.index.base.buffer.obj
    if isinstance(mapped, MappedFile):
        mapped.check()
