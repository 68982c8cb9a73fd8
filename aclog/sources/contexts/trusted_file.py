"""Whether a file is its user's own: what others could have written decides nothing."""

import os
import stat
from pathlib import Path

from aclog.metalog.errors import ConfigError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_own(path: Path) -> None:
    """Check that nobody else can change a file, as ssh does with its own.

    Raises:
        ConfigError: it belongs to another user (root may own it), or others may write it; OSError: it cannot be looked
            at.

    """
    if not hasattr(os, "getuid"):  # Windows: the directory of the user's profile is their own
        return
    found = path.stat()
    if found.st_uid not in {0, os.getuid()}:
        raise ConfigError(f"{path}: it belongs to another user (uid {found.st_uid}): expected a file of your own")
    if found.st_mode & _OTHERS_WRITE:
        raise ConfigError(f"{path}: others may write it (mode {found.st_mode & 0o777:04o}): chmod go-w {path}")
