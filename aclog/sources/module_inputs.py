"""What files of rules take from elsewhere: Terraform's modules, and files of variables.

Apart from the options of reading, which every command has: these need the formats and git.
"""

import os
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.rule import DirectoryTree, FileTree, RootInputs
from aclog.sources.git import GitTree, path_from_top
from aclog.sources.read_options import ModuleInputs

# Terraform modules that are not among the files that are read: directories that the user names (`--module`).


@frozen(kw_only=True)
class ModuleTree:
    """A tree, and directories beside it: their paths are absolute, those in the tree are relative."""

    tree: FileTree
    modules: Sequence[DirectoryTree]
    """Never empty."""

    @property
    def name(self) -> str:
        """The name of the tree."""
        return self.tree.name

    def paths(self) -> list[str]:
        """Return the files of the tree alone. Raises as FileTree.paths."""
        return self.tree.paths()

    def read(self, path: str) -> bytes:
        """Return the content of a file of the tree or of a module. Raises as FileTree.read."""
        tree, relative = self._place(path)
        return tree.read(relative)

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file."""
        tree, relative = self._place(path)
        return tree.is_file(relative)

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory."""
        tree, relative = self._place(path)
        return tree.entries(relative)

    def display(self, path: str) -> str:
        """Return a path as messages name it: that of a module begins as the user gave it."""
        tree, relative = self._place(path)
        return tree.display(relative)

    def flag_value(self, path: str) -> str:
        """Return a path as flags name it."""
        tree, relative = self._place(path)
        return tree.flag_value(relative)

    def _place(self, path: str) -> tuple[FileTree, str]:
        if not path.startswith("/"):
            return self.tree, path
        # `..` may lead to a module beside the given one: DirectoryTree limits how far.
        nearest = max(self.modules, key=lambda each: len(os.path.commonpath((_absolute(each.name), path))))
        return nearest, posixpath.relpath(path, _absolute(nearest.name))


def with_modules(
    tree: FileTree, modules: Mapping[str, str], *, commit: GitTree | None
) -> tuple[FileTree, dict[str, str]]:
    """Return a tree in which the directories of modules are within reach, and their paths in it, by source.

    If the tree is of a commit, modules that the commit has are read from it; others are as they are.

    Raises:
        ConfigError: a directory does not exist.

    """
    paths = {source: _path(commit, directory) for source, directory in modules.items()}
    outside = [modules[source] for source, path in paths.items() if path.startswith("/")]
    for directory in outside:
        if not Path(directory).is_dir():
            raise ConfigError(f"--module: {directory}: no such directory")
    return (ModuleTree(tree=tree, modules=[DirectoryTree(each) for each in outside]) if outside else tree), paths


def _path(commit: GitTree | None, directory: str) -> str:
    if commit is not None:
        try:
            inside = path_from_top(directory)
        except ConfigError:
            return _absolute(directory)
        if commit.entries(f"/{inside}"):
            return inside
    return _absolute(directory)


def _absolute(path: str) -> str:
    return os.path.normpath(Path(path).absolute())


# Files of variables that the user names (`--var-file`).


def root_inputs(inputs: ModuleInputs, *, commit: GitTree | None) -> tuple[RootInputs, list[str]]:
    """Return what root modules get, with the content of the files, and notes on files that a commit lacks.

    If the tree is of a commit, files in its repository are those of the commit.

    Raises:
        ConfigError, OSError: a file cannot be read.

    """
    files, notes = [], []
    for name in inputs.var_files:
        inside = None if commit is None else _inside(name)
        if commit is None or inside is None:
            files.append((name, Path(name).read_bytes()))
        elif commit.is_file(inside):
            files.append((_path_text(commit, inside), commit.read(inside)))
        else:
            notes.append(f"--var-file {_path_text(commit, inside)}: there is no such file, so it sets no variable")
    return RootInputs(files=files, values=inputs.values, workspace=inputs.workspace or "default"), notes


def _path_text(commit: GitTree, path: str) -> str:
    return commit.display(path).replace(":/", ":", 1)


def _inside(path: str) -> str | None:
    """Return a path from the top of the repository; None: it is outside."""
    try:
        return f"/{path_from_top(path)}"
    except ConfigError:
        return None
