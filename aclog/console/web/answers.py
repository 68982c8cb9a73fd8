"""How what somebody sent is answered with a page."""

from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from aclog.console.pages.asked import Asked
from aclog.console.pages.page import Page


class Answers(Protocol):
    """The application's way to show pages."""

    def page(self, request: Request, page: Page, asked: Asked, status: int) -> Response:
        """Return a page as it is shown to who asks."""
        ...
