"""`make campaign-oidc`: logins of the console at real providers, and every way to come in as another.

    python -m tests.scenarios.oidc.campaign --keycloak ZIP --dex PROGRAM --dex-web DIR --out FILE

Each provider is started on loopback, logged in to with its own form (authorization code with PKCE, state and nonce),
attacked, and stopped. A control beside each attack shows that the same steps without it succeed.
"""

import argparse
import base64
import json
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from attrs import define, evolve, field
from joserfc import jwt
from joserfc.jwk import OctKey

from aclog.console.login.oidc import LoginError, OidcSettings, OidcWay, claims_of, read_keys
from tests.scenarios.oidc import providers
from tests.scenarios.oidc.providers import CALLBACK, CLIENT, OTHER, Dex, Keycloak, Provider, RefusedError, Visitor
from tests.support.web.browser import Browser
from tests.support.web.guarded import app_of, guard_of


@define(eq=False)
class Session:
    """A console whose login is at a provider, and a browser."""

    provider: Provider
    client: str = CLIENT
    shift: int = 0
    """Seconds that the console's clock is ahead."""
    told: list[str] = field(factory=list)
    way: OidcWay = field(init=False)
    app: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        secret = providers.secret_of(self.client)
        issuer = self.provider.issuer
        settings = OidcSettings(
            issuer=issuer, client_id=self.client, client_secret=secret, redirect_uri=CALLBACK, scope="openid profile"
        )
        self.way = OidcWay(read=lambda: settings, tell=self.told.append)
        self.way.provider.now = lambda: int(time.time()) + self.shift
        self.app = app_of(guard_of(self.way))

    def browser(self) -> Browser:
        return Browser(self.app)

    def address(self, browser: Browser) -> str:
        """Begin a login; where the browser is sent."""
        reply = browser.get("/login/start?next=/rules")
        if reply.status != 303:
            raise RefusedError(f"the console answers {reply.status}: {self.told}")
        return str(reply.headers["location"])


def _changed(url: str, **changes: str | None) -> str:
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    query |= {name: value for name, value in changes.items() if value is not None}
    for name in (name for name, value in changes.items() if value is None):
        query.pop(name, None)
    return urlunsplit(parts._replace(query=urlencode(query)))


def _is_in(browser: Browser) -> bool:
    return browser.get("/rules").status == 200


def _came_in(session: Session, url: Callable[[str], str] = str, callback: Callable[[str], str] = str) -> bool:
    """Whether a login succeeds in which the address and the callback are changed on the way."""
    browser = session.browser()
    browser.get(callback(Visitor().approved(url(session.address(browser)))), sec_fetch_site="cross-site")
    return _is_in(browser)


def _own_token(session: Session, client: str) -> tuple[dict[str, Any], str]:
    """The tokens of a login of which we are the client, and the nonce."""
    verifier = "v" * 60
    digest = challenge_of(verifier)
    browser = session.browser()
    address = _changed(session.address(browser), client_id=client, code_challenge=digest, nonce="our-nonce")
    callback = Visitor().approved(address)
    code = parse_qs(urlsplit(callback).query)["code"][0]
    return providers.tokens(session.provider.issuer, client, code, verifier), "our-nonce"


