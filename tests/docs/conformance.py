"""The rows of docs/conformance.md, and of the tables of superseded statements in docs/semantics.md."""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
SEMANTICS = ROOT / "docs" / "semantics.md"

KIPS = (11, 290, 373, 801, 1170, 1242, 1276, 1312)
_LINK = re.compile(r"\[(KIP-\d+\.\d+)\]\(semantics\.md#kip-\d+\)")
_QUOTED = re.compile(r"`([^`]+)`")


@frozen(kw_only=True)
class Statement:
    """One row: a statement of a KIP, the modules and tests that it names, and the differences that it points to."""

    id: str
    text: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    superseded: tuple[str, ...]

    @property
    def kip(self) -> int:
        """The number of its KIP."""
        return int(self.id.removeprefix("KIP-").split(".")[0])

    @property
    def number(self) -> int:
        """Its number within the KIP."""
        return int(self.id.split(".")[1])


def statements() -> list[Statement]:
    """Every row of the page whose first cell is an id, in order. Raises ValueError if one has not four cells."""
    return [_statement(cells) for cells in _rows(PAGE)]


def differences() -> list[list[str]]:
    """The cells of each row of the tables of superseded statements: an id, the KIP's text, what was shipped."""
    return list(_rows(SEMANTICS))


def _rows(page: Path) -> Iterator[list[str]]:
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("| KIP-"):
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _statement(cells: list[str]) -> Statement:
    if len(cells) != 4:
        raise ValueError(f"{cells[0]}: {len(cells)} cells, expected 4")
    return Statement(
        id=cells[0],
        text=cells[1],
        modules=tuple(_QUOTED.findall(cells[2])),
        tests=tuple(_QUOTED.findall(cells[3])),
        superseded=tuple(_LINK.findall(cells[3])),
    )
