"""What takes the forms that are posted, by path."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from aclog.console.pages import draft, draft_plan
from aclog.console.pages.console import Console
from aclog.console.web.answers import Answers
from aclog.console.web.draft_forms import Sent, applied, typed

Receiver: TypeAlias = Callable[[Request, Console, Sent, Answers], Response]

RECEIVERS: Mapping[str, Receiver] = {draft.PATH: typed, draft_plan.APPLY: applied}
"""Each is called in a thread, behind the guard; the viewer may see what its path shows."""
