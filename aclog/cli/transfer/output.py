"""The output of an export: stdout, or a file that appears when it is complete."""

import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclPermissionType
from aclog.metalog.errors import ConfigError
from aclog.sources.acl_lines import STDIN

# The output of an export: stdout, a file that appears when it is complete, or a device or a pipe that is there.


_DESCRIPTORS = "/proc"
"""Where a link is no path to follow, but something that a process has open: `/dev/stdout` leads there."""


_OWNER_ONLY = 0o600
"""An export may contain salts and keys, and always shows who has access to what."""


def open_output(path: Path | None, *, binary: bool, mode: int = _OWNER_ONLY) -> AbstractContextManager[IO[bytes]]:
    """Open the output for writing bytes; a file is removed if the `with` ends with an error.

    What is no file of its own, such as a device or a pipe, is written into, and stays what it is. `mode`: that of the
    file.

    Raises:
        ConfigError: binary output to a terminal, the path is a directory, or the reader closes its pipe before the end.
        OSError: the file cannot be written.

    """
    if path is None:
        return _stdout(binary=binary)
    if path.is_dir():
        raise ConfigError(f"{path}: a directory: expected a file name")
    if not is_written_through(path):
        return _whole_file(path, mode)
    return _stdout(binary=binary) if _is_stdout(path) else _written_through(path)


def is_written_through(path: Path) -> bool:
    """Return whether a path leads to a device, a pipe, or what a process has open. Raises OSError: that is unknown."""
    return path.exists() and not path.is_dir() and (not path.is_file() or _is_descriptor(path))


def _is_descriptor(path: Path) -> bool:
    """Return whether an existing path is a descriptor, such as `/dev/stdout` or `/dev/fd/3`, or a link to one."""
    while path.is_symlink():
        if path.parent.resolve().is_relative_to(_DESCRIPTORS):
            return True
        path = path.parent / path.readlink()
    return False


def _is_stdout(path: Path) -> bool:
    """Return whether a path leads to what stdout writes into; not through a pager, which takes text alone."""
    try:
        same = os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except OSError:  # stdout is no file of the system's
        return False
    return same and isinstance(sys.stdout, TextIOWrapper)


@contextmanager
def _stdout(*, binary: bool) -> Iterator[IO[bytes]]:
    if binary and sys.stdout.isatty():
        raise ConfigError("binary output to a terminal: use --out FILE or a pipe")
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


@contextmanager
def _written_through(path: Path) -> Iterator[IO[bytes]]:
    # Neither created nor cut off: another process may have the same file open, and something in it.
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as file:
            yield file
    except BrokenPipeError as error:  # of stdout it would be no error
        raise ConfigError(f"{path}: its reader ended before all was written") from error
    except OSError as error:
        raise _renamed(path, path, error) from error


@contextmanager
def _whole_file(path: Path, mode: int) -> Iterator[IO[bytes]]:
    partial = path.with_name(f"{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as file:
            yield file
            file.flush()
            if mode != _OWNER_ONLY:
                os.fchmod(file.fileno(), mode)
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


# Writes a change of rules for `--change`: JSON lines, in an order that opens nothing on the way.


def safe_order(acl: StandardAcl, *, added: bool) -> int:
    """Return the place of a change in an order that, rule by rule, opens nothing on the way: DENY first, and last."""
    allows = acl.permission_type == AclPermissionType.ALLOW
    return (1 if allows else 0) if added else (2 if allows else 3)


def write_change_file(path: Path, lines: Iterable[str], flag: str) -> str:
    """Write the lines of a change; return "written", or "already there" if the file has exactly these.

    Raises:
        ConfigError: `path`, which `flag` named, is stdout, or exists with other content.
        OSError: it cannot be written.

    """
    if str(path) == STDIN:
        raise ConfigError(f"{flag} -: expected a file: what was found goes to stdout")
    content = "".join(f"{line}\n" for line in lines).encode()
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return "already there"
        raise ConfigError(f"{path}: exists already, and is not this change: expected a new file for {flag}")
    with open_output(path, binary=False) as file:
        file.write(content)
    return "written"
