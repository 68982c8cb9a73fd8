"""Who was told what: a line of JSON for each answer."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from aclog.console.line_file import LineFile
from aclog.metalog.printable import printable_json
from aclog.terminal.json_text import json_text

_ENTITIES = ("subject", "action", "resource", "context", "options", "evaluations", "page", "input")


@frozen(eq=False)
class Audit:
    """A file that answers are appended to; owned by the server."""

    file: LineFile

    def write(self, path: str, request_id: str | None, body: Mapping[str, Any], answer: str) -> None:
        """Append a line; `answer` is JSON. Raises OSError: what is not written down is not answered."""
        asked = {key: body[key] for key in _ENTITIES if key in body}
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json_text({"time": time, "path": path, "requestId": request_id, "asked": asked})
        self.file.append(f'{line[:-1]},"answer":{printable_json(answer)}}}')
