"""The frame of every page: the search by keyboard, the moment, the menu, and sheets."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.support.web.estate import MARCH
from tests.support.web.visitor import Hands


@pytest.mark.parametrize("keys", ["Control+k", "/"])
def test_the_search_is_reached_and_answered_by_keyboard_alone(visit, keys):
    visitor = visit(Hands.KEYS)
    visitor.start("/rules")
    visitor.page.keyboard.press(keys)
    find = visitor.page.get_by_label("Find", exact=True)
    expect(find).to_be_focused()
    visitor.page.keyboard.type("who can read pii-c")
    offered = visitor.page.locator("#completions")
    expect(offered.get_by_role("option").first).to_contain_text("who can READ TOPIC pii-customers")
    visitor.page.keyboard.press("ArrowDown")
    expect(offered.get_by_role("option", selected=True)).to_have_count(1)
    visitor.page.keyboard.press("Enter")
    visitor.sees("READ on TOPIC pii-customers: 1 principal")
    visitor.page.keyboard.press("/")
    expect(offered.get_by_role("option").first).to_contain_text("who can READ TOPIC pii-customers")  # recent
    visitor.page.keyboard.press("Escape")
    expect(offered).to_be_hidden()


@pytest.mark.parametrize("is_between", [False, True])
def test_keys_act_on_the_completions_of_the_whole_text_however_late_these_are(visit, is_between):
    visitor = visit(Hands.KEYS)
    visitor.start("/rules")
    late: list[Route] = []
    visitor.page.route("**/complete?q=why*", lambda route: late.append(route))  # noqa: PLW0108 - it takes functions only
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type("orders")
    offered = visitor.page.locator("#completions")
    expect(offered.get_by_role("option").first).to_contain_text("orders")
    visitor.page.keyboard.press("ControlOrMeta+A")
    with visitor.page.expect_request("**/complete?*pii-customers"):
        visitor.page.keyboard.type("why can crm read pii-customers")
    visitor.page.keyboard.press("ArrowDown")
    if not is_between:
        visitor.page.keyboard.press("Enter")
    expect(offered.get_by_role("option", selected=True)).to_have_count(0)
    for each in reversed(late):  # the older ones last
        each.continue_()
    if is_between:
        expect(offered.get_by_role("option", selected=True)).to_contain_text(
            "why can User:crm READ TOPIC pii-customers"
        )
        visitor.page.keyboard.press("Enter")
    visitor.sees("DENIED", "To allow it")
    expect(visitor.page).to_have_url(re.compile(r"/why\?principal=User%3Acrm&operation=READ&.*name=pii-customers"))


@pytest.mark.parametrize("hands", [Hands.KEYS, Hands.PLAIN])
def test_enter_on_a_question_in_full_opens_its_answer(visit, hands):
    visitor = visit(hands)
    visitor.start("/rules")
    visitor.search("why can crm read pii-customers from 10.0.0.9")
    visitor.sees("DENIED", "To allow it", "from 10.0.0.9")
    expect(visitor.page).to_have_url(re.compile("/why"))


@pytest.mark.parametrize("hands", [Hands.KEYS, Hands.PLAIN])
def test_enter_on_a_part_of_a_question_lists_what_it_may_be(visit, hands):
    visitor = visit(hands)
    visitor.start("/rules")
    visitor.search("why can crm read pii-c")
    visitor.sees("2 matching questions")
    visitor.follow("why can User:crm READ TOPIC pii-customers")
    visitor.sees("DENIED", "To allow it")


def test_a_slash_in_a_field_is_a_slash(visit):
    visitor = visit()
    visitor.start("/rules")
    field = visitor.page.get_by_label("Anything")
    field.press_sequentially("a/b")
    expect(field).to_have_value("a/b")


@pytest.mark.parametrize("hands", [Hands.MOUSE, Hands.PLAIN])
def test_a_moment_is_marked_is_kept_by_links_and_is_left(visit, hands):
    visitor = visit(hands)
    visitor.start("/rules?permission=ALLOW")
    visitor.moment(MARCH)
    visitor.sees(f"State as of {MARCH}", "User:contractor")
    # the choice of columns, which the script adds, has this label as well
    expect(visitor.page.get_by_role("group", name="Filter").get_by_label("Permission")).to_have_value("ALLOW")
    visitor.follow("Who can")
    visitor.sees(f"State as of {MARCH}")
    visitor.follow("Findings")
    visitor.sees(f"This page is not of {MARCH}")
    visitor.follow("Rules")
    visitor.sees(f"State as of {MARCH}")
    visitor.follow("Now")
    visitor.sees("13 rules")
    expect(visitor.page).to_have_url(re.compile("/rules$"))


def test_the_moment_applies_to_what_was_filtered_meanwhile(visit):
    visitor = visit()
    visitor.start("/rules")
    visitor.fill("Anything", "pii")
    visitor.sees("2 of 13 rules")
    visitor.moment(MARCH)
    visitor.sees("3 of 14 rules", "User:contractor")


def test_the_state_has_its_age_and_the_exact_time(visit):
    visitor = visit()
    visitor.start()
    since = visitor.page.locator("#since")
    expect(since).to_have_text(re.compile(r"newest record \d+ (s|min|h|days) ago"))
    expect(since).to_have_attribute("title", re.compile(r"the newest record is of \d{4}-\d\d-\d\dT"))
    expect(visitor.page.locator("#health")).to_have_text("live")


def test_the_menu_is_a_sheet_on_a_phone_also_without_a_script(visit):
    visitor = visit(Hands.PLAIN, viewport={"width": 390, "height": 844})
    visitor.start()
    expect(visitor.page.get_by_role("link", name="Rules", exact=True)).to_have_count(0)
    visitor.page.get_by_role("button", name="Menu").click()
    visitor.follow("Rules")
    visitor.sees("13 rules")


def test_the_menu_stays_collapsed(visit):
    visitor = visit()
    visitor.start()
    visitor.page.get_by_role("button", name="Collapse the menu").click()
    visitor.page.goto(f"{visitor.base}/rules")
    expect(visitor.page.get_by_role("button", name="Expand the menu")).to_be_visible()
    expect(visitor.page.get_by_role("link", name="Names", exact=True)).to_have_count(0)


def test_a_finding_opens_in_a_sheet_and_is_walked_to_by_keys(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/findings?kind=unused")
    visitor.sees("never matched")
    visitor.page.keyboard.press("j")
    visitor.page.keyboard.press("j")
    visitor.page.keyboard.press("Enter")
    sheet = visitor.page.locator("details.line[open]")
    expect(sheet).to_have_count(1)
    expect(sheet).to_contain_text("Fix")
    visitor.page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


def test_a_sheet_is_closed_by_its_button_and_by_a_click_outside(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/findings?kind=unused")
    visitor.sees("never matched")
    sheet, summary = visitor.page.locator("details.line[open]"), visitor.page.locator("details.line > summary").first
    button = visitor.page.get_by_role("button", name="Close the details")
    for close in (lambda: button.press("Enter"), button.click):
        summary.press("Enter")
        expect(sheet).to_have_count(1)
        close()
        expect(sheet).to_have_count(0)
        expect(summary).to_be_focused()
    summary.press("Enter")
    expect(sheet).to_have_count(1)
    visitor.page.locator("h1").click()
    expect(sheet).to_have_count(0)


def test_a_bar_leads_to_the_changes_of_its_day(visit):
    visitor = visit()
    visitor.start()
    visitor.page.locator(".chart a").last.click(force=True)
    visitor.sees("rule changes between")
    expect(visitor.page).to_have_url(re.compile(r"/changes\?since=\d{4}"))


def test_a_fix_is_tried_as_a_draft(visit):
    visitor = visit()
    visitor.start("/why?principal=User:crm&operation=READ&type=TOPIC&name=pii-customers")
    visitor.follow("try as a draft")
    visitor.sees("0 rules to add, 1 to remove")
    expect(visitor.page.get_by_label("Rules to add and to remove")).to_have_value(re.compile("^- DENY User:crm"))


def test_every_link_to_an_operation_or_intent_answers(visit):
    visitor = visit()
    for kind, name in (("TOPIC", "orders"), ("GROUP", "reports"), ("CLUSTER", ""), ("TRANSACTIONAL_ID", "t")):
        visitor.start(f"/resource?type={kind}&name={name}")
        links = visitor.part("operations").locator("a").evaluate_all("all => all.map(each => each.href)")
        assert len(links) > 3
        for link in links:
            assert visitor.page.request.get(link).status == 200, link


def test_a_browser_that_stores_nothing_has_the_menu_and_the_search(visit):
    visitor = visit()
    refusal = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('denied'); }})"
    visitor.page.add_init_script(refusal)
    visitor.start("/rules")
    visitor.page.get_by_role("button", name="Collapse the menu").click()
    expect(visitor.page.get_by_role("button", name="Expand the menu")).to_be_visible()
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type("pii-c")
    expect(visitor.page.get_by_role("option").first).to_contain_text("pii-customers")
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Enter")
    visitor.sees("pii-customers")
