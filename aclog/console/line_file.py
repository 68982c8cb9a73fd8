"""A file that lines of JSON are appended to."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from attrs import define, field

from aclog.terminal.json_text import json_text


@define(eq=False)
class LineFile:
    """Opens its file when it is made; safe for any number of threads. The directory must exist."""

    path: Path
    _file: TextIO = field(init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        # What is not UTF-8, such as a lone surrogate in a name, is written escaped.
        self._file = self.path.open("a", encoding="utf-8", errors="backslashreplace")

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line, with the time before its fields. Raises OSError: it could not be written."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = json_text({"time": time, **line})
        with self._lock:
            self._file.write(text + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
