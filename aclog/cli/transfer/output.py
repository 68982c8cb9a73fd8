"""Where an export goes: standard output, or a file that gets its name when it is whole."""

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
    """A file to write bytes to; nothing is left of it if the `with` ends by an error.

    Raises:
        ConfigError: binary data would go to a terminal, or the path is a directory.
        OSError: the file cannot be written.

    """
    if path is None:
        if binary and sys.stdout.isatty():
            raise ConfigError("binary data does not go to a terminal: give --out FILE, or a pipe")
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.is_dir():
        raise ConfigError(f"{path}: a directory: expected the name of a file")
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        # 0600: an export may hold salts and keys, and always says who may do what.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise _of(path, partial, error) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _of(path: Path, partial: Path, error: OSError) -> OSError:
    """The same error, told of the file that was asked for: nobody knows the partial one."""
    ours = error.filename in {None, str(partial)}
    return OSError(error.errno, error.strerror, str(path)) if ours else error
