"""The nodes of a tree: files and directories, both computed on access.

Kafka's shell has a class for each kind of node (org.apache.kafka.image.node). Here a node is given functions instead.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import frozen

from aclog.authorizer.index.keys import utf16


@frozen(kw_only=True)
class File:
    """A leaf: `text()` is what `cat` prints, without the final line feed."""

    text: Callable[[], str]


@frozen(kw_only=True)
class Directory:
    """A node with children.

    `names(prefix)` yields the names of the children that begin with `prefix`, lazily, in the order of Java's
    String.compareTo; they are not encoded. `child(name)` looks up one child without listing the others, or returns
    None.
    """

    names: Callable[[str], Iterable[str]]
    child: "Callable[[str], File | Directory | None]"


Node: TypeAlias = File | Directory


def file(text: str) -> File:
    """Return a leaf with a fixed text."""
    return File(text=lambda: text)


def directory(names: Callable[[], Iterable[str]], child: Callable[[str], Node | None]) -> Directory:
    """Return a directory whose names are returned unsorted and all at once; they are sorted when listed."""
    return Directory(
        names=lambda prefix: sorted((name for name in names() if name.startswith(prefix)), key=utf16),
        child=child,
    )


def fixed(children: Mapping[str, Node]) -> Directory:
    """Return a directory of existing children."""
    return directory(lambda: children, children.get)


def computed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    """Return a directory of few children, each made on access."""

    def child(name: str) -> Node | None:
        """Return the child, made now."""
        make = children.get(name)
        return make() if make else None

    return directory(lambda: children, child)
