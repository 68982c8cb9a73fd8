"""Logging in at a provider: there and back."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Any
from urllib.parse import quote, urlsplit

from attrs import define, field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from aclog.console.login.attempts import Attempts
from aclog.console.login.entry import Entry
from aclog.console.login.oidc.errors import LoginError
from aclog.console.login.oidc.id_token import principal_of
from aclog.console.login.oidc.provider import Provider, error_code
from aclog.console.login.oidc.settings import CALLBACK, OidcSettings
from aclog.console.login.pages import local_path
from aclog.console.login.sessions import Session, new_id, same_proof
from aclog.console.login.visit import Visit

_START = "/login/start"
_USED = 10_000
_BEGIN_AGAIN = "This login was begun in another browser, or too long ago."


@define(eq=False, kw_only=True)
class OidcWay:
    """Logins at one provider."""

    read: Callable[[], OidcSettings]
    """Reads the settings."""
    tell: Callable[[str], None]
    """Called with why a login failed, for who runs the console."""
    provider: Provider = field(init=False)
    attempts: Attempts = field(factory=Attempts)
    _used: "OrderedDict[str, None]" = field(factory=OrderedDict, init=False)
    """States of logins that have come back."""

    def __attrs_post_init__(self) -> None:
        self.provider = Provider(settings=self.read())

    def routes(self, entry: Entry) -> Sequence[Route]:
        """Return the page that leads there, the way there, and the way back."""

        async def link(request: Request) -> Response:
            """Show where to log in."""
            wanted = local_path(request.query_params.get("next"))
            if Visit.in_scope(request.scope).session is not None:
                return RedirectResponse(wanted, 303)
            host = urlsplit(self.provider.settings.issuer).hostname or ""
            return entry.pages.link(host, f"{_START}?next={quote(wanted, safe='')}")

        return [
            Route("/login", link),
            Route(_START, self._failing(entry, self._begin)),
            Route(CALLBACK, self._failing(entry, self._come_back)),
        ]

    def still_good(self, session: Session) -> bool:
        """Return whether a login now would mean the same; the provider is not asked again before a session's end."""
        return same_proof(session.proof, _proof(self.provider.settings))

    def reload(self) -> None:
        """Read the settings again. Raises as `read`."""
        self.provider = Provider(settings=self.read())

    def _failing(self, entry: Entry, step: Callable[[Entry, Visit, Request], Any]) -> Callable[[Request], Any]:
        """Return an endpoint that says why a step failed."""

        async def endpoint(request: Request) -> Response:
            """Take the step."""
            visit = Visit.in_scope(request.scope)
            try:
                answer: Response = await step(entry, visit, request)
            except LoginError as error:
                self.tell(f"login: {error.detail or error}")
                answer = entry.pages.message("You are not logged in", str(error), status=error.status)
            return answer

        return endpoint

    async def _begin(self, entry: Entry, visit: Visit, request: Request) -> Response:
        begun = {"state": new_id(), "nonce": new_id(), "verifier": new_id()}
        url = await self.provider.address(**begun)
        kept = {**begun, "next": local_path(request.query_params.get("next"))}
        visit.cookies.append(entry.cookies.set_login(kept))
        return RedirectResponse(url, 303)

    async def _come_back(self, entry: Entry, visit: Visit, request: Request) -> Response:
        begun = entry.cookies.login(visit.headers)
        visit.cookies.append(entry.cookies.drop_login())
        given = {key: request.query_params.getlist(key) for key in ("state", "code", "iss", "error")}
        if begun is None or any(len(values) > 1 for values in given.values()):
            raise LoginError(_BEGIN_AGAIN, status=400)
        told = {key: values[0] for key, values in given.items() if values}
        self._check_state(begun["state"], told.get("state", ""))
        provider, settings = self.provider, self.provider.settings  # the settings may be read again on the way
        await _check_issuer(provider, told.get("iss"))
        if "error" in told:
            raise LoginError(f"The provider refuses: {error_code(told['error'])}.")
        if not told.get("code"):
            raise LoginError(_BEGIN_AGAIN, "the provider sent neither a code nor an error", status=400)
        if self.attempts.begin(visit.address, begun["state"]) > 0:
            raise LoginError("Too many attempts. Try again in a minute.", status=429)
        claims = await provider.claims(code=told["code"], nonce=begun["nonce"], verifier=begun["verifier"])
        if not same_proof(_proof(settings), _proof(self.provider.settings)):
            raise LoginError(_BEGIN_AGAIN, "the login's settings have changed on the way", status=400)
        principal = principal_of(claims, settings.claim, settings.prefix)
        self.attempts.succeeded(visit.address, begun["state"])
        entry.enter(visit, principal.removeprefix(settings.prefix), principal, _proof(settings))
        visit.cookies.append(entry.cookies.drop_login())
        return RedirectResponse(local_path(begun["next"]), 303)

    def _check_state(self, wanted: str, given: str) -> None:
        """Check that a browser comes back from its own login, and once. Raises LoginError."""
        if not compare_digest(wanted.encode(), given.encode("utf-8", "replace")):
            raise LoginError(_BEGIN_AGAIN, "a callback whose state is not its browser's", status=400)
        if wanted in self._used:
            raise LoginError(_BEGIN_AGAIN, "a callback that was used before", status=400)
        self._used[wanted] = None
        if len(self._used) > _USED:
            self._used.popitem(last=False)


async def _check_issuer(provider: Provider, given: str | None) -> None:
    """Check whose answer it is (RFC 9207). Raises LoginError: another provider's."""
    metadata = await provider.metadata()
    if (given is not None or metadata.names_itself) and given != provider.settings.issuer:
        raise LoginError(_BEGIN_AGAIN, "a callback from another provider", status=400)


def _proof(settings: OidcSettings) -> bytes:
    """Return what changes with who says who somebody is, and how."""
    told = (settings.issuer, settings.client_id, settings.claim, settings.prefix)
    return sha256(repr(told).encode("utf-8", "surrogateescape")).digest()
