"""Every page in both schemes and at every width: nothing that axe finds, nothing beside the page, results first."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from aclog.console.login.forms import CSP
from aclog.console.pages.views import MENU
from tests.support.web.pages import PAGES
from tests.support.web.visitor import Hands

WIDTHS = (360, 768, 1280, 1920, 3840)


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(visit, path):
    visitor = visit(color_scheme="light")
    visitor.start(path)
    expect(visitor.answer).to_be_visible()
    assert violations(visitor.page) == []
    visitor.page.emulate_media(color_scheme="dark")  # the same document in other colours
    assert violations(visitor.page, {"runOnly": ["color-contrast", "link-in-text-block"]}) == []
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 800})
        wide = "document.documentElement.scrollWidth"
        assert visitor.page.evaluate(wide) <= width, (width, visitor.page.evaluate(_WIDEST))


def violations(page, options=None):
    """What axe finds, and where."""
    found = Axe().run(page, options=options).response
    assert found["passes"] or found["incomplete"], "axe looked at nothing"
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]


FIRST = """() => Math.min(...[...document.querySelectorAll(
  "#answer > .answer, #answer .notice, #answer tbody tr, #answer .line, #answer dd, #answer .chart, #answer .none")]
  .filter(each => each.getClientRects().length).map(each => each.getBoundingClientRect().top))"""
"""Where the first result begins, in pixels."""


@pytest.mark.parametrize(("width", "most"), [(1440, 300), (390, 500)])
def test_the_first_result_is_above_the_fold(visit, width, most):
    visitor = visit(viewport={"width": width, "height": 844})
    places = {}
    for name, path in PAGES.items():
        visitor.start(path)
        places[name] = visitor.page.evaluate(FIRST)
    assert {name: place for name, place in places.items() if place > most} == {}


def test_a_long_name_is_wrapped_on_a_small_screen(visit):
    visitor = visit(viewport={"width": 360, "height": 640})
    visitor.start(f"/resource?type=TOPIC&name={'x' * 249}")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_the_scheme_is_that_of_the_system(visit, scheme, is_dark):
    visitor = visit(color_scheme=scheme)
    visitor.start()
    ground = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.removeprefix("rgb(").rstrip(")").split(","))) < 3 * 128) is is_dark


def test_every_page_has_the_strict_policy_and_nothing_inline(visit):
    assert "unsafe" not in CSP
    visitor = visit(Hands.PLAIN)
    for path in PAGES.values():
        response = visitor.page.goto(visitor.base + path)
        assert response.headers["content-security-policy"] == CSP
        inline = "script:not([src]), style, [style], [onclick], [onload], [href^='javascript:']"
        expect(visitor.page.locator(inline)).to_have_count(0)
        outside = visitor.page.locator("[src], link[href], form[action]").evaluate_all(_OUTSIDE)
        assert [each for each in outside if not each.startswith("/") or each.startswith("//")] == []


def test_the_keyboard_begins_with_a_way_to_the_answer(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/rules")
    visitor.page.keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name="Skip to the answer")).to_be_focused()
    expect(visitor.page.get_by_role("link", name="Skip to the answer")).to_be_in_viewport()
    visitor.page.keyboard.press("Enter")
    expect(visitor.answer).to_be_focused()


def test_the_menu_says_where_one_is(visit):
    visitor = visit()
    for path, name in MENU:
        visitor.start(path)
        expect(visitor.page.locator("nav [aria-current=page]")).to_have_text(name)


_OUTSIDE = (
    "all => all.map(each => each.getAttribute('src') || each.getAttribute('href') || each.getAttribute('action'))"
)
_WIDEST = """[...document.querySelectorAll("body *")].filter(each => each.getBoundingClientRect().right > innerWidth)
  .map(each => each.outerHTML.slice(0, 120)).slice(0, 5)"""
