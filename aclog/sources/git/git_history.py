"""What git knows of two commits: where they parted, and which files are not the same."""

import os
from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.sources.git.git_command import ask_git, without_filters
from aclog.sources.git.git_place import GitPlace, parse_git_place


def top_directory() -> Path:
    """Return the top of the work tree. Raises ConfigError: the working directory is in none."""
    answer = ask_git("rev-parse", "--show-toplevel")
    if answer.output is None:
        raise ConfigError(f"{Path.cwd()}: in no work tree of git: {answer.said.removeprefix('fatal: ')}")
    return Path(os.fsdecode(answer.output.rstrip(b"\n")))


def path_from_top(path: str, top: Path | None = None) -> str:
    """Return a path of the file system from the top of the repository; empty for the top itself.

    `top` saves asking git for it.

    Raises:
        ConfigError: it is not in the repository of the working directory.

    """
    root, full = (top or top_directory()).resolve(), Path(path).absolute()
    resolved = Path(os.path.normpath(full.parent.resolve() / full.name))
    if not resolved.is_relative_to(root):
        raise ConfigError(f"{path}: not in the repository {root}: the files of both sides must be in it")
    found = resolved.relative_to(root).as_posix()
    return "" if found == "." else found


def merge_base(one: str, other: str) -> str | None:
    """Return the id of the commit at which two parted; None if they have none in common, or this clone lacks it."""
    for ref in (one, other):
        parse_git_place(f"{ref}:")
    answer = ask_git("merge-base", one, other)
    return None if answer.output is None else answer.output.decode().strip()


def commit_id(ref: str) -> str | None:
    """Return the id of a commit; None if this clone does not have it. Raises ConfigError: no name of a commit."""
    parse_git_place(f"{ref}:")
    answer = ask_git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    return None if answer.output is None else answer.output.decode().strip()


def exists(place: GitPlace) -> bool:
    """Return whether a commit has a file or directory; False as well if there is no such commit."""
    return ask_git("cat-file", "-e", f"{place.ref}:{place.path}").output is not None


def file_content(ref: str, path: str) -> bytes | None:
    """Return what a file holds in a commit; None if it is not there."""
    return ask_git("cat-file", "blob", f"{ref}:{path}").output


def changed_files(base: str, head: str | None) -> set[str]:
    """Return the files that differ between a commit and another, or the work tree, from the top of the repository.

    Files that git does not know yet count as well.

    Raises:
        ConfigError: git does not know the commits.

    """
    refs = (base,) if head is None else (base, head)
    # Neither filters nor submodules: git would run what the settings of both name.
    compared = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules", "--name-only", "-z")
    answer = ask_git(*without_filters(), *compared, *refs, "--")
    if answer.output is None:
        raise ConfigError(f"{' '.join(refs)}: {answer.said.removeprefix('fatal: ')}")
    found = set(answer.output.split(b"\0"))
    if head is None:
        new = ask_git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/")
        found |= set((new.output or b"").split(b"\0"))
    return {name.decode("utf-8", "surrogateescape") for name in found if name}
