"""The README's picture of an answer on a terminal: `make terminal-picture` draws it from what the command prints."""

import re
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.docs.recorded import estate
from tests.support.cli.command import aclog

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "terminal" / "explain.svg"
LINE = "aclog explain --log log --principal User:reports --operation READ --topic orders"
"""Asked of the estate of tests/data/week."""
_WIDTH = 96
"""Columns of the terminal."""


def output() -> str:
    """Return what the command prints."""
    with tempfile.TemporaryDirectory() as folder, estate(Path(folder)):
        return aclog(*LINE.split()[1:]).out


def drawn() -> str:
    """Return the picture, as SVG that loads nothing from another host."""
    console = Console(record=True, width=_WIDTH, color_system="truecolor", force_terminal=True, file=StringIO())
    console.print(Text.assemble(("$ ", "bold cyan"), (LINE, "bold")))
    for line in output().splitlines():
        style = "bold red" if line.startswith("DENIED") else "bold" if line.endswith(":") else ""
        console.print(Text(line, style=style, overflow="fold"))
    svg = console.export_svg(title="aclog explain", unique_id="explain")
    svg = re.sub(r"\s*@font-face \{.*?\}\n", "\n", svg, flags=re.DOTALL)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
