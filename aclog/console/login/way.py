"""A way to log in."""

from collections.abc import Sequence
from typing import Protocol

from starlette.routing import Route

from aclog.console.login.entry import Entry
from aclog.console.login.sessions import Session


class Way(Protocol):
    """How viewers say who they are."""

    def routes(self, entry: Entry) -> Sequence[Route]:
        """Return its pages: `/login`, and what is below it."""

    def still_good(self, session: Session) -> bool:
        """Return whether who has logged in could still do so."""

    def reload(self) -> None:
        """Read its settings again. Raises ConfigError, OSError: they cannot be used, and the old ones stay."""
