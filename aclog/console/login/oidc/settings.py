"""Which provider, as which client, and who somebody is: from the environment, or a file of settings."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from attrs import field, frozen

from aclog.console.private_file import check_private
from aclog.metalog.errors import ConfigError

CALLBACK = "/login/callback"
_VARIABLES = {
    "issuer": "ACLOG_OIDC_ISSUER",
    "client_id": "ACLOG_OIDC_CLIENT_ID",
    "client_secret_file": "ACLOG_OIDC_CLIENT_SECRET_FILE",
    "claim": "ACLOG_OIDC_CLAIM",
    "prefix": "ACLOG_OIDC_PREFIX",
    "scope": "ACLOG_OIDC_SCOPE",
    "ca_file": "ACLOG_OIDC_CA_FILE",
}
"""The keys of a file, and the variables that stand for them."""
_SECRET = "ACLOG_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of a variable
_SCOPES = {"preferred_username": "openid profile", "email": "openid email"}
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})


@frozen(kw_only=True)
class OidcSettings:
    """A provider, and this console as its client."""

    issuer: str
    client_id: str
    redirect_uri: str
    client_secret: str | None = field(default=None, repr=False)
    """None: a public client, which PKCE alone protects."""
    claim: str = "sub"
    """The claim of the ID token that becomes the principal's name."""
    prefix: str = "User:"
    scope: str = "openid"
    ca_file: Path | None = None
    """Who signs the provider's certificate; None: whom this machine trusts."""


def read_settings(path: Path | None, environment: Mapping[str, str], base_url: str) -> OidcSettings:
    """Return the settings of a TOML file, or without one of the variables ACLOG_OIDC_ISSUER, and so on.

    `base_url` is how browsers reach the console. The client's secret is in a file of its own (client_secret_file), or
    in the variable ACLOG_OIDC_CLIENT_SECRET.

    Raises:
        ConfigError: something is missing, unknown or malformed, or others may read the secret's file.
        OSError: a file cannot be read.

    """
    given = _of_environment(environment) if path is None else _of_file(path)
    where = "--login oidc" if path is None else str(path)
    for key in ("issuer", "client_id"):
        if not given.get(key):
            name = f"{_VARIABLES[key]} is not set" if path is None else f"{key} is missing"
            raise ConfigError(f"{where}: {name}")
    check_url(given["issuer"], f"{where}: issuer")
    base = base_url.rstrip("/")
    check_url(base, "--base-url")
    claim, prefix = given.get("claim", "sub"), given.get("prefix", "User:")
    if prefix.find(":") < 1:
        raise ConfigError(f"{where}: prefix {prefix[:40]!r}: expected one with a type, such as User:")
    beside = Path() if path is None else path.parent
    return OidcSettings(
        issuer=given["issuer"],
        client_id=given["client_id"],
        redirect_uri=base + CALLBACK,
        client_secret=_secret(given, environment, beside),
        claim=claim,
        prefix=prefix,
        scope=given.get("scope") or _SCOPES.get(claim, "openid"),
        ca_file=beside / given["ca_file"] if given.get("ca_file") else None,
    )


def check_url(url: str, what: str) -> None:
    """Check an address that secrets go to. Raises ConfigError: neither https nor on this machine, or not plain."""
    try:
        parts = urlsplit(url)
        local, host = parts.hostname in _LOCAL, parts.hostname
    except ValueError:
        host, local = None, False
        parts = urlsplit("")
    if not host or parts.scheme not in {"https", "http"} or parts.query or parts.fragment or parts.username is not None:
        raise ConfigError(f"{what}: {url[:200]!r}: expected a URL such as https://HOST/PATH")
    if parts.scheme == "http" and not local:
        raise ConfigError(f"{what}: {url[:200]!r}: expected https: secrets go there")


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: environment[name] for key, name in _VARIABLES.items() if name in environment}


def _of_file(path: Path) -> dict[str, str]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {str(error)[:80]}") from None
    for key, value in found.items():
        if key == "client_secret":
            raise ConfigError(f"{path}: client_secret: put it into a file of its own, and name it: client_secret_file")
        if key not in _VARIABLES:
            raise ConfigError(f"{path}: {key[:40]!r}: expected one of {', '.join(_VARIABLES)}")
        if not isinstance(value, str):
            raise ConfigError(f"{path}: {key}: expected a string")
    return found


def _secret(given: Mapping[str, str], environment: Mapping[str, str], beside: Path) -> str | None:
    name = given.get("client_secret_file")
    if not name:
        return environment.get(_SECRET) or None
    path = beside / name
    check_private(path, ", and so be the console to the provider")
    found = path.read_text("utf-8", "replace").strip()
    if not found:
        raise ConfigError(f"{path}: no secret in it")
    return found
