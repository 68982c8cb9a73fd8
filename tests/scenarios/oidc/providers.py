"""Real OpenID Connect providers on loopback, with one user and two clients: Keycloak and Dex."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode, urljoin, urlsplit

from attrs import define, field

from tests.support.kafka.server import free_port

CALLBACK = "http://127.0.0.1:8181/login/callback"
CLIENT, OTHER = "console", "other"
USER, PASSWORD = "alice", "password"
_HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
"""Of the password, by bcrypt."""
_START_S = 600


def secret_of(client: str) -> str:
    """The secret of a client."""
    return f"secret-of-{client}"


class Provider(Protocol):
    """A running provider."""

    issuer: str
    has_pkce: bool

    def rotate(self) -> None:
        """Have the next token signed by another key."""
        ...


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_LOOPBACK = DefaultCookiePolicy(secure_protocols=("http", "https"))
"""Loopback is as secure as https to browsers, too."""


class _Form(HTMLParser):
    """The first form of a page: where it goes, and its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = values.get("action") or ""
        if tag == "input" and values.get("name"):
            self.fields[str(values["name"])] = values.get("value") or ""


@define(eq=False)
class Visitor:
    """A browser at the provider: cookies, and the login form."""

    _jar: CookieJar = field(factory=lambda: CookieJar(_LOOPBACK))

    def approved(self, url: str) -> str:
        """Log in where this leads to; return where the provider sends the browser, which is the console."""
        data = None
        for _ in range(12):
            status, headers, body = self._get(url, data)
            if status in {301, 302, 303, 307}:
                url, data = urljoin(url, headers["Location"]), None
                if url.startswith(CALLBACK):
                    return url.removeprefix("http://127.0.0.1:8181")
                continue
            form = _Form()
            form.feed(body)
            if form.action is None or status >= 400:
                raise RefusedError(f"the provider answers {status} without a form")
            typed = {"username": USER, "login": f"{USER}@example.org", "password": PASSWORD}
            url = urljoin(url, form.action or url)
            data = urlencode({name: typed.get(name, value) for name, value in form.fields.items()}).encode()
        raise RefusedError("the provider asks without end")

    def _get(self, url: str, data: bytes | None) -> tuple[int, Any, str]:
        opener = urllib.request.build_opener(_Stay, urllib.request.HTTPCookieProcessor(self._jar))
        try:
            with opener.open(url, data, timeout=120) as reply:
                return reply.status, reply.headers, reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode("utf-8", "replace")


class RefusedError(Exception):
    """The provider does not send the browser back."""


def tokens(issuer: str, client: str, code: str, verifier: str) -> dict[str, Any]:
    """Exchange a code as a client. Raises HTTPError: refused."""
    with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=120) as reply:
        endpoint = json.load(reply)["token_endpoint"]
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": CALLBACK,
        "client_id": client,
        "client_secret": secret_of(client),
    }
    with urllib.request.urlopen(endpoint, urlencode(fields).encode(), timeout=120) as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def keys_of(issuer: str) -> Any:
    """The provider's JWKS."""
    with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=120) as reply:
        address = json.load(reply)["jwks_uri"]
    with urllib.request.urlopen(address, timeout=120) as reply:
        return json.load(reply)


def _wait(process: "subprocess.Popen[bytes]", issuer: str, output: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=10):
                return
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"ended with {process.returncode}: {output.read_text()[-2000:]}") from None
            time.sleep(0.5)
    raise RuntimeError(f"not ready within {_START_S} s: {output.read_text()[-2000:]}")


@contextmanager
def _running(arguments: list[str], home: Path, issuer: str, environment: dict[str, str]) -> Iterator[None]:
    output = home / "output.log"
    with output.open("wb") as log:
        process = subprocess.Popen(arguments, cwd=home, stdout=log, stderr=log, env={**os.environ, **environment})
        try:
            _wait(process, issuer, output)
            yield
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _client(name: str, *, pkce: bool) -> dict[str, Any]:
    return {
        "clientId": name,
        "enabled": True,
        "secret": secret_of(name),
        "redirectUris": [CALLBACK],
        "standardFlowEnabled": True,
        "publicClient": False,
        "attributes": {"pkce.code.challenge.method": "S256"} if pkce else {},
    }


