"""Sessions of those who have logged in; kept here, so that a logout really ends them."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from hmac import compare_digest

from attrs import define, field, frozen

from aclog.console.login.viewer import Viewer
from aclog.metalog.clock import elapsed_seconds

SESSION_S = 8 * 3600.0
_MOST, _MOST_OF_ONE = 10_000, 20
"""Sessions at all, and of one principal; beyond, the oldest ends."""


def new_id() -> str:
    """Return an id that nobody guesses: 256 random bits."""
    return secrets.token_urlsafe(32)


@frozen(kw_only=True)
class Session:
    """That somebody has logged in."""

    name: str
    principal: str
    proof: bytes | None = field(default=None, repr=False)
    """What he logged in with, in the terms of who checked it."""
    until: float = field(default=0.0)

    def viewer(self, *, sees_all: bool) -> Viewer:
        """Return who looks."""
        return Viewer(name=self.name, principal=self.principal, sees_all=sees_all)


@define(eq=False, kw_only=True)
class Sessions:
    """All sessions, by id; owned by the guard, and used from one event loop."""

    clock: Callable[[], float] = elapsed_seconds
    seconds: float = SESSION_S
    """A session ends so long after the login, whatever is done in it."""
    _open: "OrderedDict[str, Session]" = field(factory=OrderedDict, init=False, repr=False)

    def begin(self, name: str, principal: str, proof: bytes | None = None) -> str:
        """Begin a session; return its id."""
        self._forget_old()
        own = [each for each, session in self._open.items() if session.principal == principal]
        for each in own[: max(len(own) - _MOST_OF_ONE + 1, 0)]:
            del self._open[each]
        if len(self._open) >= _MOST:
            self._open.popitem(last=False)
        made = new_id()
        until = self.clock() + self.seconds
        self._open[made] = Session(name=name, principal=principal, proof=proof, until=until)
        return made

    def get(self, session_id: str) -> Session | None:
        """Return a session that has not ended."""
        found = self._open.get(session_id)
        return None if found is None or self.clock() >= found.until else found

    def end(self, session_id: str) -> None:
        """End a session, if it is there."""
        self._open.pop(session_id, None)

    def end_where(self, ended: Callable[[Session], bool]) -> None:
        """End those that are no longer to be."""
        for each in [each for each, session in self._open.items() if ended(session)]:
            del self._open[each]

    def _forget_old(self) -> None:
        now = self.clock()
        while self._open and next(iter(self._open.values())).until <= now:  # all last as long: the oldest end first
            self._open.popitem(last=False)


def same_proof(one: bytes | None, other: bytes | None) -> bool:
    """Return whether two proofs are there and are one."""
    return one is not None and other is not None and compare_digest(one, other)
