"""Where a job writes to: a directory that appears when all of it is there."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aclog.metalog.errors import ConfigError


def check_new(out: Path) -> None:
    """Refuse what would be overwritten, before the work and not after it.

    Raises:
        ConfigError: `out` is there, or cannot be made where it would be.

    """
    if out.exists():
        raise ConfigError(f"{out}: exists already: expected the name of a directory to make")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"{out.parent}: no such directory: expected one to make {out.name} in")


@contextmanager
def new_directory(out: Path) -> Iterator[Path]:
    """A place beside `out` to write to; it becomes `out` if the `with` ends well, and nothing is left of it if not.

    Raises:
        ConfigError: as `check_new`.

    """
    check_new(out)
    partial = out.absolute().with_name(f"{out.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
