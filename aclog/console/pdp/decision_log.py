"""OPA's decision log: an event for each decision that was asked for by OPA's data API.

https://www.openpolicyagent.org/docs/management-decision-logs
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from attrs import field, frozen

from aclog.console.line_file import LineFile
from aclog.console.pdp.asker import Asker
from aclog.console.pdp.opa import ROOT, OpaAnswer
from aclog.terminal.json_text import json_text


def _new_id() -> str:
    return str(uuid4())


@frozen(kw_only=True)
class DecisionLog:
    """A file that events are appended to, a line of JSON each; nothing is masked or dropped."""

    file: LineFile
    version: str
    """That of aclog."""
    _id: str = field(factory=_new_id, init=False)
    """That of this process."""

    def write(self, path: str, asker: Asker, body: Mapping[str, Any], answer: OpaAnswer) -> None:
        """Append the event of an answer. Raises OSError: what is not written down is not answered."""
        event = {
            "labels": {"id": self._id, "version": self.version},
            "decision_id": answer.decision_id,
            "bundles": {"aclog": {"revision": str(answer.offset)}},
            "path": path.removeprefix(ROOT),
            **({"input": body["input"]} if "input" in body else {}),
            "result": answer.result,
            "requested_by": asker.address,
            "timestamp": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        self.file.append(json_text(event))
