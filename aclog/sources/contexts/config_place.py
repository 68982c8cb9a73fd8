"""Where the file of contexts is: in the user's own directory of settings, never in the one a command runs in."""

import os
import sys
from pathlib import Path

from aclog.metalog.errors import ConfigError

VARIABLE = "ACLOG_CONFIG"
_NAME = "config.toml"


def config_file() -> Path | None:
    """Return the path of the file, which need not exist; it is absolute. None if the user has no home directory.

    That of $ACLOG_CONFIG; else config.toml below $XDG_CONFIG_HOME/aclog or ~/.config/aclog, on macOS and Windows where
    such files are there.

    Raises:
        ConfigError: ACLOG_CONFIG is a relative path, which would mean another file in each directory.

    """
    if given := os.environ.get(VARIABLE):
        path = Path(given).expanduser()
        if not path.is_absolute():
            raise ConfigError(f"{VARIABLE}={given}: expected an absolute path, the same file in every directory")
        return path
    if sys.platform in {"darwin", "win32"}:
        from platformdirs import user_config_path

        return user_config_path("aclog", appauthor=False) / _NAME
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))  # a relative one is ignored, as its specification says
    if not base.is_absolute():
        home = _home()
        if home is None:
            return None
        base = home / ".config"
    return base / "aclog" / _NAME


def _home() -> Path | None:
    home = Path(os.environ.get("HOME", ""))
    if home.is_absolute():
        return home
    try:
        import pwd

        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        return None
    return home if home.is_absolute() else None
