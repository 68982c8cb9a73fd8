"""What a tree is made of: files and directories, both computed when they are looked at.

There is no node class for topics, users or rules: what a node shows is a function that it is given (Kafka's shell has
a class for each, org.apache.kafka.image.node).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import frozen

from aclog.authorizer.index.keys import utf16


@frozen(kw_only=True)
class File:
    """A leaf: `text()` is what `cat` prints, without the end of its last line."""

    text: Callable[[], str]


@frozen(kw_only=True)
class Directory:
    """A node with children.

    `names(prefix)` yields the children's names that begin with `prefix` (bare names, not encoded), lazily, in the
    order of Java's String.compareTo. `child(name)` looks one child up without listing the others; None if there is
    none.
    """

    names: Callable[[str], Iterable[str]]
    child: "Callable[[str], File | Directory | None]"


Node: TypeAlias = File | Directory


def file(text: str) -> File:
    """A leaf with a text that costs nothing to make."""
    return File(text=lambda: text)


def directory(names: Callable[[], Iterable[str]], child: Callable[[str], Node | None]) -> Directory:
    """A directory whose names come in any order, all at once: they are sorted when listed."""
    return Directory(
        names=lambda prefix: sorted((name for name in names() if name.startswith(prefix)), key=utf16),
        child=child,
    )


def fixed(children: Mapping[str, Node]) -> Directory:
    """A directory of children that stand already."""
    return directory(lambda: children, children.get)


def computed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    """A directory of few children, each made when it is looked up."""

    def child(name: str) -> Node | None:
        """The child, made now."""
        make = children.get(name)
        return make() if make else None

    return directory(lambda: children, child)
