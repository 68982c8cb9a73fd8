"""What stands where in a commit, or in the index: paths are followed as a file system would, within the repository."""

import posixpath

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.git.git_command import is_partial_clone
from aclog.sources.git.git_commit import tree_id
from aclog.sources.git.git_index import ROOT, read_index
from aclog.sources.git.git_objects import GitObjects, MissingObjectError, TreeEntry, directory_entry
from aclog.sources.git.git_place import GitPlace

_LINKS = 40
"""Symbolic links that may be followed for one path, those on the way to others included; Linux has the same limit."""
_LONGEST_LINK = 4096
"""In bytes, as Linux's PATH_MAX."""


@frozen(kw_only=True)
class Found:
    """An entry, and its path from the top of the repository, without symbolic links; empty for the top itself."""

    path: str
    entry: TreeEntry


@define(eq=False, kw_only=True)
class GitFiles:
    """The files of one commit, or of the index. Owned by a GitTree, which closes it: a process of git may run."""

    place: GitPlace
    _top: TreeEntry = field(init=False)
    _directories: dict[str, dict[str, TreeEntry]] = field(init=False)
    """What has been read of them, by id."""
    _objects: GitObjects = field(factory=GitObjects, init=False)

    def __attrs_post_init__(self) -> None:
        self._directories = {} if self.place.ref else read_index()
        self._top = directory_entry(tree_id(self.place) if self.place.ref else ROOT)

    def close(self) -> None:
        """End the process of git; idempotent."""
        self._objects.close()

    def find(self, path: str) -> Found | None:
        """Return what is at a path from the top of the repository, symbolic links followed; None if nothing is.

        Raises:
            ConfigError: the path leads out of the repository, or into a submodule; a symbolic link leads nowhere; an
                object is not in this clone.

        """
        return self._find(path, path, [_LINKS])

    def directory(self, found: Found) -> dict[str, TreeEntry]:
        """Return what a directory holds, by name. Raises ConfigError: it is not in this clone."""
        id_ = found.entry.id
        if id_ not in self._directories:
            try:
                self._directories[id_] = self._objects.tree(id_)
            except MissingObjectError:
                raise self._missing(found.path) from None
        return self._directories[id_]

    def content(self, found: Found) -> bytes:
        """Return what a file holds. Raises ConfigError: it is not in this clone."""
        try:
            return self._objects.blob(found.entry.id)
        except MissingObjectError:
            raise self._missing(found.path) from None

    def shown(self, path: str) -> str:
        """Return a path from the top as messages name it."""
        return f"{self.place.ref}:{path}"

    def _find(self, path: str, given: str, links: list[int]) -> Found | None:
        """`links`: how many may be followed yet, in all: `a -> b/b`, `b -> c/c` and so on double with each name."""
        found = Found(path="", entry=self._top)
        parts = [part for part in path.split("/") if part not in {"", "."}]
        for at, part in enumerate(parts):
            if not found.entry.is_directory:
                return None
            if part == "..":
                found = self._parent(found, given)
                continue
            entry = self.directory(found).get(part)
            if entry is None:
                return None
            found = Found(path=posixpath.join(found.path, part), entry=entry)
            if entry.is_submodule:
                raise ConfigError(f"{self.shown(found.path)}: a submodule: its files are in another repository")
            if entry.is_link:
                return self._follow(found, "/".join(parts[at + 1 :]), links)
        return found

    def _parent(self, found: Found, given: str) -> Found:
        if not found.path:
            raise ConfigError(f"{self.shown(given)}: leads out of the repository")
        parent = self.find(posixpath.dirname(found.path))
        return parent or Found(path="", entry=self._top)

    def _follow(self, link: Found, rest: str, links: list[int]) -> Found | None:
        content = self.content(link)
        if len(content) > _LONGEST_LINK:
            raise ConfigError(f"{self.shown(link.path)}: a symbolic link of more than {_LONGEST_LINK:,} bytes")
        target = content.decode("utf-8", "surrogateescape")
        name = f"{self.shown(link.path)}: a symbolic link to {target}"
        if target.startswith("/"):
            raise ConfigError(f"{name}, which is not in the repository")
        links[0] -= 1
        if links[0] < 0:
            raise ConfigError(f"{name}, which leads to more than {_LINKS} others")
        to = posixpath.join(posixpath.dirname(link.path), target)
        found = self._find(to, link.path, links)
        if found is None:
            raise ConfigError(f"{name}: nothing is there")
        return self._find(posixpath.join(found.path, rest), link.path, links) if rest else found

    def _missing(self, path: str) -> ConfigError:
        if not is_partial_clone():
            return ConfigError(f"{self.shown(path)}: not in this clone, which is damaged: try git fsck")
        ref = self.place.ref or "HEAD"
        return ConfigError(
            f"{self.shown(path)}: not in this clone, which is a partial one; "
            f"fetch it: git archive {ref} {path or '.'} > /dev/null"
        )
