"""What browsers report that the Content-Security-Policy stopped."""

import json
from collections import deque
from typing import Any

from attrs import asdict, define, field, frozen

MOST_BYTES = 16 << 10
_KEPT = 50


@frozen(kw_only=True)
class CspReport:
    """One report, cut to lengths that a page can show. Anybody can send one: it is text, and proves nothing."""

    directive: str
    blocked: str
    page: str
    """The path of the page, without its query."""


@define(eq=False)
class CspReports:
    """The number of reports, and the last of them; memory is bounded."""

    count: int = 0
    last: "deque[CspReport]" = field(factory=lambda: deque(maxlen=_KEPT), init=False)

    def add(self, body: bytes) -> None:
        """Count a report; what is none is counted too, and not kept."""
        self.count += 1
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            return
        report = found.get("csp-report") if isinstance(found, dict) else None
        if isinstance(report, dict):
            self.last.append(
                CspReport(
                    directive=_text(report, "effective-directive") or _text(report, "violated-directive"),
                    blocked=_text(report, "blocked-uri"),
                    page=_text(report, "document-uri"),
                )
            )

    def to_dict(self) -> dict[str, Any]:
        """Return their number, and the last of them."""
        return {"count": self.count, "last": [asdict(each) for each in self.last]}


def _text(report: dict[str, Any], key: str) -> str:
    value = report.get(key)
    text = value.partition("?")[0][:200] if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").decode()  # JSON can name lone surrogates, which an answer cannot hold
