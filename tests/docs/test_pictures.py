"""The documentation shows each page of the console, with words for who does not see the picture."""

import re

import pytest
from PIL import Image

from aclog.console.pages.rule import RULES_PATH
from aclog.console.pages.views import VIEWS
from tests.docs.site.__main__ import write_site
from tests.docs.site.places import ROOT
from tests.support.web.pictures import FOLDER, LOGIN, PICTURES, Look

PAGE = ROOT / "docs" / "console-pictures.md"
MOST_BYTES = 100_000
_SHOWN = re.compile(r"!\[([^\]]*)\]\(images/console/([^)\s]+)\)\n\n(\S.+)")
"""A picture, and the caption below it."""


def test_each_view_is_pictured_in_the_light():
    plain = [picture.view for picture in PICTURES if picture.look is Look.LIGHT]
    assert sorted(plain) == sorted([*VIEWS, LOGIN, RULES_PATH]), "the rules, and one of them"
    assert {picture.look for picture in PICTURES} == set(Look)


def test_the_pictures_that_are_kept_are_those_that_are_taken():
    kept = sorted(path.name for path in FOLDER.iterdir())
    assert kept == sorted(picture.file for picture in PICTURES), "run `make screenshots`"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_small_and_as_wide_as_it_is_taken(picture):
    path = FOLDER / picture.file
    assert path.stat().st_size < MOST_BYTES
    with Image.open(path) as image:
        assert (image.format, image.width) == ("PNG", picture.width)


def test_each_picture_is_shown_with_a_caption_and_with_words_in_its_place():
    shown = {file: (words, caption) for words, file, caption in _SHOWN.findall(PAGE.read_text("utf-8"))}
    assert list(shown) == [picture.file for picture in PICTURES]
    for words, caption in shown.values():
        assert len(words.split()) >= 5
        assert len(caption.split()) >= 5
    assert len({words for words, _ in shown.values()}) == len(shown)


@pytest.mark.tier("test")
def test_the_site_carries_each_picture(tmp_path):
    write_site(tmp_path / "docs")
    page = (tmp_path / "docs" / "console-pictures.md").read_text("utf-8")
    for picture in PICTURES:
        place = f"assets/docs/images/console/{picture.file}"
        assert f"]({place})" in page
        assert (tmp_path / "docs" / place).read_bytes() == (FOLDER / picture.file).read_bytes()
    assert '"console-pictures.md"' in (tmp_path / "zensical.toml").read_text("utf-8")
