"""`cat`: the contents of files."""

from collections.abc import Iterator

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import File
from aclog.shell.walk import find_target, target_name


def _cat(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("targets"):
        found = False
        for location in find_target(state, target):
            found = True
            if isinstance(location.node, File):
                yield Line(location.node.text())
            else:
                yield complaint(f"cat: {target_name(target, location)}: Is a directory")
        if not found:
            yield complaint(f"cat: {target.text}: No such file or directory.")


CAT = Command(
    name="cat",
    description="Print the contents of files.",
    signature=Signature(arguments=(Argument(name="targets", count=Count.SOME, help="The files to print."),)),
    run=_cat,
    path_arguments=True,
)
