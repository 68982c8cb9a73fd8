"""Names of files in a repository: those by which settings may mean them, and those that other tools know."""

import os
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from aclog.sources.repository.discovery import repository_root


@frozen
class FileNames:
    """The names by which a glob may mean a file."""

    _directory: Path | None
    """Where the file of suppressions is, if that is known."""

    def __call__(self, file: str) -> Iterable[str]:
        """Return the file as it is shown, without a commit and shortened, and as seen from that directory."""
        path = file if os.path.lexists(file) else file.partition(":")[2] or file  # GITREF:path
        names = {file, os.path.normpath(path)}
        if self._directory is not None:
            names.add(os.path.relpath(path, self._directory))
        return names


def repository_path(file: str) -> str:
    """Return a file's path from the root of the repository that the working directory is in; else as it is shown."""
    root = repository_root(Path.cwd())
    if root is None:
        return file
    if not os.path.lexists(file) and ":" in file:
        return file.partition(":")[2]  # GITREF:path, which begins at the root
    found = Path(os.path.normpath(Path.cwd() / file))
    return found.relative_to(root).as_posix() if found.is_relative_to(root) else file
