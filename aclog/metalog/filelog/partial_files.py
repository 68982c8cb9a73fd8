"""Files that get their names once they are whole, and what killed processes leave of them."""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aclog.metalog.filelog.file_names import PARTIAL_SUFFIX
from aclog.metalog.filelog.filesystem import FILE_MODE, fsync_directory

_PARTIAL = re.compile(rf".+-[0-9a-f]{{16}}\.[a-z]+{re.escape(PARTIAL_SUFFIX)}")


@contextmanager
def written_whole(path: Path) -> Iterator[int]:
    """Yield the descriptor of a new file, which gets its name, durably, if the `with` ends without an error.

    Until then it is `<stem>-<random><suffix>.part`, locked: what a killed process leaves is seen to be nobody's
    (`remove_abandoned`). The random part is for concurrent writers of one name. Raises OSError.
    """
    fd, partial = _open_partial(path)
    lock = os.dup(fd)
    try:
        try:
            try:
                yield fd
                # Content before name, and the name before anything relies on it.
                os.fsync(fd)
            finally:
                os.close(fd)  # before the rename: on a network, this may say that the disk is full
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    finally:
        os.close(lock)
    fsync_directory(path.parent)


def _open_partial(path: Path) -> tuple[int, Path]:
    while True:
        partial = path.with_name(f"{path.stem}-{secrets.token_hex(8)}{path.suffix}{PARTIAL_SUFFIX}")
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        # Not an fcntl lock: this process may look at its own partial files, which must not release their locks.
        with suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        if _leads_to(partial, fd):
            return fd, partial
        os.close(fd)  # another process took it for abandoned before it was locked


def _leads_to(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(fd))
    except FileNotFoundError:
        return False


def remove_abandoned(directory: Path, suffix: str) -> tuple[Path, ...]:
    """Remove the partial files of names that end in `suffix` whose writers are dead (`written_whole`); return them.

    What cannot be locked or removed stays.
    """
    removed = []
    for path in sorted(directory.glob(f"*{suffix}{PARTIAL_SUFFIX}")):
        if _PARTIAL.fullmatch(path.name) is None:
            continue
        with suppress(OSError):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _leads_to(path, fd):
                    path.unlink()
                    removed.append(path)
            finally:
                os.close(fd)
    return tuple(removed)
