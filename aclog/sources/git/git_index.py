"""The files of git's index: what the next commit will hold."""

from aclog.metalog.errors import ConfigError
from aclog.sources.git.git_command import ask_git
from aclog.sources.git.git_objects import TreeEntry, directory_entry

ROOT = "/"
"""The id of the top directory; that of another one is its path."""


def read_index() -> dict[str, dict[str, TreeEntry]]:
    """Return the directories of the index by their ids.

    Raises:
        ConfigError: not in a repository with an index, or it holds a merge that is not resolved.

    """
    answer = ask_git("ls-files", "--stage", "-z", "--full-name", ":/")
    if answer.output is None:
        raise ConfigError(f"no index (:PATH): {answer.said.removeprefix('fatal: ')}")
    directories: dict[str, dict[str, TreeEntry]] = {ROOT: {}}
    for line in answer.output.split(b"\0")[:-1]:
        fields, _, raw = line.partition(b"\t")
        mode, id_, stage = fields.decode("ascii").split()
        path = raw.decode("utf-8", "surrogateescape")
        if stage != "0":
            raise ConfigError(f":{path}: a merge that is not resolved yet: resolve it, and git add it")
        parent, _, name = path.rpartition("/")
        _directory(directories, parent)[name] = TreeEntry(mode=mode, id=id_)
    return directories


def _directory(directories: dict[str, dict[str, TreeEntry]], path: str) -> dict[str, TreeEntry]:
    """Return a directory, made with all above it; not by recursion: a path may have two thousand levels."""
    at, below = path, ""
    while True:
        is_known = (at or ROOT) in directories
        entries = directories.setdefault(at or ROOT, {})
        if below:
            entries[below.rpartition("/")[2]] = directory_entry(below)
        if is_known:
            return directories[path or ROOT]
        at, below = at.rpartition("/")[0], at
