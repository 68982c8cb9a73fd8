"""Where each page of the repository is in the site."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_COMMANDS = "docs/commands/README.md"
_PROJECT = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_PAGES = (".md", ".ipynb")
_IMAGES = (".svg", ".png")


def page_sources() -> list[str]:
    """Return the pages of the repository that the site has, as paths from its root."""
    return [
        *(str(path.relative_to(ROOT)) for kind in _PAGES for path in sorted((ROOT / "docs").rglob(f"*{kind}"))),
        *_PROJECT,
    ]


def page_place(source: str) -> str | None:
    """Return the place of a page in the site; None: it is not in the site."""
    if source == _COMMANDS:
        return "commands/index.md"
    if source in ("docs", "docs/README.md"):
        return "index.md"
    if source.endswith(_IMAGES):
        return f"assets/{source}"
    if source in _PROJECT:
        return f"project/{source.lower()}"
    is_page = source.startswith("docs/") and source.endswith(_PAGES)
    return posixpath.splitext(source.removeprefix("docs/"))[0] + ".md" if is_page else None


def command_place(command: str) -> str:
    """Return the page of a command, or of the group that it is in: `acls list` is in commands/acls.md."""
    return f"commands/{command.split(maxsplit=1)[0]}.md"


def images(text: str) -> set[str]:
    """Return the files of the repository that a page of the site shows, from its root."""
    return set(re.findall(r"\]\((?:\.\./)*assets/([^)\s]+)\)", text))


def slug(heading: str) -> str:
    """Return the anchor that forges give to a heading."""
    plain = re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
