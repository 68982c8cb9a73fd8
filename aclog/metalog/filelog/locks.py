"""The locks of a writer: ours on a log directory and, beside a Kafka's meta.properties, that Kafka's own.

fcntl record locks, because Java's are: `flock` would not see them. They belong to the process, so two things are
minded here: a second open in the same process (the operating system would grant it), and that closing any file
descriptor of a locked file gives the lock up (so a file that this process holds is never opened a second time).
"""

import errno
import fcntl
import os
import threading
from pathlib import Path
from typing import Self

from attrs import define, field

from aclog.metalog.errors import LockedError, LogError
from aclog.metalog.filelog.filesystem import FILE_MODE, log_error

LOCK_FILE = "aclog.lock"
KAFKA_LOCK_FILE = ".lock"
_META_PROPERTIES = "meta.properties"

# The one piece of module state in this package: what a process locks, it locks as a whole. Maps the file (device,
# inode) to the process that locked it, since a forked child inherits this table but not the locks.
_HELD: dict[tuple[int, int], int] = {}
_HELD_GUARD = threading.Lock()


def kafka_log_dir(directory: Path) -> Path | None:
    """The log.dirs directory of a Kafka that `directory` belongs to: itself or the one above, with meta.properties."""
    candidates = (directory, directory.resolve().parent)
    return next((candidate for candidate in candidates if (candidate / _META_PROPERTIES).is_file()), None)


@define
class WriterLock:
    """The locks that one writer holds; released by `close`, or by the operating system when the process ends."""

    _files: list[tuple[int, tuple[int, int]]] = field(factory=list)

    @classmethod
    def acquire(cls, directory: Path, *, force: bool) -> Self:
        """Lock a log directory for writing, and the Kafka's directory it belongs to, if it does.

        Raises:
            LockedError: somebody holds one of the locks.
            LogError: the directory is a Kafka's and `force` is not given, or locking fails.

        """
        kafka = kafka_log_dir(directory)
        if kafka is not None and not force:
            raise LogError(
                f"{directory}: belongs to a Kafka ({kafka / _META_PROPERTIES} is there); "
                "stop that Kafka, and force the write (--force) if it is meant"
            )
        lock = cls()
        try:
            lock._take(directory / LOCK_FILE, "another writer of aclog")
            if kafka is not None:
                lock._take(kafka / KAFKA_LOCK_FILE, "a Kafka that runs on this directory")
        except BaseException:
            lock.close()
            raise
        return lock

    def _take(self, path: Path, holder: str) -> None:
        with _HELD_GUARD:
            if _HELD.get(_identity(path) or (-1, -1)) == os.getpid():
                raise LockedError(f"{path}: held by this very process, which has the log open for writing already")
            fd = _locked_fd(path, holder)
            status = os.fstat(fd)
            identity = (status.st_dev, status.st_ino)
            _HELD[identity] = os.getpid()
            self._files.append((fd, identity))

    def close(self) -> None:
        """Release the locks; a second close is nothing."""
        with _HELD_GUARD:
            while self._files:
                fd, identity = self._files.pop()
                if _HELD.get(identity) == os.getpid():
                    del _HELD[identity]
                os.close(fd)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _locked_fd(path: Path, holder: str) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError as error:
        raise log_error(error, path, "cannot open the lock file") from error
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            raise LockedError(f"{path}: locked by {holder}") from error
        raise log_error(error, path, "cannot lock") from error
    return fd
