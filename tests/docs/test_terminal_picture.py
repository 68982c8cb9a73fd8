"""The README's picture of a terminal shows what the command prints."""

import re
from html import unescape

from tests.docs.terminal_picture import LINE, PICTURE, output

MOST_BYTES = 30_000


def test_the_picture_shows_what_the_command_prints():
    svg = PICTURE.read_text("utf-8")
    texts = [unescape(text).replace("\xa0", " ") for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
    shown = re.sub(r"\s", "", "".join(texts))
    assert re.sub(r"\s", "", f"$ {LINE}\n{output()}") in shown, "run: make terminal-picture"


def test_the_picture_is_small_and_loads_nothing():
    svg = PICTURE.read_text("utf-8")
    assert len(svg) < MOST_BYTES
    assert re.findall(r"(?:url\(|href=)[\"']?https?:[^\"')]*", svg) == []
