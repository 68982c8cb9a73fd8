"""Print the requirements of aclog and of the extras that are named, a line each, for pip: `python -m ... kafka`."""

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def requirements(*extras: str) -> list[str]:
    """The requirements that pyproject.toml declares."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    found = list(project["dependencies"])
    for extra in extras:
        for text in project["optional-dependencies"][extra]:
            own = Requirement(text)
            found += requirements(*own.extras) if own.name == project["name"] else [text]
    return found


def needed(texts: list[str]) -> set[str]:
    """The distributions that pip installs for these requirements here, as far as they are installed now."""
    found: set[str] = set()
    todo = [(Requirement(text), "") for text in texts]
    while todo:
        wanted, extra = todo.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        extras = {"", *wanted.extras}
        if name not in found:
            found.add(name)
        todo += [
            (Requirement(text), each)
            for text in requires(name) or ()
            for each in extras
            if canonicalize_name(Requirement(text).name) not in found
        ]
    return found


def files(name: str) -> Iterator[Path]:
    """The files of an installed distribution, but for compiled Python."""
    for file in distribution(name).files or ():
        path = Path(str(file.locate()))
        if path.suffix != ".pyc" and path.exists():
            yield path


if __name__ == "__main__":
    print("\n".join(requirements(*sys.argv[1:])))
