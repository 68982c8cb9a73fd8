"""Pages whose command lines are run, and what they print: `python -m tests.docs.recorded` writes it into the pages."""

import contextlib
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"```console\n\$ (?P<line>.*)\n(?P<output>(?:.*\n)*?)```")


def pages() -> list[Path]:
    """Return the pages on which each block of a console is run, in a copy of the estate of the page's own."""
    found = [ROOT / "README.md", *(ROOT / "docs/start").glob("*.md"), *(ROOT / "docs/how-to").glob("*.md")]
    return sorted(page for page in found if page.name != "week.md")


def written(page: str) -> str:
    """Return a page with what its command lines print now."""

    def block(found: re.Match[str]) -> str:
        """Return one block."""
        return f"```console\n$ {found['line']}\n{shell(found['line'])}```"

    with tempfile.TemporaryDirectory() as folder, estate(Path(folder)):
        return COMMAND.sub(block, page)


def shell(line: str) -> str:
    """Run a command line, with `|` and `&&`, and nothing else of a shell; return what reaches stdout."""
    shown = ""
    for step in line.split(" && "):
        out = ""
        for command in step.split(" | "):
            name, *arguments = shlex.split(command)
            assert name == "aclog"
            out = aclog(*arguments, stdin=out.encode()).out
        shown += out
    return "".join(f"{each.rstrip()}\n" for each in shown.splitlines())


@contextlib.contextmanager
def estate(folder: Path) -> Iterator[None]:
    """Work in a copy of the estate."""
    shutil.copytree(WEEK, folder / "week")
    with contextlib.chdir(folder / "week"):
        yield


if __name__ == "__main__":
    for path in pages():
        path.write_text(written(path.read_text("utf-8")), "utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
