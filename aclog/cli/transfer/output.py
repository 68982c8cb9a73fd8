"""The output of an export: stdout, or a file that appears when it is complete."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from aclog.metalog.errors import ConfigError


@contextmanager
def open_output(path: Path | None, *, binary: bool) -> Iterator[IO[bytes]]:
    """Open the output for writing bytes; a file is removed if the `with` ends with an error.

    Raises:
        ConfigError: binary output to a terminal, or the path is a directory.
        OSError: the file cannot be written.

    """
    if path is None:
        if binary and sys.stdout.isatty():
            raise ConfigError("binary output to a terminal: use --out FILE or a pipe")
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.is_dir():
        raise ConfigError(f"{path}: a directory: expected a file name")
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        # 0600: an export may contain salts and keys, and always shows who has access to what.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise _renamed(path, partial, error) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _renamed(path: Path, partial: Path, error: OSError) -> OSError:
    """Return the error with the requested path: users do not know the partial file."""
    ours = error.filename in {None, str(partial)}
    return OSError(error.errno, error.strerror, str(path)) if ours else error
