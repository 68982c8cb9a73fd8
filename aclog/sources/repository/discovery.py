"""Where the settings of a repository are: aclog.toml, above the working directory, up to the repository's root."""

import os
from pathlib import Path

from aclog.metalog.errors import ConfigError

SETTINGS_FILE = "aclog.toml"
_ROOT_MARK = ".git"
"""A directory, or the file of a worktree or submodule."""


def repository_root(start: Path) -> Path | None:
    """Return the root of the git repository that a directory is in; None if it is in none."""
    start = start.absolute()
    return next((each for each in (start, *start.parents) if (each / _ROOT_MARK).exists()), None)


def find_settings_file(start: Path) -> Path | None:
    """Return the nearest aclog.toml in a directory or above it, but none above the root of its repository.

    Outside of a repository only the directory itself is looked at: a file above it may be anybody's.

    Raises:
        ConfigError: it is a symbolic link to a file elsewhere.

    """
    start = start.absolute()
    root = repository_root(start) or start
    for directory in (start, *start.parents):
        found = directory / SETTINGS_FILE
        if found.is_file():
            if not found.resolve().is_relative_to(root.resolve()):
                raise ConfigError(f"{shown_path(found)}: a symbolic link out of the repository: expected a file")
            return found
        if directory == root:
            return None
    return None


def shown_path(path: Path) -> Path:
    """Return a path as the working directory needs it: relative to it, as short as can be."""
    return Path(os.path.relpath(path))
