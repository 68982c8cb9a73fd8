"""Pictures of the console for the documentation: what is on them, and how they are taken.

`make screenshots` (`python -m tests.support.web.pictures`) takes all of them into docs/images/console. Fonts differ
from machine to machine, so nothing compares pixels.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from io import BytesIO
from pathlib import Path

import numpy as np
from attrs import evolve, frozen
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from aclog.planning.plan import ApplyNote
from aclog.targets.applies import append_applies, applied_line, done_line
from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.chromium import launch
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import NEW_RULE, TESTS, write_accesses, write_estate
from tests.support.web.logins import write_logins
from tests.support.web.programs import ROOT
from tests.support.web.visitor import watched

FOLDER = ROOT / "docs" / "images" / "console"
LOGIN = "/login"
"""What is pictured besides the views."""
_WIDE, _NARROW, _TALL, _SHORTEST = 1440, 390, 1120, 900
_COLOURS = 256
"""Those that a picture has most of; text on a plain ground needs no more, and takes half the bytes."""
_PLACE = "/srv"
"""The folder that is read in the place of the one where a picture was taken."""
# What differs from run to run, and says nothing to a reader: the folder, ages, and the digest of a plan.
STEADY = """([home, place]) => {
  document.getElementById("since")?.removeAttribute("id");  // its age is written again every half second
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    texts.currentNode.data = texts.currentNode.data.replaceAll(home, place)
      .replace(/\\d+ (s|min|h|days) ago/, "12 s ago").replace(/plan id: [0-9a-f]{16}/, "plan id: 3e371ad5ddd0341e");
  }
}"""
# How much is shown: all of it and a margin, or down to the last edge, so that no row is cut through.
_HEIGHT = """(most) => {
  const edges = [...document.querySelectorAll("form, h1, p, tr, pre, li, dd, summary")].map(
    (each) => Math.ceil(each.getBoundingClientRect().bottom + scrollY));
  const last = Math.max(...edges) + 16;
  return last <= most ? last : Math.max(...edges.filter((each) => each <= most));
}"""
_NOW = datetime(2026, 11, 20, 14, tzinfo=UTC)
_APPLY = ApplyNote(
    apply="b3JkZXJzLW5pZ2h0LTAxNg",
    at="2026-11-19T22:40:00.000Z",
    who="ann@deploy",
    plan="3e371ad5ddd0341e",
    journal=None,
    git="4f0c2a9d7be1",
)
"""Who made the change of last night."""


class Look(StrEnum):
    """How a page is looked at."""

    LIGHT = "light"
    DARK = "dark"
    NARROW = "narrow"
    """On a phone, in the light."""
    NARROW_DARK = "narrow-dark"

    @property
    def is_dark(self) -> bool:
        """Whether its colours are dark."""
        return self in (Look.DARK, Look.NARROW_DARK)

    @property
    def is_narrow(self) -> bool:
        """Whether it is that of a phone."""
        return self in (Look.NARROW, Look.NARROW_DARK)


@frozen(kw_only=True)
class Picture:
    """A page, as it is pictured."""

    name: str
    view: str
    """The path of the view."""
    query: str = ""
    shows: str
    """What can be read on it."""
    look: Look = Look.LIGHT
    press: str | None = None
    """A button that leads to the view from the page of the query."""
    tallest: int = _TALL
    """How much of a long page is pictured, in pixels."""

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.png"

    @property
    def width(self) -> int:
        """How wide it is, in pixels."""
        return _NARROW if self.look.is_narrow else _WIDE


_DRAFT = f"/draft?rules={NEW_RULE}"
_WHY = "?principal=User:crm&operation=READ&type=TOPIC&name=pii-customers"
_RULE = "?principal=User:Shop&resource=clicks&type=TOPIC&pattern=LITERAL&operation=WRITE&permission=ALLOW&host=*"
_WHEN = "?principal=User:reports&operation=READ&type=TOPIC&name=orders"
PAGES = (
    Picture(name="start", view="/", shows="13 rules for 9 principals"),
    Picture(name="search", view="/search", query="?q=pii", shows="pii-customers"),
    Picture(name="resource", view="/resource", query="?type=TOPIC&name=payments.eu", shows="User:billing"),
    Picture(name="principal", view="/principal", query="?name=User:fraud", shows="10.0.0.9"),
    Picture(name="why", view="/why", query=_WHY, shows="DENIED"),
    Picture(name="rules", view="/rules", shows="13 rules"),
    Picture(name="rule", view="/rules", query=_RULE, shows="Not used from"),
    Picture(name="changes", view="/changes", shows="1 gained, 1 lost"),
    Picture(name="when", view="/when", query=_WHEN, shows="Not allowed since offset 17"),
    Picture(name="findings", view="/findings", shows="shadowed"),
    Picture(name="draft", view="/draft", query=f"?rules={NEW_RULE}", shows="only audit reads personal data"),
)
"""Pages that are pictured in every look."""
PICTURES = (
    *(
        evolve(page, name=page.name if look is Look.LIGHT else f"{page.name}-{look}", look=look)
        for page in PAGES
        for look in Look
    ),
    Picture(name="names", view="/names", query="?type=TOPIC&prefix=payments.", shows="User:fraud"),
    Picture(name="draft-plan", view="/draft/plan", query=_DRAFT, shows="Nothing is written yet", press="Plan it"),
    Picture(name="login", view=LOGIN, shows="Password"),
)


@frozen
class Gallery:
    """The consoles that are pictured: `open` shows all to everybody, `guarded` asks who looks."""

    open: ConsoleProcess
    guarded: ConsoleProcess
    home: Path
    """Where their files are."""

    def take(self, browser: Browser, picture: Picture, folder: Path) -> Path:
        """Picture a page into a folder, once what is to be read on it can be seen."""
        console = self.guarded if picture.view == LOGIN else self.open
        dark = "dark" if picture.look.is_dark else "light"
        size = {"width": picture.width, "height": _SHORTEST}
        with watched(browser, console.url, color_scheme=dark, viewport=size) as context:
            page = context.new_page()
            _go(page, console.url, picture)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.locator("main").get_by_text(picture.shows).first).to_be_visible()
            path = folder / picture.file
            page.evaluate(STEADY, [str(self.home), _PLACE])
            path.write_bytes(smaller(page.screenshot(full_page=True, clip=_clip(page, picture))))
            return path


def _go(page: Page, base: str, picture: Picture) -> None:
    if picture.press is None:
        page.goto(f"{base}{picture.view}{picture.query}")
        return
    page.goto(f"{base}{picture.query}")
    page.get_by_role("button", name=picture.press, exact=True).click()
    page.wait_for_url(f"**{picture.view}?*")


def _clip(page: Page, picture: Picture) -> dict[str, float]:
    """Return the part of a page that is pictured: all of it, or its upper part."""
    height: int = page.evaluate(_HEIGHT, picture.tallest)
    return {"x": 0, "y": 0, "width": picture.width, "height": height}


def smaller(png: bytes) -> bytes:
    """Return a picture with the colours that it has most of, and each other one as the nearest of them."""
    with Image.open(BytesIO(png)) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.int32)
    packed = pixels @ np.array([1 << 16, 1 << 8, 1])
    colours, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    parts = (colours[:, None] >> np.array([16, 8, 0])) & 255
    palette = parts[np.argsort(-counts, kind="stable")[:_COLOURS]]
    nearest = ((parts[:, None] - palette) ** 2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    few = Image.fromarray(nearest[places.reshape(packed.shape)], "P")
    few.putpalette(palette.astype(np.uint8).tobytes())
    buffer = BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


@contextmanager
def gallery(home: Path) -> Iterator[Gallery]:
    """Start the consoles of the gallery on the estate as it is on one day, in an empty folder."""
    log, accesses = write_estate(home / "kafka-prod", _NOW), write_accesses(home / "accesses.jsonl", _NOW)
    append_applies(log, "a2Fma2EtcHJvZC1pZDAwMQ", [applied_line(_APPLY, offset=17, steps=2), done_line(_APPLY)])
    (home / "tests.yaml").write_text(TESTS, encoding="utf-8")
    write_logins(home / "logins", "ann")
    findings = ("--accesses", accesses.name, "--tests", "tests.yaml")
    edit = ("--edit", "--journal", "rules.journal", "--no-allow-everyone-if-no-acl-found")
    with ExitStack() as stack:
        console = ConsoleProcess("--log", log.name, *findings, *edit, home=home, zygote=shared_zygote())
        guarded = ConsoleProcess(
            "--log", log.name, "--login", "logins", ready="/healthz", home=home, zygote=shared_zygote()
        )
        stack.enter_context(console)
        stack.enter_context(guarded)
        console.wait_for("/findings?kind=unused", "User:Shop")
        console.wait_for("/findings?kind=lint", "shadowed")
        console.wait_for("/changes", "2 rule changes")
        yield Gallery(console, guarded, home)


def take_all(home: Path, folder: Path) -> None:
    """Take all pictures into a folder, which holds nothing else afterwards; `home` is an empty one."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    with gallery(home) as pictures, sync_playwright() as playwright:
        browser = launch(playwright)
        for picture in PICTURES:
            path = pictures.take(browser, picture, folder)
            sys.stderr.write(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB\n")
        browser.close()


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as scratch:
        take_all(Path(scratch), FOLDER)
