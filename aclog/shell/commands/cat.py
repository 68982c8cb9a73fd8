"""`cat`, `tree` and `find`: what stands in the tree."""

from collections.abc import Iterator

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command
from aclog.shell.output import Line, complaint
from aclog.shell.path_names import encode_name
from aclog.shell.path_targets import HERE, called, found_at
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory, File, Node

INDENT = 2


def _cat(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("targets"):
        found = False
        for place in found_at(state, target):
            found = True
            if isinstance(place.node, File):
                yield Line(place.node.text())
            else:
                yield complaint(f"cat: {called(target, place)}: Is a directory")
        if not found:
            yield complaint(f"cat: {target.text}: No such file or directory.")


def _tree(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("targets"):
        found = False
        for place in found_at(state, target):
            found = True
            yield from _branches(place.node, 0)
        if not found:
            yield complaint(f"tree: {target.text}: No such file or directory.")


def _branches(node: Node, indent: int) -> Iterator[Line]:
    if isinstance(node, File):
        yield Line(" " * indent + node.text())
        return
    for name, child in _children(node):
        yield Line(f"{' ' * indent}{encode_name(name)}:")
        yield from _branches(child, indent + INDENT)


def _find(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("paths") or (HERE,):
        found = False
        for place in found_at(state, target):
            found = True
            yield from _paths(place.node, called(target, place))
        if not found:
            yield complaint(f"find: {target.text}: no such file or directory.")


def _paths(node: Node, path: str) -> Iterator[Line]:
    yield Line(path)
    if isinstance(node, Directory):
        for name, child in _children(node):
            yield from _paths(child, f"{path.rstrip('/')}/{encode_name(name)}")


def _children(directory: Directory) -> Iterator[tuple[str, Node]]:
    for name in directory.names(""):
        child = directory.child(name)
        if child is not None:  # a listing and a look-up that disagree end Kafka's find: here the rest goes on
            yield name, child


def _paths_argument(name: str, count: Count, text: str) -> Signature:
    return Signature(arguments=(Argument(name=name, count=count, help=text),))


CAT = Command(
    name="cat",
    description="Print what the given files hold.",
    signature=_paths_argument("targets", Count.SOME, "Files to print."),
    run=_cat,
    path_arguments=True,
)
TREE = Command(
    name="tree",
    description="Print everything under the given nodes, indented.",
    signature=_paths_argument("targets", Count.SOME, "Nodes to print."),
    run=_tree,
    path_arguments=True,
)
FIND = Command(
    name="find",
    description="Print the path of every node under the given ones.",
    signature=_paths_argument("paths", Count.ANY, "Where to start; the working directory if not given."),
    run=_find,
    path_arguments=True,
)
