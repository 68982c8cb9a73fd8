"""File system primitives of the file log: complete writes, durable replacement, and OSErrors as LogErrors."""

import errno
import os
from pathlib import Path

from aclog.metalog.errors import LogError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
TEMPORARY_SUFFIX = ".tmp"


def log_error(error: OSError, path: Path, doing: str) -> LogError:
    """Return an OSError as a LogError; a full disk or quota is named as such."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return LogError(f"{path}: {doing}: the disk is full")
    return LogError(f"{path}: {doing}: {error.strerror or error}")


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Append all of `data` to a file opened with O_APPEND, continuing after short writes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_at(fd: int, position: int, size: int) -> bytes:
    """Read up to `size` bytes from `position`; fewer only at the end of the file."""
    data = os.pread(fd, size, position)
    while 0 < len(data) < size:
        more = os.pread(fd, size - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def fsync_directory(directory: Path) -> None:
    """Make the names that were created, renamed or removed in `directory` durable."""
    # fsync of a file does not cover its name: after a power loss the file may be gone from its directory.
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_durably(path: Path, data: bytes) -> None:
    """Replace the content of `path` so that a crash leaves either the old or the new content.

    Raises:
        LogError: the disk is full or fails.

    """
    partial = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        # The data must be durable before the rename, or a power loss could leave the new name with an empty file.
        partial.replace(path)
        fsync_directory(path.parent)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def read_small(path: Path, limit: int = 1 << 20) -> bytes | None:
    """Return the content of a small file; None if it does not exist.

    Raises:
        LogError: it cannot be read, or is larger than `limit` bytes, which none of these files ever is.

    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    if len(data) > limit:
        raise LogError(f"{path}: larger than {limit} bytes, so not a file of this kind")
    return data
