"""From what was typed to the nodes that are meant: relative paths, `.` and `..`, globs."""

from collections.abc import Iterator

from attrs import frozen

from aclog.shell.glob import Glob, parse_glob
from aclog.shell.path_names import decode_name, encode_name, path_text
from aclog.shell.tree_nodes import Directory, Node


@frozen(kw_only=True)
class Place:
    """A node and the bare names on the way to it from the root."""

    names: tuple[str, ...]
    node: Node

    @property
    def shown_name(self) -> str:
        """The last component of its path, as it is shown; `/` for the root."""
        return encode_name(self.names[-1]) if self.names else "/"

    @property
    def path(self) -> str:
        """Its absolute path, as it is shown."""
        return path_text(self.names)


def places(root: Directory, working_directory: tuple[str, ...], target: str) -> Iterator[Place]:
    """Every place that a target means, lazily, in the order of their names; none if there is none.

    `target` is a path, each component a glob; one that does not begin with `/` starts at the working directory.
    `.` and `..` are taken out before anything is looked up, as Kafka's shell does.
    """
    return _descend(Place(names=(), node=root), path_globs(working_directory, target))


def path_globs(working_directory: tuple[str, ...], target: str) -> list[Glob]:
    """The components of the absolute path that a target names, without dots; every `..` takes one away."""
    found = [] if target.startswith("/") else [Glob(plain=encode_name(name)) for name in working_directory]
    for component in target.split("/"):
        if component == "..":
            del found[-1:]
        elif component not in {"", "."}:
            found.append(parse_glob(component))
    return found


def _descend(place: Place, components: list[Glob]) -> Iterator[Place]:
    if not components:
        yield place
        return
    if not isinstance(place.node, Directory):
        return
    for name in _matching(place.node, components[0]):
        child = place.node.child(name)
        if child is not None:  # it may have gone since it was listed, or a plain name is no child at all
            yield from _descend(Place(names=(*place.names, name), node=child), components[1:])


def _matching(directory: Directory, glob: Glob) -> Iterator[str]:
    if glob.pattern is None:
        name = decode_name(glob.plain)
        if name is not None:
            yield name
        return
    for name in directory.names(sure_prefix(glob.plain)):
        if glob.matches(encode_name(name)):
            yield name


def sure_prefix(shown: str) -> str:
    """Of the beginning of a shown name, the part that bare names begin with too: all before an encoded character."""
    return shown.partition("%")[0]
