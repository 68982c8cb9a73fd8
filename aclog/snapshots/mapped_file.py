"""An image file as it is mapped: its checksums, and whether it still is what it was when it was opened."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.filesystem import read_at
from aclog.metalog.primitives import Buffer
from aclog.snapshots.image_header import BLOCK_BYTES, ImageHeader, checksum_of, checksums_of


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
        wanted = buffer[: end - start]
        if os.preadv(fd, [wanted], start) != len(wanted):
            raise DecodeError("it changed while it was read")
        yield wanted


class MappedFile(mmap.mmap):
    """The whole file, read-only and shared. It outlives the file's name, and is unmapped when nobody holds it.

    What is written into the file in place is seen through the mapping. aclog never does that, but a careless copy may:
    `check` finds it.
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
        mapped._fd = os.dup(fd)
        return mapped

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

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
                f"{self.path}: overwritten or cut off while it was in use: {error.what}. Expected that such a file is "
                "replaced by another, never changed in place; start again"
            ) from error
        self._stamp = stamp


def _stamp_of(fd: int) -> tuple[int, int, int]:
    """Return what changes when a file is written to or truncated; a rename or an unlink changes it too."""
    found = os.fstat(fd)
    # A copy that keeps times (cp -p, rsync -t) sets the modification time back; nobody can set the change time.
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def check_mapping(acls: AclsImage) -> None:
    """Check the file that the base of these ACLs is mapped from, if it is. Raises as MappedFile.check."""
    mapped = acls.index.base.buffer.obj
    if isinstance(mapped, MappedFile):
        mapped.check()
