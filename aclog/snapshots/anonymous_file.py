"""Files without a name: memory that processes share by a descriptor, and that is gone with the last of them."""

import fcntl
import mmap
import os
import tempfile
from contextlib import suppress

_PIECE = 1 << 30
"""A system call writes up to 2 GiB."""


def anonymous_file(name: str) -> int:
    """Return the descriptor of an empty file without a name, in memory where the system has such; `name` is a hint."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())


def write_all(descriptor: int, data: memoryview) -> None:
    """Write all of the data from the start of the file on, in pieces, without holding the interpreter's lock."""
    data, at = data.cast("B"), 0
    while at < len(data):
        at += os.pwrite(descriptor, data[at : at + _PIECE], at)


def map_for_writing(descriptor: int, size: int) -> mmap.mmap:
    """Make a file this large, and map it."""
    os.ftruncate(descriptor, size)
    return mmap.mmap(descriptor, size)


def map_for_reading(descriptor: int) -> memoryview:
    """Map a file that nobody has mapped for writing any more; from now on nobody can change it.

    Where files cannot be sealed, that is a promise of whoever has the descriptor.
    """
    if hasattr(fcntl, "F_ADD_SEALS"):
        with suppress(OSError):  # not a file in memory
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
