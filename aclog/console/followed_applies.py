"""Which applies changed a log of ours, read again when more have."""

import threading
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import LogError
from aclog.places.applies_file import APPLIES_FILE, AppliedChange, read_applies


@define(eq=False)
class FollowedApplies:
    """The applies that the file beside a log tells of. Safe for any number of threads."""

    directory: Path
    _seen: tuple[int, ...] | None = field(default=None, init=False)
    _known: tuple[AppliedChange, ...] | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def read(self) -> tuple[AppliedChange, ...] | None:
        """Return the applies in the order in which they began; None if no file tells of any.

        Raises:
            MetadataError: the file is damaged, or cannot be read.

        """
        with self._lock:
            seen = self._identity()
            if seen != self._seen:
                found = None if seen is None else read_applies(self.directory)
                self._known, self._seen = None if found is None else found.applied, seen
            return self._known

    def _identity(self) -> tuple[int, ...] | None:
        path = self.directory / APPLIES_FILE
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LogError(f"{path}: cannot be read: {error.strerror}") from error
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
