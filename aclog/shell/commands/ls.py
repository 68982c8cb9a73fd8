"""`ls`: the names in a directory."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.columns import in_columns
from aclog.shell.command import Command
from aclog.shell.output import Line, complaint
from aclog.shell.path_names import encode_name
from aclog.shell.path_targets import HERE, found_at
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory
from aclog.shell.walk import Place

COLUMNS_LIMIT = 1_000
"""A listing longer than this is not laid out in columns: it is printed as it comes."""


def _ls(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    targets = arguments.all("targets") or (HERE,)
    found: list[Iterator[Place]] = []
    for target in targets:
        of_target = found_at(state, target)
        first = next(of_target, None)
        if first is None:
            yield complaint(f"ls: {target.text}: no such file or directory.")
        else:
            found.append(chain([first], of_target))
    yield from _listed(chain.from_iterable(found), state.screen_width)


def _listed(found: Iterator[Place], screen_width: int | None) -> Iterator[Line]:
    """Files first, then each directory; with its name above it where more is listed than one directory."""
    directories: list[tuple[str, Directory]] = []
    printed = False
    for line in _laid_out(_files(found, directories), screen_width):
        printed = True
        yield line
    titled = printed or len(directories) > 1
    for name, directory in directories:
        lines = _laid_out(map(encode_name, directory.names("")), screen_width)
        first = next(lines, None)
        if first is None:  # an empty directory is passed over, its name too: so does Kafka's shell
            continue
        if titled:
            yield from [Line("")] if printed else []
            yield Line(f"{name}:")
            printed = True
        yield from chain([first], lines)


def _files(found: Iterator[Place], directories: list[tuple[str, Directory]]) -> Iterator[str]:
    """The names of the files, as they are found; directories are put aside."""
    for place in found:
        if isinstance(place.node, Directory):
            directories.append((place.shown_name, place.node))
        else:
            yield place.shown_name


def _laid_out(names: Iterable[str], screen_width: int | None) -> Iterator[Line]:
    """One name a line, or in columns if there is a screen and the names are few enough to be measured first."""
    remaining = iter(names)
    if screen_width is not None:
        few = list(islice(remaining, COLUMNS_LIMIT + 1))
        if len(few) <= COLUMNS_LIMIT:
            yield from map(Line, in_columns(few, screen_width))
            return
        remaining = chain(few, remaining)
    yield from map(Line, remaining)


LS = Command(
    name="ls",
    description="List the names in a directory.",
    signature=Signature(
        arguments=(Argument(name="targets", count=Count.ANY, help="What to list; the working directory if not given."),)
    ),
    run=_ls,
    path_arguments=True,
)
