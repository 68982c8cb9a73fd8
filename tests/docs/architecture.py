"""What ARCHITECTURE.md and docs/internals.md say of packages: `python -m tests.docs.architecture` writes it.

The picture of the layers is import-linter's contract. A package's row is its docstring: what it contains (the first
line), and where to start (the names after "Begin with").
"""

import ast
import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
INTERNALS = ROOT / "docs" / "internals.md"
LAYERS = re.compile(r"(?<=## The packages\n\n```\n).*?(?=\n```)", re.DOTALL)
TABLE = re.compile(r"\| package \| content \| begin with \|\n(?:\|.*\|\n)+")


def packages() -> list[str]:
    """All packages below aclog, such as `usage/index`."""
    found = (path.parent.relative_to(ROOT / "aclog") for path in (ROOT / "aclog").rglob("__init__.py"))
    return sorted(str(package) for package in found if package.parts)


def docstring(package: str) -> str:
    """What a package says of itself."""
    text = ast.get_docstring(ast.parse((ROOT / "aclog" / package / "__init__.py").read_text("utf-8")))
    assert text is not None, f"aclog/{package} has no docstring"
    return text


def begin_with(package: str) -> list[str]:
    """The files of a package to read first."""
    _, sign, text = docstring(package).partition("Begin with ")
    assert sign, f"aclog/{package}: the docstring does not say where to begin"
    return re.findall(r"`([\w.]+\.(?:py|avsc))`", text)


def layers() -> str:
    """The picture: one row a layer of import-linter's contract, the highest first."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter", "utf-8")
    arrows = contracts["importlinter:contract:arrows"]["layers"].split("\n")
    return "\n".join(f" {', '.join(layer.split(' | '))}" for layer in arrows if layer)


def table(names: list[str]) -> str:
    """One row a package."""
    rows = ["| package | content | begin with |", "|---|---|---|"]
    for name in names:
        files = ", ".join(f"`{file}`" for file in begin_with(name))
        rows.append(f"| `{name}` | {docstring(name).splitlines()[0]} | {files} |")
    return "\n".join(rows) + "\n"


def written(page: Path) -> str:
    """A page as the code has it now: all packages in docs/internals.md, those at the top in ARCHITECTURE.md."""
    names = [name for name in packages() if page == INTERNALS or "/" not in name]
    text = TABLE.sub(lambda _: table(names), page.read_text("utf-8"))
    return LAYERS.sub(lambda _: layers(), text)


if __name__ == "__main__":
    for each in (PAGE, INTERNALS):
        each.write_text(written(each), "utf-8")
