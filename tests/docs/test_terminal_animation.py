"""The animation shows what the commands print, in their order, and rests for readers with reduced motion."""

import re
from html import unescape
from itertools import pairwise

import pytest
from playwright.sync_api import sync_playwright

from tests.docs.terminal_animation import COMMANDS, CONSOLE, PATH, SECONDS, TIMES
from tests.support.web.chromium import launch

MOST_BYTES = 150_000
_SEEN = """(milliseconds) => {
  const motions = document.getAnimations();
  for (const each of motions) { each.pause(); each.currentTime = milliseconds; }
  const isSeen = (each) => getComputedStyle(each).opacity === "1";
  const lines = [...document.querySelectorAll(".line")].filter(isSeen).map((each) => each.textContent);
  return [motions.length, lines, isSeen(document.querySelector(".console"))];
}"""


def test_the_animation_shows_what_the_commands_print() -> None:
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", PATH.read_text("utf-8"))
    shown = re.sub(r"\s", "", unescape("".join(texts)))
    answers = "".join(f"$ {picture.line}\n{picture.output()}" for picture in COMMANDS)
    assert re.sub(r"\s", "", f"{answers}$ {CONSOLE}console at http://") in shown, "run: make terminal-animation"


def test_the_animation_is_small_and_loads_nothing() -> None:
    svg = PATH.read_text("utf-8")
    assert len(svg) < MOST_BYTES
    assert "<script" not in svg
    assert all(each.startswith("data:image/png;") for each in re.findall(r'href="([^"]*)"', svg))
    assert re.findall(r"url\((?!#)[^)]*|@import|@font-face", svg) == []


@pytest.mark.tier("test")
def test_the_lines_appear_in_their_order_and_the_console_at_the_end() -> None:
    with sync_playwright() as playwright, launch(playwright) as browser:
        page = browser.new_page(reduced_motion="no-preference")
        page.goto(PATH.as_uri())
        frames = [page.evaluate(_SEEN, second * 1000) for second in range(int(SECONDS))]
        moving, lines, is_console = page.evaluate(_SEEN, SECONDS * TIMES * 1000 + 1)
        still = browser.new_page(reduced_motion="reduce")
        still.goto(PATH.as_uri())
        assert still.evaluate(_SEEN, 0) == [0, lines, False]
    assert moving > len(lines)
    assert is_console is False
    assert lines[0].split() == ["$", *COMMANDS[0].line.split()]
    assert [each for _, each, _ in frames] == sorted((lines[: len(each)] for _, each, _ in frames), key=len)
    assert frames[0][1] == []
    assert frames[-1][1] == lines
    console = [is_seen for _, _, is_seen in frames]
    assert console.index(True) > len(console) / 2
    assert all(after or not before for before, after in pairwise(console))
