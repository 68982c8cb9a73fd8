"""Pictures of answers on a terminal: `make terminal-picture` draws them from what the commands print, with colors."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.text import Text

from tests.docs.recorded import estate
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images" / "terminal"
WIDTH = 96
"""Columns of the terminal."""
_PASSING = re.compile(r" \(\d+ \w+ ago\)| \([0-9a-f]{10}\)")
"""Ages, and ids of commits made for a picture: those of tomorrow differ."""


def _as_it_is() -> None:
    """Ask of the estate of tests/data/week."""


def _pull_request() -> None:
    """Make a repository of the estate's rules, whose work tree has those of a pull request."""
    repository = Repository.create(Path("repository"))
    repository.commit({"kafka/rules.jsonl": (WEEK / "rules.jsonl").read_text("utf-8")})
    repository.write({"kafka/rules.jsonl": (WEEK / "pull-request.jsonl").read_text("utf-8")})


@frozen
class Picture:
    """A command line, and what makes the files that it reads, in a copy of the estate."""

    line: str
    prepare: Callable[[], None] = _as_it_is
    directory: str = "."

    @property
    def name(self) -> str:
        """The command."""
        return self.line.split()[1]

    @property
    def path(self) -> Path:
        """Where the picture is."""
        return PICTURES / f"{self.name}.svg"

    def output(self, *flags: str) -> str:
        """Return what the command prints, with flags before it."""
        with tempfile.TemporaryDirectory() as folder, estate(Path(folder)):
            self.prepare()
            with contextlib.chdir(self.directory):
                return _PASSING.sub("", aclog(*flags, *self.line.split()[1:]).out)

    def drawn(self) -> str:
        """Return the picture, as SVG that loads nothing from another host."""
        return drawn(f"aclog {self.name}", self.name, [(self.line, self.output("--color", "always"))])


def drawn(title: str, unique_id: str, steps: Iterable[tuple[str, str]]) -> str:
    """Return command lines on one terminal, each with what it prints, as SVG that loads nothing from another host.

    `steps`: the command lines, and their output in ANSI colors; `unique_id`: begins the names of the styles.
    """
    console = Console(record=True, width=WIDTH, color_system="truecolor", force_terminal=True, file=StringIO())
    for line, output in steps:
        console.print(Text.assemble(("$ ", "bold cyan"), (line, "bold")))
        for each in output.splitlines():
            text = Text.from_ansi(each)
            text.overflow = "fold"
            console.print(text)
    svg = console.export_svg(title=title, unique_id=unique_id)
    svg = re.sub(r"\s*@font-face \{.*?\}\n", "\n", svg, flags=re.DOTALL)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


ALL = (
    Picture("aclog explain --log log --principal User:reports --operation READ --topic orders"),
    Picture("aclog why reports orders log"),
    Picture("aclog review kafka --base HEAD --format text", _pull_request, "repository"),
)


if __name__ == "__main__":
    for picture in ALL:
        picture.path.write_text(picture.drawn(), "utf-8")
