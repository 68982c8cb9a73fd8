"""Where GitOps files are read from: a directory, or one file."""

import os
import stat
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Protocol

from attrs import define

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


MOST_FILES = 200_000
"""Of one tree, with its directories: symbolic links, and in git a directory that stands in many places, can make few of
them look like endlessly many."""
DEEPEST = 200
"""Levels of directories: more than people make, and few enough for a recursive walk."""
LARGEST = 64 << 20
"""In bytes: more rules than people keep in a file; JSON lines are not read as a whole, and may be larger."""


class Destination(Enum):
    """Where a path leads, symbolic links followed."""

    INSIDE = "INSIDE"
    OUTSIDE = "OUTSIDE"
    GIT = "GIT"
    """Into a `.git`, in any case of its letters, which may hold credentials."""


def destination(path: Path, boundary: Path) -> Destination:
    """Return where a path that a stranger may have written leads: nothing outside of the boundary is to be read."""
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(boundary))
    if not real.is_relative_to(root):
        return Destination.OUTSIDE
    is_git = any(part.lower() == ".git" for part in real.relative_to(root).parts)
    return Destination.GIT if is_git else Destination.INSIDE


@define(eq=False, slots=False)
class DirectoryTree:
    """The files under a directory; of a single file, that one, with the others beside it within reach of `read`.

    Files may come from a stranger, in a pull request: neither `..` nor a symbolic link leads out of the repository that
    they are in, or, outside of one, out of the working directory.
    """

    name: str
    strict: bool = False
    """Whether what is neither a regular file nor a directory is refused beneath the root, instead of left out."""

    def paths(self) -> list[str]:
        """Return all regular files, symbolic links followed.

        Raises:
            OSError: a directory cannot be read; ConfigError: more than MOST_FILES or DEEPEST, one leads out, or as
                `strict` says.

        """
        if self._is_one_file:
            return [Path(self.name).name]
        root, found = Path(self.name), []
        for number, (path, is_directory) in enumerate(_entries(root, (), strict=self.strict)):
            if number == MOST_FILES:
                raise ConfigError(f"{self.name}: more than {MOST_FILES:,} files")
            if not is_directory:
                found.append(path.relative_to(root).as_posix())
        return sorted(found)

    def read(self, path: str) -> bytes:
        """Return what a file holds. Raises OSError: unreadable; ConfigError: not a regular file, or it leads out."""
        found = self._inside(path)
        if found.exists() and not found.is_file():
            raise ConfigError(f"{found}: not a regular file")
        return found.read_bytes()

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file. Raises ConfigError: it leads out."""
        return self._inside(path).is_file()

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory. Raises ConfigError: it leads out."""
        found = self._inside(path)
        return sorted(each.name for each in found.iterdir()) if found.is_dir() else []

    def display(self, path: str) -> str:
        """Return the path from the working directory, or as it was given."""
        return os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118

    @cached_property
    def _is_one_file(self) -> bool:
        return not Path(self.name).is_dir()

    @cached_property
    def _root(self) -> str:
        return os.path.dirname(self.name) if self._is_one_file else self.name  # noqa: PTH120

    @cached_property
    def _boundary(self) -> Path:
        root = Path(os.path.realpath(self._root or os.curdir))
        repository = next((each for each in (root, *root.parents) if (each / ".git").exists()), None)
        if repository is not None:
            return repository
        working = Path.cwd().resolve()
        return working if root.is_relative_to(working) else root

    def _inside(self, path: str) -> Path:
        found = Path(self.display(path))
        if self._is_one_file and path == Path(self.name).name:
            return found  # the user named it
        match destination(found, self._boundary):
            case Destination.OUTSIDE:
                raise ConfigError(f"{found}: leads out of {self._boundary}: nothing outside of it is read")
            case Destination.GIT:
                raise ConfigError(f"{found}: leads into .git, which may hold credentials: nothing in it is read")
        return found


def _entries(directory: Path, above: tuple[tuple[int, int], ...], *, strict: bool) -> Iterator[tuple[Path, bool]]:
    """Yield what is under a directory, and whether each is a directory; none that leads back to one above."""
    status = directory.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    if len(above) == DEEPEST:
        raise ConfigError(f"{directory}: more than {DEEPEST} levels of directories")
    for path in directory.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield path, True  # before what it holds: the reader may have enough
            yield from _entries(path, (*above, identity), strict=strict)
        elif stat.S_ISREG(path.stat().st_mode):
            yield path, False
        elif strict:
            raise ConfigError(f"{path}: neither a regular file nor a directory: what rules it holds is not read")
