"""Each page of the console can be pictured for the documentation; the pictures themselves are not compared."""

from collections.abc import Iterator

import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.support.web.pictures import PICTURES, Gallery, gallery

FEWEST_COLOURS = 20
"""Text has edges of many colours; a page without any has one or two."""
pytestmark = pytest.mark.slow(2)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    with gallery(tmp_path_factory.mktemp("gallery")) as found:
        yield found


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_page_is_pictured_and_is_not_blank(browser: Browser, shown: Gallery, picture, tmp_path) -> None:
    with Image.open(shown.take(browser, picture, tmp_path)) as taken:
        image = taken.convert("RGB")
    assert image.width == picture.width
    assert 200 < image.height <= picture.tallest
    colours = sorted(image.getcolors(1 << 24), reverse=True)
    assert len(colours) >= FEWEST_COLOURS
    (_, ground), *others = colours
    assert (sum(ground) < 3 * 128) is picture.look.is_dark
    assert sum(count for count, _ in others) > 0.005 * image.width * image.height
