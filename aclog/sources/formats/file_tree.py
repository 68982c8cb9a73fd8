"""Where GitOps files are read from: a directory, or one file."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from attrs import frozen

from aclog.metalog.errors import ConfigError


class FileTree(Protocol):
    """Files by their path from a root; paths have `/` between their parts."""

    @property
    def name(self) -> str:
        """What was given, for messages."""
        ...

    def paths(self) -> list[str]:
        """Return all files beneath the root, sorted; none whose name, or that of its directory, begins with a dot.

        Raises:
            OSError, ConfigError: a directory cannot be read.

        """
        ...

    def read(self, path: str) -> bytes:
        """Return what a file holds; `..` may lead out of the root. Raises OSError, ConfigError: it cannot be read."""
        ...

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file."""
        ...

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory."""
        ...

    def display(self, path: str) -> str:
        """Return a path as messages name it."""
        ...


@frozen
class DirectoryTree:
    """The files under a directory; of a single file, that one, with the others beside it within reach of `read`."""

    name: str

    @property
    def _root(self) -> str:
        return os.path.dirname(self.name) if self._is_one_file else self.name  # noqa: PTH120

    @property
    def _is_one_file(self) -> bool:
        return not Path(self.name).is_dir()

    def paths(self) -> list[str]:
        """Return all regular files, symbolic links followed. Raises OSError: a directory cannot be read."""
        if self._is_one_file:
            return [Path(self.name).name]
        root = Path(self.name)
        return sorted(path.relative_to(root).as_posix() for path in _files(root, ()))

    def read(self, path: str) -> bytes:
        """Return what a file holds. Raises OSError: it cannot be read; ConfigError: it is no regular file."""
        found = Path(self.display(path))
        if found.exists() and not found.is_file():
            raise ConfigError(f"{found}: not a regular file")
        return found.read_bytes()

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file."""
        return Path(self.display(path)).is_file()

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory."""
        found = Path(self.display(path))
        return sorted(each.name for each in found.iterdir()) if found.is_dir() else []

    def display(self, path: str) -> str:
        """Return the path from the working directory, or as it was given."""
        return os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118


def _files(directory: Path, above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    """Yield the files under a directory; a link to a directory that leads back to one above is not followed."""
    status = directory.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    for path in directory.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _files(path, (*above, identity))
        elif stat.S_ISREG(path.stat().st_mode):
            yield path
