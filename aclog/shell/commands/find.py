"""`find`: the paths of all nodes under a node."""

from collections.abc import Iterator

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.path_names import encode_name
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory, Node
from aclog.shell.walk import HERE, children, find_target, target_name


def _find(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("paths") or (HERE,):
        found = False
        for location in find_target(state, target):
            found = True
            yield from _paths(location.node, target_name(target, location))
        if not found:
            yield complaint(f"find: {target.text}: no such file or directory.")


def _paths(node: Node, path: str) -> Iterator[Line]:
    yield Line(path)
    if isinstance(node, Directory):
        for name, child in children(node):
            yield from _paths(child, f"{path.rstrip('/')}/{encode_name(name)}")


FIND = Command(
    name="find",
    description="Print the path of every node under the given ones.",
    signature=Signature(
        arguments=(Argument(name="paths", count=Count.ANY, help="Where to start; by default the working directory."),)
    ),
    run=_find,
    path_arguments=True,
)
