"""`python -m tests.docs.site`: writes build/docs, which zensical builds, and the manual pages in build/man."""

import json
import shutil
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from aclog.cli.app import app
from aclog.cli.help import command_page, command_pages, manual_name, manual_page
from tests.docs.notebook import page as notebook_page
from tests.docs.site.command_page import command_page_text, command_sections, general_page
from tests.docs.site.links import Links
from tests.docs.site.markdown import for_site
from tests.docs.site.navigation import navigation
from tests.docs.site.places import ROOT, command_place, images, page_place, page_sources
from tests.docs.site.reference.errors import errors_page
from tests.docs.site.reference.metrics import metrics_page
from tests.docs.site.reference.properties import properties_page
from tests.docs.site.reference.schemas import schemas_page
from tests.docs.site.reference.variables import variables_page

BUILD = ROOT / "build"


def site_pages() -> dict[str, str]:
    """Return all pages of the site, by their places, with links that work there."""
    pages = {}
    for source in page_sources():
        place = page_place(source)
        assert place is not None, source
        pages[place] = for_site(Links(source=source, place=place).rewritten(_text(source)))
    sections = command_sections()
    commands = [page for page in command_pages(app) if len(page.words) > 1]
    for first, group in groupby(commands, lambda page: page.words[1]):
        place = command_place(first)
        text = command_page_text(group, sections)
        pages[place] = for_site(Links(source=f"docs/{place}", place=place).rewritten(text))
    return pages | {
        "reference/properties.md": properties_page(),
        "reference/metrics.md": metrics_page(),
        "reference/errors.md": errors_page(),
        "reference/schemas.md": schemas_page(),
        "reference/variables.md": variables_page(),
    }


def _text(source: str) -> str:
    if source == "docs/commands/README.md":
        return general_page(command_page(app, ()))
    text = (ROOT / source).read_text("utf-8")
    return notebook_page(json.loads(text)) if source.endswith(".ipynb") else text


def write_site(folder: Path) -> None:
    """Write the pages to a folder, which is emptied first, and zensical's configuration beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = site_pages()
    for place, text in pages.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        for image in images(text):
            (folder / "assets" / image).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / image, folder / "assets" / image)
    shutil.copytree(ROOT / "docs/assets", folder / "assets", dirs_exist_ok=True)
    settings = (ROOT / "docs/zensical.toml").read_text("utf-8")
    (folder.parent / "zensical.toml").write_text(f"{settings}\n{navigation(pages)}", "utf-8")


def write_manual(folder: Path) -> None:
    """Write a manual page for each command and group of commands to a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    day = datetime.now(UTC).date().isoformat()
    for page in command_pages(app):
        (folder / f"{manual_name(page)}.1").write_text(manual_page(page, version("aclog"), day), "utf-8")


if __name__ == "__main__":
    write_site(BUILD / "docs")
    write_manual(BUILD / "man")
