"""`ls`: the names in a directory."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from unicodedata import combining, east_asian_width

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.path_names import encode_name
from aclog.shell.state import ShellState
from aclog.shell.tree_nodes import Directory
from aclog.shell.walk import HERE, Location, find_target

COLUMNS_LIMIT = 1_000
"""Longer listings are printed one name per line, lazily, instead of in columns."""

_GAP = 2


def _ls(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    targets = arguments.all("targets") or (HERE,)
    found: list[Iterator[Location]] = []
    for target in targets:
        of_target = find_target(state, target)
        first = next(of_target, None)
        if first is None:
            yield complaint(f"ls: {target.text}: no such file or directory.")
        else:
            found.append(chain([first], of_target))
    yield from _listed(chain.from_iterable(found), state.screen_width)


def _listed(found: Iterator[Location], screen_width: int | None) -> Iterator[Line]:
    """Yield files first, then each directory, with its name above it unless it is all that is listed."""
    directories: list[tuple[str, Directory]] = []
    printed = False
    for line in _laid_out(_files(found, directories), screen_width):
        printed = True
        yield line
    titled = printed or len(directories) > 1
    for name, directory in directories:
        lines = _laid_out(map(encode_name, directory.names("")), screen_width)
        first = next(lines, None)
        if first is None:  # like Kafka's shell, print nothing for an empty directory, not even its name
            continue
        if titled:
            yield from [Line("")] if printed else []
            yield Line(f"{name}:")
            printed = True
        yield from chain([first], lines)


def _files(found: Iterator[Location], directories: list[tuple[str, Directory]]) -> Iterator[str]:
    """Yield the names of files as they are found, and collect the directories."""
    for location in found:
        if isinstance(location.node, Directory):
            directories.append((location.shown_name, location.node))
        else:
            yield location.shown_name


def _laid_out(names: Iterable[str], screen_width: int | None) -> Iterator[Line]:
    """Yield one name per line, or columns if there is a screen and the names are few enough to be measured first."""
    remaining = iter(names)
    if screen_width is not None:
        few = list(islice(remaining, COLUMNS_LIMIT + 1))
        if len(few) <= COLUMNS_LIMIT:
            yield from map(Line, in_columns(few, screen_width))
            return
        remaining = chain(few, remaining)
    yield from map(Line, remaining)


def in_columns(names: Sequence[str], screen_width: int) -> list[str]:
    """Lay out names down and then across, as ls does, in as many columns as fit into `screen_width`; at least one."""
    widths = [display_width(name) for name in names]
    for count in range(min(len(names), screen_width // (1 + _GAP)), 1, -1):
        rows = -(-len(names) // count)
        column_widths = [max(widths[start : start + rows]) for start in range(0, len(names), rows)]
        if sum(column_widths) + _GAP * (len(column_widths) - 1) <= screen_width:
            return [_row(names, widths, column_widths, row, rows=rows) for row in range(rows)]
    return list(names)


def display_width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _row(names: Sequence[str], widths: Sequence[int], column_widths: Sequence[int], row: int, rows: int) -> str:
    *others, last = range(row, len(names), rows)
    return "".join(names[i] + " " * (column_widths[i // rows] + _GAP - widths[i]) for i in others) + names[last]


LS = Command(
    name="ls",
    description="List the names in a directory.",
    signature=Signature(
        arguments=(Argument(name="targets", count=Count.ANY, help="What to list; by default the working directory."),)
    ),
    run=_ls,
    path_arguments=True,
)
