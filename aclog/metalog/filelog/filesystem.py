"""What the file log asks of the operating system: whole writes, durable replacement, and errors in our words."""

import errno
import os
from pathlib import Path

from aclog.metalog.errors import LogError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
TEMPORARY_SUFFIX = ".tmp"


def log_error(error: OSError, path: Path, doing: str) -> LogError:
    """The operating system's error as ours; a full disk or quota is said as such."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return LogError(f"{path}: {doing}: the disk is full")
    return LogError(f"{path}: {doing}: {error.strerror or error}")


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` at the file's end (the file is open for append); a short write is continued."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_at(fd: int, position: int, size: int) -> bytes:
    """Up to `size` bytes from `position`: fewer only at the file's end."""
    data = os.pread(fd, size, position)
    while 0 < len(data) < size:
        more = os.pread(fd, size - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def fsync_directory(directory: Path) -> None:
    """Make names that were created, renamed or removed in `directory` durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_durably(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that a crash leaves the old content or the new, never a mixture.

    Raises:
        LogError: the disk is full, or refuses.

    """
    partial = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        partial.replace(path)
        fsync_directory(path.parent)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def read_small(path: Path, limit: int = 1 << 20) -> bytes | None:
    """The content of a small file; None if there is no such file.

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
        raise LogError(f"{path}: larger than {limit} bytes, which such a file never is")
    return data
