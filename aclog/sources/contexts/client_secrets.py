"""Files of client properties that hold passwords: who can read them."""

import stat
from pathlib import Path

from aclog.metalog.errors import MetadataError
from aclog.terminal.notices import warn

_SECRET = ("password", "secret", "jaas.config", "keystore.key", "hmac")
"""How the names of properties end that hold a secret."""
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def is_secret(key: str) -> bool:
    """Return whether a property of this name holds a secret."""
    return key.lower().endswith(_SECRET)


def warn_of_readers(path: Path) -> None:
    """Warn if others can read a file of properties that holds a secret; Kafka's tools say nothing, ssh refuses.

    A file that cannot be read is left to whom it is for.
    """
    from aclog.nodes.config.java_properties import read_properties

    try:
        mode = path.stat().st_mode
        if not mode & _OTHERS_READ:
            return
        values, _ = read_properties(path)
    except (MetadataError, OSError):
        return
    if any(is_secret(key) for key in values):
        warn(f"{path}: others can read the secrets in it (mode {mode & 0o777:04o}): chmod 600 {path}")
