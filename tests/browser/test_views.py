"""A view has an address: it is reloaded, gone back to, sent to somebody else; and it says what is wrong with it."""

import re

import pytest
from playwright.sync_api import expect

from tests.support.web.visitor import Hands


def test_what_is_typed_is_answered_and_is_in_the_address(visit):
    visitor = visit()
    visitor.start("/rules")
    visitor.page.get_by_label("Anything").press_sequentially("pii")
    visitor.sees("2 of 13 rules")
    expect(visitor.page).to_have_url(re.compile(r"/rules\?q=pii$"))
    visitor.page.reload()
    visitor.sees("2 of 13 rules")
    expect(visitor.page.get_by_label("Anything")).to_have_value("pii")


def test_back_and_forward_restore_the_view_and_its_form(visit):
    visitor = visit()
    visitor.start("/rules")
    visitor.fill("Anything", "pii")
    visitor.sees("2 of 13 rules")
    visitor.fill("Permission", "DENY")
    visitor.sees("1 of 13 rules")
    visitor.follow("pii-customers")
    visitor.sees("TOPIC pii-customers")
    visitor.page.go_back()
    visitor.sees("1 of 13 rules")
    expect(visitor.page.get_by_label("Permission")).to_have_value("DENY")
    visitor.page.go_back()
    visitor.sees("2 of 13 rules")
    expect(visitor.page.get_by_label("Permission")).to_have_value("")
    expect(visitor.page.get_by_label("Anything")).to_have_value("pii")
    visitor.page.go_back()
    visitor.sees("13 rules")
    expect(visitor.page.get_by_label("Anything")).to_have_value("")
    visitor.page.go_forward()
    visitor.sees("2 of 13 rules")
    expect(visitor.page.get_by_label("Anything")).to_have_value("pii")


def test_the_same_question_twice_is_one_step_back(visit):
    visitor = visit()
    visitor.start("/rules")
    visitor.fill("Anything", "pii")
    visitor.sees("2 of 13 rules")
    with visitor.page.expect_response("**/rules?q=pii"):
        visitor.submit("Filter")
    visitor.page.go_back()
    visitor.sees("13 rules")
    expect(visitor.page).to_have_url(re.compile(r"/rules$"))


def test_the_title_and_a_screen_reader_follow_the_view(visit):
    visitor = visit()
    visitor.start("/principal?name=User:fraud")
    expect(visitor.page).to_have_title(re.compile(r"^User:fraud . aclog$"))
    visitor.fill("Principal", "User:audit")
    visitor.sees("User:audit: 3 permissions")
    expect(visitor.page).to_have_title(re.compile(r"^User:audit . aclog$"))
    expect(visitor.page.locator("#said")).to_have_text("User:audit: 3 permissions")


@pytest.mark.parametrize("hands", [Hands.MOUSE, Hands.PLAIN])
def test_what_cannot_be_asked_says_why_and_can_be_put_right(visit, hands):
    visitor = visit(hands)
    visitor.start("/rules")
    visitor.fill("Anything", "pii")
    visitor.submit("Filter")
    visitor.sees("2 of 13 rules")
    visitor.moment("the other day")
    visitor.sees("Invalid request", "as of the other day")
    expect(visitor.page.locator("#as-of")).to_have_value("the other day")
    expect(visitor.page.get_by_label("Anything")).to_have_value("pii")
    visitor.page.reload()
    visitor.sees("Invalid request")
    expect(visitor.page.get_by_label("Anything")).to_have_value("pii")
    visitor.moment("")
    visitor.sees("2 of 13 rules")


def test_an_answer_that_fails_is_shown_where_the_last_one_was(visit):
    visitor = visit()
    visitor.start("/rules")
    body = '<title>Failed</title><div id="answer" tabindex="-1"><p class="notice error">It broke.</p></div>'
    visitor.page.route("**/rules?q=*", lambda route: route.fulfill(status=503, content_type="text/html", body=body))
    visitor.fill("Anything", "pii")
    visitor.sees("It broke.")
    expect(visitor.page.locator("#said")).to_have_text("It broke.")


def test_an_address_of_no_view_says_so(visit):
    visitor = visit()
    visitor.start("/nothing-here")
    visitor.sees("Page not found")


def test_what_a_copy_button_copies_is_the_command(visit):
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    visitor.start("/principal?name=User:fraud")
    visitor.page.get_by_role("button", name="Copy").click()
    expect(visitor.page.locator("#said")).to_have_text("copied")
    command = visitor.page.locator("#command").inner_text()
    assert "aclog what-can" in command
    assert visitor.page.evaluate("navigator.clipboard.readText()") == command


def test_a_link_is_followed_however_long_the_button_is_held_after_something_was_typed(visit):
    visitor = visit()
    visitor.start("/rules")
    visitor.page.get_by_label("Anything").press_sequentially("pii")
    visitor.sees("2 of 13 rules")
    visitor.page.get_by_role("link", name="pii-customers", exact=True).first.hover()
    visitor.page.mouse.down()
    for _ in range(2):  # a question that was asked again as the field was left is answered by then
        with visitor.page.expect_response("**/live"):
            pass
    visitor.page.mouse.up()
    visitor.sees("TOPIC pii-customers")
