"""The way to log in that `--login` names."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from aclog.console.login.oidc.oidc_way import OidcWay
from aclog.console.login.oidc.settings import read_settings
from aclog.console.login.password_way import PasswordWay
from aclog.console.login.way import Way

_OIDC = "oidc"


def way_of(login: str, *, base_url: str, environment: Mapping[str, str], tell: Callable[[str], None]) -> Way:
    """Return the way of `oidc`, of `oidc:FILE`, or of a file of passwords.

    `base_url` is how browsers reach the console; `tell` is called with why a login at a provider failed.

    Raises:
        ConfigError: settings or passwords that cannot be used. OSError: a file cannot be read.

    """
    kind, colon, name = login.partition(":")
    if kind != _OIDC or (colon and not name):
        return PasswordWay.read(Path(login))
    path = Path(name) if colon else None
    return OidcWay(read=partial(read_settings, path, environment, base_url), tell=tell)
