"""A file that lines of JSON are appended to, each in one write."""

import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field

from aclog.terminal.json_text import json_text


@define(eq=False)
class LineFile:
    """Opens its file when it is made; safe for any number of threads. The directory must exist."""

    path: Path
    _number: int = field(init=False)
    _is_torn: bool = field(default=False, init=False)
    """Whether the last line was not written whole."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._number = _opened(self.path)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line, with the time before its fields. Raises OSError as append."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.append(json_text({"time": time, **line}))

    def append(self, text: str) -> None:
        """Append a line. Raises OSError: it was not written whole; the next one begins a line of its own."""
        # What is not UTF-8, such as a lone surrogate in a name, is written escaped.
        line = f"{text}\n".encode("utf-8", "backslashreplace")
        with self._lock:
            data = b"\n" + line if self._is_torn else line
            self._is_torn = True
            if os.write(self._number, data) < len(data):
                raise OSError(f"{self.path}: a line was not written whole")
            self._is_torn = False

    def reopen(self) -> None:
        """Open the path again, which may name another file by now: it was rotated. Raises OSError: it cannot be."""
        number = _opened(self.path)
        with self._lock:
            os.close(self._number)
            self._number, self._is_torn = number, False

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._number)


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
