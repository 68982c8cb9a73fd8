"""Path resolution: from a typed path with `.`, `..` and globs to the nodes that it matches."""

from collections.abc import Iterator

from attrs import frozen

from aclog.shell.glob import Glob, parse_glob
from aclog.shell.path_names import decode_name, encode_name, path_text
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory, Node
from aclog.shell.words import Word

HERE = Word(text=".", glob=".")


@frozen(kw_only=True)
class Location:
    """A node, and the bare names on the way to it from the root."""

    names: tuple[str, ...]
    node: Node

    @property
    def shown_name(self) -> str:
        """The last component of its path, encoded; `/` for the root."""
        return encode_name(self.names[-1]) if self.names else "/"

    @property
    def path(self) -> str:
        """Its absolute path, encoded."""
        return path_text(self.names)


def find_target(state: ShellState, target: Word) -> Iterator[Location]:
    """Yield the locations that a command's path argument matches, lazily."""
    return resolve(state.tree(), state.working_directory, target.glob)


def target_name(target: Word, location: Location) -> str:
    """Return the name of a location in messages: the path as typed, or its own path if a glob was typed."""
    is_glob = any(parse_glob(component).pattern for component in target.glob.split("/"))
    return location.path if is_glob else target.text


def resolve(root: Directory, working_directory: tuple[str, ...], target: str) -> Iterator[Location]:
    """Yield every location that a path matches, lazily, in the order of their names.

    Each component of `target` is a glob; a path that does not begin with `/` starts at the working directory. `.` and
    `..` are removed before anything is looked up, as in Kafka's shell.
    """
    return _descend(Location(names=(), node=root), path_globs(working_directory, target))


def path_globs(working_directory: tuple[str, ...], target: str) -> list[Glob]:
    """Return the components of the absolute path of `target`, without `.` and `..`."""
    found = [] if target.startswith("/") else [Glob(plain=encode_name(name)) for name in working_directory]
    for component in target.split("/"):
        if component == "..":
            del found[-1:]
        elif component not in {"", "."}:
            found.append(parse_glob(component))
    return found


def _descend(location: Location, components: list[Glob]) -> Iterator[Location]:
    if not components:
        yield location
        return
    if not isinstance(location.node, Directory):
        return
    for name in _matching(location.node, components[0]):
        child = location.node.child(name)
        if child is not None:  # a plain name may not exist
            yield from _descend(Location(names=(*location.names, name), node=child), components[1:])


def _matching(directory: Directory, glob: Glob) -> Iterator[str]:
    if glob.pattern is None:
        # A plain name is looked up and not listed: a directory may have a million entries.
        name = decode_name(glob.plain)
        if name is not None:
            yield name
        return
    for name in directory.names(common_prefix(glob.plain)):
        if glob.matches(encode_name(name)):
            yield name


def common_prefix(shown: str) -> str:
    """Return the part of an encoded name's beginning that bare names share: all before the first encoded character."""
    return shown.partition("%")[0]


def children(directory: Directory) -> Iterator[tuple[str, Node]]:
    """Yield the children of a directory with their names."""
    for name in directory.names(""):
        child = directory.child(name)
        if child is not None:  # Kafka's find and tree stop if a listed child cannot be looked up; here the rest follows
            yield name, child
