"""Who was told what: a line of JSON for each answer."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from aclog.console.line_file import LineFile

_ENTITIES = ("subject", "action", "resource", "context", "evaluations", "input")


@frozen(eq=False)
class Audit:
    """A file that answers are appended to; owned by the server."""

    _lines: LineFile

    def write(self, path: str, request_id: str | None, body: Mapping[str, Any], answer: Any) -> None:
        """Append a line. Raises OSError: what is not written down is not answered."""
        asked = {key: body[key] for key in _ENTITIES if key in body}
        self._lines.write({"path": path, "requestId": request_id, "asked": asked, "answer": answer})

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
