"""Print the requirements of aclog and of the extras that are named, a line each, for pip: `python -m ... kafka`."""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def requirements(*extras: str) -> list[str]:
    """The requirements that pyproject.toml declares."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(requirement for extra in extras for requirement in optional[extra])]


if __name__ == "__main__":
    print("\n".join(requirements(*sys.argv[1:])))
