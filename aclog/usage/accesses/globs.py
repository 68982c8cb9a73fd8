"""Globs of files: the directories in which a glob may name files, and that may not be listed.

A module of its own: settings of a repository have globs as well, and import no access logs.
"""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path, PurePath


def is_hidden(path: PurePath) -> bool:
    """Return whether a part of a relative path begins with `.` or `_`, as Spark and Hive hide files."""
    return any(part.startswith((".", "_")) for part in path.parts)


def unlistable(pattern: str) -> Iterator[OSError]:
    """Yield the error of each directory that a glob leads through and that cannot be listed: Python's skips it."""
    path = Path(pattern)
    pending = [(Path(path.anchor), path.parts[1:] if path.anchor else path.parts)]
    while pending:
        directory, parts = pending.pop()
        part, rest = (parts[0], parts[1:]) if parts else ("", ())
        if not has_magic(part):
            pending += [(directory / part, rest)] if part else []
            continue
        try:
            names = _directories(directory, follow=part != "**")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield error
            continue
        if part == "**" and rest and not has_magic(rest[0]):
            pending.append((directory, rest))
        visible = [each for each in names if part.startswith(".") or not each.startswith(".")]
        pending += [(directory / each, parts) for each in visible if part == "**"]
        pending += [(directory / each, rest) for each in visible if part != "**" and fnmatchcase(each, part)]


def _directories(directory: Path, *, follow: bool) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted((each.name for each in entries if _is_directory(each, follow=follow)), reverse=True)


def _is_directory(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False
