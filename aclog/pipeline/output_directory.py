"""The output directory of a job, which appears only once it is complete.

This module does not import PySpark: a refusal does not wait for it.
"""

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from aclog.metalog.errors import ConfigError

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
"""A URI, also after pathlib has made one slash of two."""


def local_directory(path: Path, flag: str) -> Path:
    """Return the directory that a path or a `file:` URI names.

    Raises:
        ConfigError: the URI of another store.

    """
    match = _URI.fullmatch(str(path))
    if match is None:
        return path
    if match[1] == "file":
        return Path("/", unquote(match[2]))
    raise ConfigError(
        f"{flag} {match[1]}://{match[2]}: expected a directory of this machine, or of a file system that the workers "
        "share: of other stores, only --requests can be in one: write to a directory, and copy it"
    )


def check_new(out: Path) -> Path:
    """Refuse an output directory that exists, before the job rather than after it; return it, without `file:`.

    Raises:
        ConfigError: `out` exists, its parent directory does not, or it is in another store.

    """
    out = local_directory(out, "--out")
    if out.exists():
        raise ConfigError(f"{out}: exists already: expected the name of a directory to create")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"{out.parent}: no such directory: expected one to create {out.name} in")
    return out


@contextmanager
def new_directory(out: Path) -> Iterator[Path]:
    """Yield a directory next to `out` to write to; it is renamed to `out` on success and deleted on failure.

    Raises:
        ConfigError: as `check_new`.

    """
    out = check_new(out)
    # next to `out`, so that the rename stays on one file system and is atomic; a random name, as two jobs may race
    partial = out.absolute().with_name(f"{out.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
