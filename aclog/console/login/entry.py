"""Going in and out: sessions begin and end here."""

from attrs import frozen
from starlette.responses import RedirectResponse, Response

from aclog.console.login.cookies import Cookies
from aclog.console.login.pages import Pages
from aclog.console.login.sessions import Sessions, new_id
from aclog.console.login.visit import Visit


@frozen(eq=False, kw_only=True)
class Entry:
    """What every way to log in needs."""

    sessions: Sessions
    cookies: Cookies
    pages: Pages

    def enter(self, visit: Visit, name: str, principal: str, proof: bytes | None = None) -> None:
        """Begin a session under a new id, so that nobody who knew the old one is in it."""
        self.sessions.end(visit.session_id)
        visit.session_id = self.sessions.begin(name, principal, proof)
        visit.session = self.sessions.get(visit.session_id)
        visit.viewer = None if visit.session is None else visit.session.viewer(sees_all=False)
        visit.cookies = [self.cookies.set_session(visit.session_id, self.sessions.seconds)]

    def leave(self, visit: Visit) -> Response:
        """End the session."""
        self.sessions.end(visit.session_id)
        visit.session_id, visit.session = new_id(), None
        visit.cookies = [self.cookies.set_session(visit.session_id, None), self.cookies.drop_login()]
        return RedirectResponse("/login?out", 303)
