"""`tree`: everything under a node, indented."""

from collections.abc import Iterator

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.path_names import encode_name
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import File, Node
from aclog.shell.walk import children, find_target

INDENT = 2


def _tree(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("targets"):
        found = False
        for location in find_target(state, target):
            found = True
            yield from _branches(location.node, 0)
        if not found:
            yield complaint(f"tree: {target.text}: No such file or directory.")


def _branches(node: Node, indent: int) -> Iterator[Line]:
    if isinstance(node, File):
        yield Line(" " * indent + node.text())
        return
    for name, child in children(node):
        yield Line(f"{' ' * indent}{encode_name(name)}:")
        yield from _branches(child, indent + INDENT)


TREE = Command(
    name="tree",
    description="Print everything under the given nodes, indented.",
    signature=Signature(arguments=(Argument(name="targets", count=Count.SOME, help="The nodes to print."),)),
    run=_tree,
    path_arguments=True,
)
