"""A table that fits the terminal: names are cut in the middle, and where that is not enough each row is a block."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from rich.cells import cell_len, set_cell_size

from aclog.metalog.errors import printable
from aclog.metalog.values import frozen
from aclog.terminal.columns import Column

LOOKAHEAD = 1000
"""Rows that are measured before the first is printed: a million rows need no memory."""
_GAP = "  "
_READABLE, _NARROWEST = 24, 10
"""The length to which a name is cut: in the first pass, and at least."""
_ENDLESS = 1 << 62
_ELLIPSIS = "…"


@frozen(kw_only=True)
class _Layout:
    """Which columns are shown, and how wide; None for blocks."""

    visible: tuple[int, ...]
    widths: tuple[int, ...] | None


def fitted(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    width: int | None,
    left_out: Callable[[Sequence[str]], None],
    paint: Callable[[str, str, bool], str] | None = None,
) -> Iterator[str]:
    """Yield lines without line ends: the heads, then the rows. Control characters in cells are escaped.

    `width`: the terminal's, in cells; None for none, so that nothing is cut or left out. The layout is that of the
    first LOOKAHEAD rows; later rows that are wider get more room if there is some. `left_out` is called at the end with
    the keys of columns that found no room, if there are any. `paint` colors a cell by the key of its column.
    """
    rows = iter(rows)
    natural = [cell_len(column.head) for column in columns]
    layout: _Layout | None = None
    while block := [tuple(map(_cell, row)) for row in islice(rows, LOOKAHEAD)]:
        natural = [
            max(least, min(max(map(cell_len, cells)), _READABLE if column.flows else _ENDLESS))
            for column, least, cells in zip(columns, natural, zip(*block, strict=True), strict=True)
        ]
        is_first = layout is None
        layout = _again(layout, columns, natural, width)
        if layout.widths is None:
            yield from _blocks(columns, block, paint or _unpainted, is_first=is_first)
            continue
        if is_first:
            heads = [column.head for column in columns]
            yield _line(columns, layout.visible, heads, layout.widths, paint or _unpainted, is_head=True)
        for row in block:
            yield _line(columns, layout.visible, row, layout.widths, paint or _unpainted)
    if layout is not None and len(layout.visible) < len(columns):
        left_out([column.key for index, column in enumerate(columns) if index not in layout.visible])


def cut_in_the_middle(text: str, width: int) -> str:
    """Return a text in at most `width` cells; an ellipsis replaces its middle."""
    if cell_len(text) <= width:
        return text
    head = width // 2
    tail = width - 1 - head
    end = set_cell_size(text[::-1], tail)[::-1] if tail else ""
    return f"{set_cell_size(text, head)}{_ELLIPSIS}{end}"


def _cell(text: str) -> str:
    return printable(text) or "-"


def _again(layout: _Layout | None, columns: Sequence[Column], natural: list[int], width: int | None) -> _Layout:
    """Return the layout for more rows: a table stays one, with the same columns."""
    if layout is None:
        return _layout(columns, natural, width)
    if layout.widths is None:
        return layout
    return _Layout(visible=layout.visible, widths=_cut_widths(columns, layout.visible, natural, width, _NARROWEST))


def _layout(columns: Sequence[Column], natural: list[int], width: int | None) -> _Layout:
    """Return the first layout that fits: names cut a little, then no spare columns, then names cut more."""
    everything = tuple(range(len(columns)))
    spare = [index for index in everything if columns[index].spare]
    hidden = [set(spare[count:]) for count in range(len(spare), -1, -1)]
    for without, floor in (*((each, _READABLE) for each in hidden), (hidden[-1], _NARROWEST)):
        visible = tuple(index for index in everything if index not in without)
        widths = _cut_widths(columns, visible, natural, width, floor)
        if width is None or _total(widths) <= width:
            return _Layout(visible=visible, widths=widths)
    return _Layout(visible=everything, widths=None)


def _cut_widths(
    columns: Sequence[Column], visible: Sequence[int], natural: Sequence[int], width: int | None, floor: int
) -> tuple[int, ...]:
    """Return the widths of columns: those of names are made narrower, the widest first, as far as it is needed."""
    widths = {index: natural[index] for index in visible}
    names = [index for index in visible if columns[index].cut]
    over = 0 if width is None else _total(list(widths.values())) - width
    while over > 0 and names:
        index = max(names, key=widths.__getitem__)
        if widths[index] <= floor:
            break
        widths[index] -= 1
        over -= 1
    return tuple(widths.values())


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _unpainted(_key: str, text: str, _is_head: bool) -> str:
    return text


def _line(
    columns: Sequence[Column],
    visible: Sequence[int],
    row: Sequence[str],
    widths: Sequence[int],
    paint: Callable[[str, str, bool], str],
    *,
    is_head: bool = False,
) -> str:
    cells = []
    for index, width in zip(visible, widths, strict=True):
        cell = cut_in_the_middle(row[index], width) if columns[index].cut else row[index]
        cells.append(paint(columns[index].key, cell, is_head) + " " * (width - cell_len(cell)))
    return _GAP.join(cells).rstrip()


def _blocks(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    paint: Callable[[str, str, bool], str],
    *,
    is_first: bool,
) -> Iterator[str]:
    """Yield a line for each cell: nothing is cut there, the terminal wraps it."""
    for number, row in enumerate(rows):
        if number or not is_first:
            yield ""
        for column, cell in zip(columns, row, strict=True):
            yield f"{paint(column.key, column.key, True)}: {paint(column.key, cell, False)}"