@define(eq=False)
class Keycloak:
    """A Keycloak in development mode, from its distribution."""

    issuer: str
    _server: str
    has_pkce: bool = True

    @classmethod
    @contextmanager
    def served(cls, distribution: Path, home: Path) -> Iterator["Keycloak"]:
        """Unpack, start and stop it."""
        with zipfile.ZipFile(distribution) as archive:
            archive.extractall(home)
        [top] = home.glob("keycloak-*")
        user = {
            "username": USER,
            "enabled": True,
            "email": f"{USER}@example.org",
            "emailVerified": True,
            "firstName": "A",
            "lastName": "L",
            "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
        }
        realm = {
            "realm": "aclog",
            "enabled": True,
            "sslRequired": "none",
            "users": [user],
            "clients": [_client(CLIENT, pkce=True), _client(OTHER, pkce=False)],
        }
        (top / "data" / "import").mkdir(parents=True)
        (top / "data" / "import" / "aclog-realm.json").write_text(json.dumps(realm))
        server = f"http://127.0.0.1:{free_port()}"
        port = str(urlsplit(server).port)
        java = shutil.which("java") or "java"
        script = top / "bin" / "kc.sh"
        script.chmod(0o755)
        arguments = [str(script), "start-dev", "--http-host=127.0.0.1", f"--http-port={port}", "--import-realm"]
        environment = {
            "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin",
            "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m",
            "JAVA": java,
        }
        issuer = f"{server}/realms/aclog"
        with _running(arguments, home, issuer, environment):
            yield cls(issuer, server)

    def rotate(self) -> None:
        """Add an RSA key of a higher priority."""
        fields = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": "admin"}
        address = f"{self._server}/realms/master/protocol/openid-connect/token"
        with urllib.request.urlopen(address, urlencode(fields).encode(), timeout=120) as reply:
            token = json.load(reply)["access_token"]
        component = {
            "name": "newer",
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "config": {"priority": ["1000"], "enabled": ["true"], "active": ["true"], "algorithm": ["RS256"]},
        }
        request = urllib.request.Request(
            f"{self._server}/admin/realms/aclog/components",
            json.dumps(component).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120):
            pass


@define(eq=False)
class Dex:
    """A Dex with its storage in memory, whose keys change every few seconds.

    Of 2018, before it knew PKCE: the nonce alone refuses a stolen code.
    """

    issuer: str
    has_pkce: bool = False

    @classmethod
    @contextmanager
    def served(cls, program: Path, web: Path, home: Path) -> Iterator["Dex"]:
        """Start and stop it; `web` has its templates."""
        issuer = f"http://127.0.0.1:{free_port()}/dex"
        clients = [
            {"id": each, "name": each, "secret": secret_of(each), "redirectURIs": [CALLBACK]}
            for each in (CLIENT, OTHER)
        ]
        settings = {
            "issuer": issuer,
            "storage": {"type": "memory"},
            "web": {"http": urlsplit(issuer).netloc},
            "frontend": {"dir": str(web)},
            "expiry": {"signingKeys": "5s", "idTokens": "10m"},
            "oauth2": {"skipApprovalScreen": True},
            "staticClients": clients,
            "enablePasswordDB": True,
            "staticPasswords": [
                {
                    "email": f"{USER}@example.org",
                    "hash": _HASH,
                    "username": USER,
                    "userID": "08a8684b-db88-4b73-90a9-3cd1661f5466",
                }
            ],
        }
        (home / "dex.yaml").write_text(json.dumps(settings))  # JSON is YAML
        with _running([str(program), "serve", str(home / "dex.yaml")], home, issuer, {}):
            yield cls(issuer)

    def rotate(self) -> None:
        """Wait until its keys have changed."""
        before = {key["kid"] for key in keys_of(self.issuer)["keys"]}
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if {key["kid"] for key in keys_of(self.issuer)["keys"]} - before:
                return
            time.sleep(1)
        raise RuntimeError("the keys stay the same")
