"""Checkpoint files while they are read: kept open, so that retention takes none from under its reader."""

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from attrs import define, field

from aclog.metalog.filelog.file_names import checkpoint_name
from aclog.metalog.filelog.filesystem import log_error

_MOST_OPEN = 16
_KEEP_SECONDS = 60.0


@define(eq=False, kw_only=True)
class OpenCheckpoints:
    """The open files of a log directory; one stays for a minute after its last use. Used on one event loop's thread."""

    directory: Path
    monotonic: Callable[[], float] = time.monotonic
    _files: "OrderedDict[str, tuple[int, int, float]]" = field(factory=OrderedDict, init=False)
    """By name: the descriptor, the size and the last use; the least recently used is the first."""

    def find(self, end_offset: int, epoch: int) -> tuple[int, int] | None:
        """The descriptor and size of a checkpoint; None if there is none of this id.

        Raises:
            LogError: it cannot be opened.

        """
        now = self.monotonic()
        self._let_go(now)
        name = checkpoint_name(end_offset, epoch)
        known = self._files.pop(name, None)
        if known is None:
            opened = self._open(self.directory / name)
            if opened is None:
                return None
            known = (*opened, now)
        self._files[name] = (known[0], known[1], now)
        return known[0], known[1]

    @staticmethod
    def _open(path: Path) -> tuple[int, int] | None:
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise log_error(error, path, "cannot open") from error
        return fd, os.fstat(fd).st_size

    def _let_go(self, now: float) -> None:
        while self._files:
            fd, _, used = next(iter(self._files.values()))
            if len(self._files) < _MOST_OPEN and now - used < _KEEP_SECONDS:
                return
            self._files.popitem(last=False)
            os.close(fd)

    def close(self) -> None:
        """Let go of all files."""
        while self._files:
            os.close(self._files.popitem(last=False)[1][0])
