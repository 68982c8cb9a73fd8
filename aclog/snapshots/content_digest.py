"""The content digest of a checkpoint, by which its image file names it.

SHA-256 over the SHA-256 of each part of 4 MiB, so that threads share the work: a checkpoint that differs in anything
has another digest, also where its own checksums were made anew (docs/decisions/0016-image-file.md has the figures).
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

from aclog.metalog.primitives import Buffer

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
    # hashlib and pread release the GIL, so threads help; a processor without SHA instructions needs them most.
    try:
        with ThreadPoolExecutor(min(_THREADS, len(starts), os.cpu_count() or 1)) as pool:
            return _combined(pool.map(lambda start: _part(fd, start, size), starts))
    except RuntimeError:  # the system starts no more threads (pids.max, RLIMIT_NPROC)
        return _combined(_part(fd, start, size) for start in starts)


def _part(fd: int, start: int, size: int) -> bytes:
    end = min(start + PART_BYTES, size)
    found, buffer = sha256(), bytearray(_READ_BYTES)
    while start < end and (count := os.preadv(fd, [memoryview(buffer)[: end - start]], start)):
        found.update(memoryview(buffer)[:count])
        start += count
    return found.digest()


def _combined(parts: Iterable[bytes]) -> bytes:
    return sha256(b"".join(parts)).digest()
