"""Tables of Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def plain(text: str) -> str:
    """Return a text of one line in which nothing is a mark of Markdown."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|" else sign for sign in " ".join(text.split()))


def prose(text: str) -> str:
    """Return a docstring's text as a cell: its code stays code."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = map(plain, parts[::2])
    return "`".join(parts)
