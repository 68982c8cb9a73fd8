"""What a change does to the checks themselves: the settings, the tests of rules, and what is known of the cluster."""

import os
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from aclog.cli.review.sides import ReviewSides
from aclog.metalog.errors import ConfigError
from aclog.sources.git.git_history import file_content, path_from_top, top_directory
from aclog.sources.repository.discovery import SETTINGS_FILE
from aclog.sources.repository.settings import RepositorySettings


def own_checks(sides: ReviewSides, settings: RepositorySettings) -> Iterator[str]:
    """Yield the files among the checks that the change touches, from the top of the repository, and which it deletes.

    The settings of the base count as well: a change may delete them, or the tests that they name.
    """
    known = settings.source
    files = (settings.file, *settings.test.files, known.topics, known.groups, known.accesses)
    named = {path for each in files if each is not None for path in _inside(str(each))}
    of_settings = {*named, *_settings_files()} if settings.file is None else named
    patterns = {each for file in of_settings & sides.changed for each in _tests_of(sides, file)}
    if settings.document is not None and settings.file is not None:
        patterns |= {each for path in _inside(str(settings.file)) for each in _patterns(settings.document.values, path)}
    for file in sorted(sides.changed):
        if file in of_settings or any(fnmatchcase(file, pattern) for pattern in patterns):
            yield file if sides.head_has(file) else f"{file} (deleted)"


def _inside(file: str) -> Iterator[str]:
    try:
        yield path_from_top(file)
    except ConfigError:  # it is not in the repository
        return


def _settings_files() -> Iterator[str]:
    """Yield where an aclog.toml would be the settings of the working directory, from the top of the repository."""
    here, top = Path.cwd().resolve(), top_directory().resolve()
    for directory in (here, *here.parents):
        if directory.is_relative_to(top):
            yield (directory / SETTINGS_FILE).relative_to(top).as_posix()


def _tests_of(sides: ReviewSides, file: str) -> Iterator[str]:
    """Yield the names and globs of the tests that a file of settings names in the base, if it is one."""
    content = file_content(sides.base_commit, file) if os.path.splitext(file)[1] == ".toml" else None  # noqa: PTH122
    try:
        yield from _patterns(tomllib.loads((content or b"").decode()), file)
    except (ValueError, RecursionError):  # what it was is told: it is a change of the settings
        return


def _patterns(values: dict[str, object], file: str) -> Iterator[str]:
    """Yield what `test.files` says, from the top of the repository."""
    table = values.get("test")
    texts = table.get("files") if isinstance(table, dict) else None
    for text in texts if isinstance(texts, list) else ():
        yield os.path.normpath(os.path.join(os.path.dirname(file), str(text)))  # noqa: PTH118, PTH120
