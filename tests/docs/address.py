"""The address of the repository, which one setting holds: `project.urls.Source` of pyproject.toml.

Change it there and run `python -m tests.docs.address`: it writes the other addresses of pyproject.toml, those of the
action and of the hooks in docs/pull-requests.md, and the site takes it from here.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "pyproject.toml"
RECIPES = ROOT / "docs" / "pull-requests.md"
PAGES = (PROJECT, RECIPES)


def address() -> str:
    """Return the address, without a slash at its end."""
    urls = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["urls"]
    return str(urls["Source"]).rstrip("/")


def written(page: Path) -> str:
    """Return a page with the address in each place that follows from it."""
    home, text = address(), page.read_text("utf-8")
    if page == PROJECT:
        text = re.sub(
            r'(?m)^((?:Documentation|Changelog|Issues) = ")[^"]*?(/(?:tree|blob|issues)\b)', rf"\1{home}\2", text
        )
        return re.sub(r"(?m)^(replacement = '!?(?:\[\\1)?\]\()[^']*?(/(?:blob|raw)/)", rf"\1{home}\2", text)
    repository = "/".join(home.split("/")[-2:])
    text = re.sub(r"(- uses: )[\w.-]+/[\w.-]+(@main\n +with: \{path)", rf"\1{repository}\2", text)
    text = re.sub(
        r"(?m)^Replace `[\w.-]+/[\w.-]+` with the repository",
        f"Replace `{repository}` with the repository",
        text,
    )
    return re.sub(r"(- repo: )\S+(\n +rev: main)", rf"\1{home}\2", text)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(written(each), "utf-8")
