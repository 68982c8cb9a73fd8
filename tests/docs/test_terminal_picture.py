"""The pictures of a terminal show what the commands print."""

import re
from html import unescape

import pytest

from tests.docs.terminal_animation import PATH as TOUR
from tests.docs.terminal_picture import ALL, PICTURES, Picture

MOST_BYTES = 60_000


@pytest.mark.parametrize("picture", ALL, ids=lambda picture: picture.name)
def test_a_picture_shows_what_the_command_prints(picture: Picture) -> None:
    svg = picture.path.read_text("utf-8")
    texts = [unescape(text).replace("\xa0", " ") for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
    shown = re.sub(r"\s", "", "".join(texts))
    assert re.sub(r"\s", "", f"$ {picture.line}\n{picture.output()}") in shown, "run: make terminal-picture"


def test_the_pictures_are_small_and_load_nothing() -> None:
    assert sorted(PICTURES.glob("*")) == sorted([TOUR, *(picture.path for picture in ALL)])
    for picture in ALL:
        svg = picture.path.read_text("utf-8")
        assert len(svg) < MOST_BYTES
        assert re.findall(r"(?:url\(|href=)[\"']?https?:[^\"')]*", svg) == []
