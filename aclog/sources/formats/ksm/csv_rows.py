"""Rows of CSV that know their lines, as Kafka Security Manager's library (scala-csv) reads them."""

import re
from collections.abc import Iterator

from attrs import frozen

from aclog.sources.formats.source_file import SourceFile

_DELIMITERS = ",;\t|"
"""KSM's is a setting; the header tells."""


@frozen
class Row:
    """The cells of a row, and the line that it begins on."""

    line: int
    cells: tuple[str, ...]


def delimiter_of(header: str) -> str:
    """Return the character that stands most often between the names of a header."""
    return max(_DELIMITERS, key=header.count)


def rows(file: SourceFile, delimiter: str) -> Iterator[Row]:
    """Yield the rows that are not empty.

    Raises:
        ConfigError: a quote that no quote ends, or that does not enclose the whole cell; with its line.

    """
    # A cell without quotes ends at what scala-csv takes for a line end; one of the rarer ones matches nothing here.
    cell = re.compile(
        rf'(?:"((?:[^"]|"")*)"|([^"\n\r\u2028\u2029\x85{re.escape(delimiter)}]*))({re.escape(delimiter)}|\r?\n|\r?\Z)'
    )
    text, position, line, begin = file.text, 0, 1, 1
    cells: list[str] = []
    while position < len(text) or cells:
        found = cell.match(text, position)
        if found is None:
            raise file.error(
                line, f"not CSV: a cell is either wholly in quotes or has none, from {_excerpt(text, position)}"
            )
        quoted, plain, end = found.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        line += text.count("\n", position, found.end())
        position = found.end()
        if end == delimiter:
            continue
        if cells != [""] or quoted is not None:
            yield Row(begin, tuple(cells))
        cells, begin = [], line


def _excerpt(text: str, position: int) -> str:
    return repr(text[position : position + 40].split("\n", 1)[0])
