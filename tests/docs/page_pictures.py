"""Pictures of the pages that a visitor sees first: `make page-pictures` writes them into build/pictures.

README.png is the README as a hosting site renders it: GitHub-flavoured Markdown in a column of 830 pixels, images
loaded from the checkout. docs.png is the first page of the site that `make docs` builds. comment-NAME.png is the
comment of `aclog review` on the pull request NAME of tests/support/review. Nothing compares pixels: the pictures are
for a person who changed these pages.
"""

import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.support.cli.command import aclog
from tests.support.review.comments import plain_html
from tests.support.review.pull_requests import ACCIDENTS, MODULES, PULL_REQUESTS, apply, write_main
from tests.support.web.chromium import launch
from tests.support.web.programs import ROOT

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


_COMMENT_CSS = """
body { max-width: 780px; margin: 16px auto; font-size: 14px; }
body { border: 1px solid #d1d9e0; border-radius: 6px; padding: 16px; }
h3 { font-size: 1.25em; line-height: 1.25; margin: 0 0 16px; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; }
code { white-space: break-spaces; } sub { font-size: 75%; }
"""
"""The measures of a comment on a pull request."""


_CIRCLES = {
    "\N{LARGE RED CIRCLE}": "#da3633",
    "\N{LARGE ORANGE CIRCLE}": "#f0883e",
    "\N{MEDIUM WHITE CIRCLE}": "#e6e8eb",
}
_CIRCLE = '<span style="color: {}; font-size: 130%; line-height: 1">\N{BLACK CIRCLE}</span>'
"""A hosting site has a font of emoji, this machine may have none."""


def html_of(markdown: str, css: str = "") -> str:
    """Return Markdown as one HTML page whose relative links start at the checkout."""
    body = plain_html(markdown)
    for circle, color in _CIRCLES.items():
        body = body.replace(circle, _CIRCLE.format(color))
    return f'<!doctype html><meta charset="utf-8"><base href="{ROOT.as_uri()}/"><style>{_CSS}{css}</style>{body}'


def comments() -> Iterator[tuple[str, str]]:
    """Yield the name of each pull request, and the comment of a review on it as an HTML page."""
    checks = ("--tests", "tests/rules.yaml", "--topics", "topics.txt", "--accesses", "accesses.jsonl")
    with tempfile.TemporaryDirectory() as directory:
        repository = write_main(Path(directory) / "repository", MODULES)
        repository.git("remote", "add", "origin", "https://github.com/acme/kafka-rules.git")
        with chdir(repository.path):
            for number, request in enumerate((*PULL_REQUESTS, *ACCIDENTS)):
                repository.git("switch", "--quiet", "--force-create", f"change-{number}", "main")
                apply(request, Path())
                repository.git("add", ".")
                repository.git("commit", "--quiet", "--allow-empty", "--message", request.name)
                review = aclog("review", "kafka", "--base", "main", *checks, "--format", "markdown")
                yield request.name.replace(" ", "-"), html_of(review.out, _COMMENT_CSS)


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
    readme.write_text(html_of((ROOT / "README.md").read_text("utf-8")), "utf-8")
    with sync_playwright() as playwright, launch(playwright) as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        take(page, readme.as_uri(), "README")
        take(page, (SITE / "index.html").as_uri(), "docs")
        for name, html in comments():
            comment = FOLDER / f"comment-{name}.html"
            comment.write_text(html, "utf-8")
            take(page, comment.as_uri(), f"comment-{name}")
    for each in sorted(FOLDER.glob("*.png")):
        print(each.relative_to(Path.cwd()))


if __name__ == "__main__":
    main()
