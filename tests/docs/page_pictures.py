"""Pictures of the pages that a visitor sees first: `make page-pictures` writes them into build/pictures.

README.png is the README as a hosting site renders it: GitHub-flavoured Markdown in a column of 830 pixels, images
loaded from the checkout. docs.png is the first page of the site that `make docs` builds. Nothing compares pixels: the
pictures are for a person who changed these pages.
"""

from pathlib import Path

from markdown_it import MarkdownIt
from playwright.sync_api import Page, sync_playwright

from tests.support.web.chromium import ROOT, launch

FOLDER = ROOT / "build" / "pictures"
SITE = ROOT / "build" / "site"
WIDTH, HEIGHT = 1280, 900
_CSS = """
body { max-width: 830px; margin: 32px auto; font: 16px/1.5 system-ui, sans-serif; color: #1f2328; }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; line-height: 1.25; }
pre { background: #f6f8fa; border-radius: 6px; padding: 16px; font-size: 85%; line-height: 1.45; overflow: auto; }
code { background: #f6f8fa; border-radius: 6px; padding: .2em .4em; font-size: 85%; }
pre code { padding: 0; font-size: 100%; }
table { border-collapse: collapse; } td, th { border: 1px solid #d1d9e0; padding: 6px 13px; }
tr:nth-child(2n) { background: #f6f8fa; } img { max-width: 100%; } a { color: #0969da; }
"""
"""The measures of a hosting site's page: what decides where lines break and what the first screen shows."""


def readme_html() -> str:
    """Return the README as one HTML page whose relative links start at the checkout."""
    body = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render((ROOT / "README.md").read_text("utf-8"))
    return f'<!doctype html><meta charset="utf-8"><base href="{ROOT.as_uri()}/"><style>{_CSS}</style>{body}'


def take(page: Page, address: str, name: str) -> None:
    """Write the first screen of a page as NAME.png, and the whole page as NAME-whole.png."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    missing = page.evaluate("[...document.images].filter(each => !each.naturalWidth).map(each => each.src)")
    if missing:
        message = f"{address}: images not found: {', '.join(missing)}"
        raise FileNotFoundError(message)
    page.screenshot(path=FOLDER / f"{name}.png")
    page.screenshot(path=FOLDER / f"{name}-whole.png", full_page=True)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    readme = FOLDER / "README.html"
    readme.write_text(readme_html(), "utf-8")
    with sync_playwright() as playwright, launch(playwright) as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        take(page, readme.as_uri(), "README")
        take(page, (SITE / "index.html").as_uri(), "docs")
    for each in sorted(FOLDER.glob("*.png")):
        print(each.relative_to(Path.cwd()))


if __name__ == "__main__":
    main()
