"""The format of an image file: what a checkpoint says, in a form that is mapped instead of replayed (docs/format.md).

Header, rest (the checkpoint without its ACLs, as checkpoint batches) with zeros up to a page, the flat base of its
ACLs, and the checksums: CRC-32C of each block of 1 MiB of the rest, then of the base. Little-endian, as the base is.
"""

import struct
from collections.abc import Iterator

import crc32c
from attrs import frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import Buffer
from aclog.snapshots.content_digest import DIGEST_BYTES

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
    """The checkpoint that an image file was made from: what its name says, its size in bytes and its digest."""

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
    return fields + _CRC.pack(crc32c.crc32c(fields))


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
    if _CRC.pack(crc32c.crc32c(fields)) != data[_FIELDS.size : HEADER_BYTES] or block != BLOCK_BYTES:
        raise DecodeError("its header is damaged")
    named = CheckpointIdentity(end_offset=end_offset, epoch=epoch, size=size, digest=digest)
    return ImageHeader(checkpoint=named, rest_size=rest_size, base_size=base_size, checksums_crc=checksums)


def checksums_of(blocks: Iterator[Buffer]) -> bytes:
    """Return the checksums of these blocks, as they stand at the end of a file."""
    return b"".join(_CRC.pack(crc32c.crc32c(block)) for block in blocks)


def checksum_of(checksums: bytes) -> int:
    """Return the checksum of the checksums, which the header holds."""
    found: int = crc32c.crc32c(checksums)
    return found
