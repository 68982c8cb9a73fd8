"""The output directory of a job, which appears only once it is complete.

This module does not import PySpark: a refusal does not wait for it.
"""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aclog.metalog.errors import ConfigError


def check_new(out: Path) -> None:
    """Refuse an output directory that exists, before the job rather than after it.

    Raises:
        ConfigError: `out` exists, or its parent directory does not.

    """
    if out.exists():
        raise ConfigError(f"{out}: exists already: expected the name of a directory to create")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"{out.parent}: no such directory: expected one to create {out.name} in")


@contextmanager
def new_directory(out: Path) -> Iterator[Path]:
    """Yield a directory next to `out` to write to; it is renamed to `out` on success and deleted on failure.

    Raises:
        ConfigError: as `check_new`.

    """
    check_new(out)
    # next to `out`, so that the rename stays on one file system and is atomic; a random name, as two jobs may race
    partial = out.absolute().with_name(f"{out.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
