"""Where the output of a job goes: a directory of this machine, or the URI of one in another store.

This module does not import PySpark: a refusal does not wait for it.
"""

import re
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote

from aclog.metalog.errors import ConfigError

Place: TypeAlias = Path | str
"""A directory of this machine, or the URI of one in another store (`s3a://BUCKET/KEY`)."""

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
"""A URI, also after pathlib has made one slash of two."""


def place_of(name: Path | str) -> Place:
    """Return the directory that a path or a `file:` URI names, or the URI of another store."""
    match = _URI.fullmatch(str(name))
    if match is None:
        return Path(name)
    if match[1] == "file":
        return Path("/", unquote(match[2]))
    return f"{match[1]}://{match[2].rstrip('/')}"


def local_directory(name: Path | str, flag: str, why: str) -> Path:
    """Return the directory that a path or a `file:` URI names; `why` is the reason.

    Raises:
        ConfigError: the URI of another store.

    """
    place = place_of(name)
    if isinstance(place, Path):
        return place
    raise ConfigError(
        f"{flag} {place}: expected a directory of this machine, or of a file system that the workers share: {why}"
    )


def check_new(out: Path | str) -> Place:
    """Refuse an output directory of this machine that exists, before the job rather than after it; return the place.

    Another store is examined once there is a session (`aclog.pipeline.outputs.check_absent`).

    Raises:
        ConfigError: `out` exists, or its parent directory does not.

    """
    place = place_of(out)
    if isinstance(place, str):
        return place
    if place.exists():
        raise ConfigError(f"{place}: exists already: expected the name of a directory to create")
    if not place.absolute().parent.is_dir():
        raise ConfigError(f"{place.parent}: no such directory: expected one to create {place.name} in")
    return place
