"""A directory or a file, as of a commit or as in the index, as a FileTree."""

import posixpath
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.file_tree import DEEPEST, MOST_FILES
from aclog.sources.git.git_command import ask_git
from aclog.sources.git.git_files import Found, GitFiles
from aclog.sources.git.git_place import GitPlace

_POINTERS = {
    b"version https://git-lfs.github.com/spec/": "a pointer to Git LFS, which has its content",
    b"\0GITCRYPT": "encrypted by git-crypt",
}
"""How files begin whose content is not in the repository."""


@define(eq=False, kw_only=True)
class GitTree:
    """Files below a path; `..` leads to others of the repository, not out of it.

    Close it, or use it in a `with` block: a process of git runs until then.
    """

    place: GitPlace
    _files: GitFiles = field(init=False)
    _root: str = field(init=False)
    """The directory that was named, or that of the file, from the top of the repository."""
    file: str | None = field(init=False)
    """The name of the file, if one was named."""

    def __attrs_post_init__(self) -> None:
        path = _from_top(self.place)
        self._files = GitFiles(place=self.place)
        try:
            found = self._existing(path)
        except ConfigError:
            self.close()
            raise
        is_directory = found.entry.is_directory
        self._root, self.file = (path, None) if is_directory else posixpath.split(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process of git; idempotent."""
        self._files.close()

    @property
    def name(self) -> str:
        """The commit and the path, as they were given."""
        return self.place.name

    def paths(self) -> list[str]:
        """Return all files beneath the root, sorted; none whose name, or that of its directory, begins with a dot.

        Raises:
            ConfigError: a submodule, a symbolic link that leads nowhere or out of the repository, or a directory that
                is not in this clone.

        """
        if self.file is not None:
            return [self.file]
        found = []
        for number, path in enumerate(self._below("", self._existing(self._root), ())):
            if number == MOST_FILES:
                raise ConfigError(f"{self.name}: more than {MOST_FILES:,} files")
            if not path.endswith("/"):
                found.append(path)
        return sorted(found)

    def read(self, path: str) -> bytes:
        """Return what a file holds. Raises ConfigError: it is none, or its content is not in the repository."""
        found = self._existing(self._full(path))
        if found.entry.is_directory:
            raise ConfigError(f"{self.display(path)}: not a regular file")
        content = self._files.content(found)
        for start, what in _POINTERS.items():
            if content.startswith(start):
                raise ConfigError(f"{self.display(path)}: {what}")
        return content

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file. Raises as `paths`."""
        found = self._files.find(self._full(path))
        return found is not None and not found.entry.is_directory

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory. Raises as `paths`.

        A path that begins with `/` is from the top of the repository.
        """
        found = self._files.find(self._full(path))
        return sorted(self._files.directory(found)) if found is not None and found.entry.is_directory else []

    def display(self, path: str) -> str:
        """Return the path from the top of the repository, after the commit."""
        return self._files.shown(self._full(path))

    def _full(self, path: str) -> str:
        full = posixpath.normpath(posixpath.join(self._root, path))
        return "" if full == "." else full

    def _existing(self, path: str) -> Found:
        found = self._files.find(path)
        if found is None:
            where = f"in {self.place.ref}" if self.place.ref else "in the index"
            raise ConfigError(f"{self._files.shown(path)}: no such file or directory {where}")
        return found

    def _below(self, path: str, directory: Found, above: tuple[str, ...]) -> Iterator[str]:
        """Yield the files under a directory, and the directories, ending in `/`; none that leads back to one above."""
        if directory.path in above:
            return
        if len(above) == DEEPEST:
            raise ConfigError(f"{self._files.shown(directory.path)}: more than {DEEPEST} levels of directories")
        for name in self._files.directory(directory):
            if name.startswith("."):
                continue
            each = self._existing(posixpath.join(directory.path, name))
            if each.entry.is_directory:
                yield f"{path}{name}/"
                yield from self._below(f"{path}{name}/", each, (*above, directory.path))
            else:
                yield f"{path}{name}"


def _from_top(place: GitPlace) -> str:
    """Return the path from the top of the repository, empty for the top; `./` and `../` begin at the working directory.

    Raises:
        ConfigError: it leads out of the repository, or the working directory is in no work tree.

    """
    path = place.path
    if path.split("/", 1)[0] in {".", ".."}:
        answer = ask_git("rev-parse", "--show-prefix")
        if answer.output is None:
            raise ConfigError(f"{place.name}: ./ and ../ are for a working directory within a repository")
        path = posixpath.join(answer.output.decode("utf-8", "surrogateescape").rstrip("\n"), path)
    path = posixpath.normpath(path)
    if path.split("/", 1)[0] == "..":
        raise ConfigError(f"{place.name}: leads out of the repository")
    return "" if path == "." else path
