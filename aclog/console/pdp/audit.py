"""Who was told what: a line of JSON for each answer."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from attrs import define, field

from aclog.terminal.json_text import json_text

_ENTITIES = ("subject", "action", "resource", "context", "evaluations", "input")


@define(eq=False)
class Audit:
    """A file that answers are appended to; owned by the server."""

    path: Path
    _file: TextIO = field(init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._file = self.path.open("a", encoding="utf-8")

    def write(self, path: str, request_id: str | None, body: Mapping[str, Any], answer: Any) -> None:
        """Append a line. Raises OSError: what is not written down is not answered."""
        asked = {key: body[key] for key in _ENTITIES if key in body}
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "path": path, "requestId": request_id, "asked": asked, "answer": answer}
        with self._lock:
            self._file.write(json_text(line) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