def challenge_of(verifier: str) -> str:
    """The challenge of a verifier (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@define(eq=False)
class Attacks:
    """What is tried on one provider; `results` by name."""

    provider: Provider
    results: dict[str, str] = field(factory=dict)
    wrong: list[str] = field(factory=list)

    def expect(self, name: str, came_in: Callable[[], bool], *, allowed: bool = False) -> None:
        """Try; a login that the provider or the console refuses does not come in."""
        detail = ""
        try:
            result = came_in()
        except (RefusedError, LoginError, urllib.error.HTTPError) as error:
            result, detail = False, f": {getattr(error, 'detail', None) or error}"
        self.results[name] = f"{'came in' if result else 'refused'}{detail[:160]}"
        if result is not allowed:
            self.wrong.append(f"{name}: {self.results[name]}")

    def all(self) -> None:
        """Try everything, with controls."""
        self.expect("control: a login", lambda: _came_in(Session(self.provider)), allowed=True)
        self.expect("the same callback twice", self._twice)
        self.expect("the code of another browser's login", self._stolen_code)
        self.expect("the callback of another browser", self._stolen_callback)
        self.expect("another state", lambda: self._with_callback(state="another"))
        self.expect("no state", lambda: self._with_callback(state=None))
        self.expect("another iss", lambda: self._with_callback(iss="http://127.0.0.1:9/evil"))
        self.expect("no code", lambda: self._with_callback(code=None))
        self.expect("an invented code", lambda: self._with_callback(code="invented"))
        self.expect("another nonce", lambda: self._with_address(nonce="another"))
        self.expect("no nonce", lambda: self._with_address(nonce=None))
        self.expect(
            "another challenge",
            lambda: self._with_address(code_challenge="x" * 43),
            allowed=not self.provider.has_pkce,
        )
        self.expect("a code of another client", lambda: self._with_address(client_id=OTHER))
        self.expect("another redirect URI", lambda: self._with_address(redirect_uri="http://127.0.0.1:9/evil"))
        self.expect("another issuer", self._other_issuer)
        self.expect("a clock that is 30 s behind", lambda: _came_in(Session(self.provider, shift=-30)), allowed=True)
        self.expect("a clock that is two hours ahead", lambda: _came_in(Session(self.provider, shift=7200)))
        for more in (self._tokens, self._rotation):
            try:
                more()
            except (RefusedError, urllib.error.HTTPError) as error:
                self.wrong.append(f"{more.__name__}: {error}")

    def _with_callback(self, **changes: str | None) -> bool:
        return _came_in(Session(self.provider), callback=lambda each: _changed(each, **changes))

    def _with_address(self, **changes: str | None) -> bool:
        return _came_in(Session(self.provider), url=lambda each: _changed(each, **changes))

    def _twice(self) -> bool:
        session = Session(self.provider)
        browser, other = session.browser(), session.browser()
        address = session.address(browser)
        other.cookies = dict(browser.cookies)
        callback = Visitor().approved(address)
        browser.get(callback, sec_fetch_site="cross-site")
        assert _is_in(browser)
        other.get(callback, sec_fetch_site="cross-site")
        return _is_in(other)

    def _stolen_code(self) -> bool:
        session = Session(self.provider)
        victim, thief = session.browser(), session.browser()
        stolen = Visitor().approved(session.address(victim))
        own = parse_qs(urlsplit(session.address(thief)).query)
        thief.get(_changed(stolen, state=own["state"][0]), sec_fetch_site="cross-site")
        return _is_in(thief)

    def _stolen_callback(self) -> bool:
        session = Session(self.provider)
        victim, thief = session.browser(), session.browser()
        session.address(thief)
        thief.get(Visitor().approved(session.address(victim)), sec_fetch_site="cross-site")
        return _is_in(thief)

    def _other_issuer(self) -> bool:
        session = Session(self.provider)
        settings = session.way.provider.settings
        session.way.provider.settings = evolve(settings, issuer=settings.issuer + "/")
        return _came_in(session)

    def _tokens(self) -> None:
        """Change a token that the provider signed."""
        answer, nonce = _own_token(Session(self.provider), CLIENT)
        token, document = answer["id_token"], providers.keys_of(self.provider.issuer)
        head, body, signature = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(body + "=="))

        def b64(data: bytes) -> str:
            return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

        def valid(token: str, **changes: Any) -> bool:
            expected = {
                "issuer": self.provider.issuer,
                "client_id": CLIENT,
                "nonce": nonce,
                "access_token": answer.get("access_token"),
                "algorithms": ("RS256", "HS256", "none"),
                "now": int(time.time()),
            }
            claims_of(token, read_keys(document), **(expected | changes))
            return True

        admin = b64(json.dumps({**claims, "sub": "admin"}).encode())
        none = b64(b'{"alg":"none"}')
        public = json.dumps(document["keys"][0]).encode()
        hmac = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(public), algorithms=["HS256"])
        other, other_nonce = _own_token(Session(self.provider), OTHER)
        self.expect("control: the token itself", lambda: valid(token), allowed=True)
        self.expect("a token with another nonce", lambda: valid(token, nonce="another"))
        self.expect("a token of another issuer", lambda: valid(token, issuer="http://127.0.0.1:9/evil"))
        self.expect("a token with another subject", lambda: valid(f"{head}.{admin}.{signature}"))
        self.expect("a token without a signature", lambda: valid(f"{none}.{admin}."))
        self.expect("a token signed by the public key", lambda: valid(hmac))
        self.expect("a token that has expired", lambda: valid(token, now=claims["exp"] + 61))
        self.expect("a token with another access token", lambda: valid(token, access_token="another"))
        foreign = {"nonce": other_nonce, "access_token": other.get("access_token")}
        self.expect("a token of another client", lambda: valid(other["id_token"], **foreign))
        self.expect(
            "control: as that client", lambda: valid(other["id_token"], client_id=OTHER, **foreign), allowed=True
        )

    def _rotation(self) -> None:
        """Change the keys between two logins of one console, which has read the keys before."""
        session, clock = Session(self.provider), [0.0]
        session.way.provider.clock = lambda: clock[0]
        self.expect("control: before the keys change", lambda: _came_in(session), allowed=True)
        self.provider.rotate()
        clock[0] += 11
        self.expect("control: after the keys have changed", lambda: _came_in(session), allowed=True)


def main() -> int:
    """Run and report; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keycloak", type=Path)
    parser.add_argument("--dex", type=Path)
    parser.add_argument("--dex-web", type=Path)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    lines, wrong = [], []
    for name in ("keycloak", "dex"):
        program = getattr(chosen, name)
        if program is None:
            continue
        with tempfile.TemporaryDirectory() as home:
            place = Path(home)
            served = (
                Keycloak.served(program.resolve(), place)
                if name == "keycloak"
                else Dex.served(program.resolve(), chosen.dex_web.resolve(), place)
            )
            with served as provider:
                attacks = Attacks(provider)
                attacks.all()
        lines += [f"{name}, {program.name}: {len(attacks.results)} logins and tokens, {len(attacks.wrong)} wrong"]
        lines += [f"  {what}: {result}" for what, result in attacks.results.items()]
        wrong += attacks.wrong
    text = "\n".join(lines)
    print(text)
    print(*wrong, sep="\n")
    if chosen.out is not None:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
