"""Names side by side, as wide as the screen allows: down the columns, then across, as ls does."""

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

GAP = 2


def in_columns(names: Sequence[str], screen_width: int) -> list[str]:
    """The lines that show these names in as many columns as fit into `screen_width` characters; at least one column."""
    widths = [display_width(name) for name in names]
    for count in range(min(len(names), screen_width // (1 + GAP)), 1, -1):
        rows = -(-len(names) // count)
        column_widths = [max(widths[start : start + rows]) for start in range(0, len(names), rows)]
        if sum(column_widths) + GAP * (len(column_widths) - 1) <= screen_width:
            return [_row(names, widths, column_widths, row, rows) for row in range(rows)]
    return list(names)


def display_width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _row(names: Sequence[str], widths: Sequence[int], column_widths: Sequence[int], row: int, rows: int) -> str:
    *others, last = range(row, len(names), rows)
    return "".join(names[i] + " " * (column_widths[i // rows] + GAP - widths[i]) for i in others) + names[last]
