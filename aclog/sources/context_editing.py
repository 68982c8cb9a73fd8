"""Changes the file of contexts: one change at a time, whole or not at all, and with every comment kept."""

import fcntl
import os
import tomllib
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.files import replace_durably
from aclog.sources.contexts import CONTEXTS, CURRENT, context_file_of, read_context_file
from aclog.sources.toml import TomlDocument

Contents: TypeAlias = MutableMapping[str, Any]
"""The file as tables in tables."""
_HEADER = "# The contexts of aclog: clusters and logs by name (`aclog context --help`).\n"
_DIRECTORY_MODE = 0o700


def add_context(path: Path, name: str, values: dict[str, Any], *, replace: bool) -> None:
    """Add a context, and make it the current one if it is the first. Raises ConfigError: it exists, without `replace`.

    Raises also what `change_file` does.
    """

    def add(contents: Contents) -> None:
        """See change_file."""
        contexts = contents.setdefault(CONTEXTS, {})
        if name in contexts and not replace:
            raise ConfigError(f"{path}: context {name} exists already: --replace replaces it")
        contexts[name] = values

    change_file(path, add, check=name)


def use_context(path: Path, name: str | None) -> None:
    """Make a context the current one; None: no context is. Raises ConfigError: there is no such context."""

    def use(contents: Contents) -> None:
        """See change_file."""
        if name is None:
            contents.pop(CURRENT, None)
            return
        _contexts_with(path, contents, name)
        contents[CURRENT] = name

    change_file(path, use, check=name)


def remove_context(path: Path, name: str) -> None:
    """Remove a context; if it was the current one, none is. Raises ConfigError: there is no such context."""

    def remove(contents: Contents) -> None:
        """See change_file."""
        contexts = _contexts_with(path, contents, name)
        del contexts[name]
        if not contexts:  # the library leaves no trace of a table that only had tables
            del contents[CONTEXTS]
        if contents.get(CURRENT) == name:
            del contents[CURRENT]

    change_file(path, remove)


def rename_context(path: Path, old: str, new: str) -> None:
    """Give a context another name. Raises ConfigError: there is no such context, or the other exists."""

    def rename(contents: Contents) -> None:
        """See change_file."""
        contexts = _contexts_with(path, contents, old)
        if new in contexts:
            raise ConfigError(f"{path}: context {new} exists already")
        contexts[new] = contexts.pop(old)
        if contents.get(CURRENT) == old:
            contents[CURRENT] = new

    change_file(path, rename)


def change_file(path: Path, change: Callable[[Contents], None], *, check: str | None = None) -> None:
    """Change the file under a lock; `check`: a context that must be valid afterwards.

    A file that is a symbolic link stays one. Nothing is written if anything fails.

    Raises:
        ConfigError: as read_context_file, what `change` raises, and a device or a pipe; LogError, OSError: it cannot be
            written.

    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a regular file: expected one that can be changed")
    path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    target = path.resolve()
    with _locked(target):
        read_context_file(path)  # it is the user's own, and sound
        text = target.read_bytes().decode("utf-8-sig") if target.exists() else _HEADER
        contents = tomllib.loads(text)
        change(contents)
        new = _changed(text, change)
        if new is None or tomllib.loads(new) != contents:
            raise ConfigError(f"{path}: this change would disturb something else in the file: make it with an editor")
        file = context_file_of(TomlDocument(name=str(path), text=new, values=deepcopy(contents)), path)
        if check is not None:
            file.context(check)
        replace_durably(target, new.encode())


def _changed(text: str, change: Callable[[Contents], None]) -> str | None:
    """Return the text after a change, with all its comments; None if the library cannot make it."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        change(document)
        return tomlkit.dumps(document).rstrip("\r\n") + ("\r\n" if "\r\n" in text else "\n")
    except TOMLKitError:
        return None


def _contexts_with(path: Path, contents: Contents, name: str) -> Contents:
    contexts: Contents = contents.get(CONTEXTS, {})
    if name not in contexts:
        raise read_context_file(path).unknown(name)
    return contexts


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the lock of a file, which is another file beside it: the file itself is replaced."""
    descriptor = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
