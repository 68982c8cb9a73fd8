"""Aligned columns, streamed: widths are those of the rows seen so far, so a million rows need no memory."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from aclog.metalog.printable import printable

_LOOKAHEAD = 1000


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield lines without line ends: the header, then the rows. Control characters in cells are escaped."""
    from rich.cells import cell_len  # here: nearly every command may print a table, few do

    rows = iter(rows)
    widths = [cell_len(title) for title in header]
    heading: Sequence[str] | None = header
    while block := [tuple(map(printable, row)) for row in islice(rows, _LOOKAHEAD)]:
        widths = [
            max(width, *map(cell_len, column)) for width, column in zip(widths, zip(*block, strict=True), strict=True)
        ]
        for row in block if heading is None else (heading, *block):
            cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(cells).rstrip()
        heading = None
