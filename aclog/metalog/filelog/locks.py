"""The locks of a writer: aclog's own on a log directory and, next to Kafka's meta.properties, Kafka's `.lock`.

These are fcntl record locks because Java's FileLock uses them; `flock` and fcntl locks do not see each other. fcntl
locks belong to the process, which has two consequences. A second open in the same process would succeed, so held locks
are also tracked here. And closing any file descriptor of a locked file releases the lock, so a lock file that this
process holds is never opened a second time.
"""

import errno
import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import Self

from attrs import field

from aclog.metalog.errors import LockedError, LogError
from aclog.metalog.filelog.files import FILE_MODE, NamedFile, log_error
from aclog.metalog.filelog.meta_properties import META_PROPERTIES
from aclog.metalog.machine import disk, threads
from aclog.metalog.values import define

LOCK_FILE = "aclog.lock"
KAFKA_LOCK_FILE = ".lock"
_FLOCK = "hhqqi4x"
"""Linux's struct flock: type, whence, start, length, process."""

# The only module-level state of this package, because fcntl locks are per process. Maps (device, inode) of a lock
# file to the process that locked it: a forked child inherits this table, but not the locks.
_OWNERS: dict[tuple[int, int], int] = {}
_OWNERS_GUARD = threads.Lock()


def kafka_log_dir(directory: Path) -> Path | None:
    """Return the Kafka log directory (with meta.properties) that `directory` belongs to: itself or its parent."""
    candidates = (directory, directory.resolve().parent)
    return next((candidate for candidate in candidates if (candidate / META_PROPERTIES).is_file()), None)


def belongs_to_kafka(directory: Path, kafka: Path) -> LogError:
    """Return the error about a write without `force` to a log in this Kafka log directory."""
    return LogError(
        f"{directory}: belongs to a Kafka node ({kafka / META_PROPERTIES} exists); "
        "to write to it anyway, stop that node and use --force"
    )


def holder_of(path: Path) -> int | None:
    """Return the process that holds a lock file, None if no process does or it is unknown; nothing is locked.

    A file that this process has locked would lose its lock: never pass one.
    """
    if sys.platform != "linux":  # other systems have other layouts of struct flock
        return None
    request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fd = disk.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, request))
    except (OSError, struct.error):
        return None
    finally:
        disk.close(fd)
    return None if kind == fcntl.F_UNLCK else int(process)


@define
class WriterLock:
    """The locks of one writer; released by `close`, or by the operating system when the process ends."""

    _files: list[tuple[int, NamedFile]] = field(factory=list)

    @classmethod
    def acquire(cls, directory: Path, *, force: bool) -> Self:
        """Lock a log directory for writing, and also the Kafka directory that it belongs to, if any.

        Raises:
            LockedError: another process holds one of the locks.
            LogError: the directory belongs to a Kafka node and `force` is not set, or locking fails.

        """
        kafka = kafka_log_dir(directory)
        if kafka is not None and not force:
            raise belongs_to_kafka(directory, kafka)
        lock = cls()
        try:
            # Always in this order, so two writers never each hold one of the two locks.
            lock._lock(directory / LOCK_FILE, "another aclog writer")
            if kafka is not None:
                lock._lock(kafka / KAFKA_LOCK_FILE, "a Kafka node running on this directory")
        except BaseException:
            lock.close()
            raise
        return lock

    def _lock(self, path: Path, holder: str) -> None:
        with _OWNERS_GUARD:
            # Compared by inode, before the file is opened: opening and closing it again would release the lock we hold.
            if _OWNERS.get(_identity(path) or (-1, -1)) == threads.getpid():
                raise LockedError(f"{path}: already locked by this process, which has the log open for writing")
            fd = _locked_fd(path, holder)
            file = NamedFile.of(fd, path)
            _OWNERS[file.identity] = threads.getpid()
            self._files.append((fd, file))

    def check(self) -> None:
        """Check that the lock files are still there: a second writer would lock other ones.

        Raises:
            LogError: one was removed or replaced.

        """
        with _OWNERS_GUARD:
            files = [file for _, file in self._files]
        for file in files:
            file.check()

    def close(self) -> None:
        """Release the locks; closing twice is allowed."""
        with _OWNERS_GUARD:
            while self._files:
                fd, file = self._files.pop()
                if _OWNERS.get(file.identity) == threads.getpid():
                    del _OWNERS[file.identity]
                disk.close(fd)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _locked_fd(path: Path, holder: str) -> int:
    try:
        fd = disk.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError as error:
        raise log_error(error, path, "cannot open the lock file") from error
    try:
        disk.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        disk.close(fd)
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            raise LockedError(f"{path}: locked by {holder}") from error
        raise log_error(error, path, "cannot lock") from error
    return fd
