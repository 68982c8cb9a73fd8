"""Files of client properties that hold passwords: who can read them."""

import re
import stat
from pathlib import Path

from aclog.metalog.errors import MetadataError
from aclog.terminal.notices import warn

_SECRET = re.compile(r"password|passphrase|secret|jaas|token|credential|user\.info|hmac|\.key$", re.IGNORECASE)
_PLAIN = re.compile(
    r"client\.(id|dns\.lookup)|security\.protocol|sasl\.mechanism|bootstrap\.(servers|controllers)|zookeeper\.connect"
    r"|(ssl|sasl|zookeeper|authorizer)\..*(\.(location|type|protocol|protocols|suites|algorithm|class|ms|enable|name))"
    r"|\w+(\.\w+)*\.ms"
)
"""Properties whose values can be shown; what is not known may be a secret."""
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
_HIDDEN = "***"


def is_secret(key: str) -> bool:
    """Return whether a property of this name holds a secret."""
    return _SECRET.search(key) is not None


def shown_value(key: str, value: str) -> str:
    """Return the value of a property for people: *** unless it is known to be no secret."""
    return value if _PLAIN.fullmatch(key) and not is_secret(key) else _HIDDEN


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
