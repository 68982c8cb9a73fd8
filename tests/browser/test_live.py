"""A page that follows its source: what changes is marked and said, what somebody does there is left alone."""

import re
import shutil

import pytest
from playwright.sync_api import expect

from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import CONTRACTOR, RULES, append, write_estate
from tests.support.web.lateness import milliseconds_to_the_mark, summary

CHANGED = ".changed"
pytestmark = pytest.mark.slow(4)


@pytest.fixture
def log(tmp_path):
    return write_estate(tmp_path / "log")


@pytest.fixture
def console(log):
    with ConsoleProcess("--log", log, zygote=shared_zygote()) as started:
        yield started


@pytest.mark.tier("test")
def test_a_change_appears_is_marked_and_is_said(visit, log):
    visitor = visit()
    visitor.start("/resource?type=TOPIC&name=orders&operation=READ")
    visitor.sees("1 principal")
    expect(visitor.page.locator(CHANGED)).to_have_count(0)
    aclog("acls", "add", "--log", log, "--allow-principal", "User:new", "--operation", "READ", "--topic", "orders").ok()
    visitor.sees("READ on TOPIC orders: 2 principals")
    expect(visitor.part("who").locator(CHANGED)).to_have_count(1)
    expect(visitor.part("who").locator(CHANGED)).to_contain_text("User:new")
    expect(visitor.answer.locator(".answer.changed")).to_be_visible()
    expect(visitor.page.locator("#said")).to_contain_text(" rows new: READ on TOPIC orders: 2 principals")
    append(log, remove=[acl("orders", "User:billing")])
    expect(visitor.page.locator("#said")).to_contain_text(re.compile(r"\d rows? removed"))


def test_each_of_twenty_changes_is_marked(visit, log):
    visitor = visit()
    visitor.start("/rules")
    visitor.sees("13 rules")
    took = milliseconds_to_the_mark(visitor.page, log, [acl("clicks", f"User:new-{each}") for each in range(20)])
    print(summary(took))
    assert len(took) == 20
    assert min(took) > 0
    visitor.sees("33 rules")
    expect(visitor.part("rules").locator(CHANGED)).to_contain_text("User:new-19")


def test_marks_stay_until_the_next_change_of_what_is_shown(visit, log):
    visitor = visit()
    visitor.start("/rules")
    visitor.sees("13 rules")
    append(log, add=[acl("clicks", "User:new-1")])
    expect(visitor.part("rules").locator(CHANGED)).to_contain_text("User:new-1")
    status = visitor.page.locator("#status")
    status.evaluate("each => { each.dataset.version = 'another' }")  # as if there were something else to see
    expect(status).not_to_have_attribute("data-version", "another")
    expect(visitor.part("rules").locator(CHANGED)).to_have_count(1)
    append(log, add=[acl("clicks", "User:new-2")])
    expect(visitor.part("rules").locator(CHANGED)).to_contain_text("User:new-2")
    expect(visitor.part("rules").locator(CHANGED)).to_have_count(1)


def test_the_first_row_of_an_empty_list_and_a_number_that_grows_are_marked(visit, log):
    lists, start = visit(), visit()
    lists.start("/rules?principal=User:new")
    lists.sees("0 of 13 rules")
    start.start("/")
    start.sees("13 rules for 9 principals")
    append(log, add=[acl("payments.eu", "User:new")])
    expect(lists.part("rules").locator(CHANGED)).to_contain_text("User:new")
    expect(start.part("names-topic").locator(CHANGED)).to_contain_text("payments.")
    expect(start.page.locator("#said")).to_contain_text(": 14 rules for 10 principals")


def test_what_changes_an_answer_without_a_row_is_said(visit, log):
    visitor = visit()
    visitor.start("/why?principal=User:contractor&operation=READ&type=TOPIC&name=pii-customers")
    visitor.sees("DENIED")
    append(log, add=[CONTRACTOR])
    visitor.sees("ALLOWED")
    expect(visitor.answer.locator(".answer.changed")).to_contain_text("ALLOWED")
    expect(visitor.page.locator("#said")).to_contain_text("ALLOWED")


def test_the_focus_stays_where_it_is(visit, log):
    visitor = visit()
    visitor.start("/rules")
    second = visitor.part("rules").get_by_role("link", name="User:billing", exact=True).nth(1)
    second.focus()
    row = visitor.page.evaluate("document.activeElement.closest('tr').dataset.key")
    append(log, add=[acl("aaa", "User:billing")])
    visitor.sees("14 rules")
    assert visitor.page.evaluate("document.activeElement.textContent") == "User:billing"
    assert visitor.page.evaluate("document.activeElement.closest('tr').dataset.key") == row
    visitor.page.locator('.scroll[aria-labelledby="h-rules"]').focus()
    append(log, add=[acl("aab", "User:billing")])
    visitor.sees("15 rules")
    assert visitor.page.evaluate("document.activeElement.getAttribute('aria-labelledby')") == "h-rules"


def test_what_is_being_typed_stays(visit, log):
    visitor = visit()
    visitor.start("/rules")
    field = visitor.page.get_by_label("Anything")
    visitor.page.route("**/rules?q=*", lambda route: None)  # the answer to what is typed never comes
    field.press_sequentially("bill")
    append(log, add=[acl("aaa", "User:new")])
    visitor.sees("14 rules")
    expect(field).to_have_value("bill")
    expect(field).to_be_focused()


def test_two_tabs_follow_on_their_own(visit, log):
    visitor = visit()
    visitor.start("/rules?q=orders")
    other = visitor.page.context.new_page()
    other.goto(visitor.base + "/principal?name=User:new")
    append(log, add=[acl("orders", "User:new")])
    visitor.sees("4 of 14 rules")
    expect(other.locator("#answer")).to_contain_text("User:new: 1 permission")


def test_a_source_that_is_gone_is_called_stale_with_its_age(visit, log):
    visitor = visit()
    visitor.start("/rules")
    visitor.sees("13 rules")
    shutil.move(log, log.with_name("gone"))
    trouble = visitor.page.locator("#trouble")
    expect(trouble).to_contain_text("This state has not been confirmed for")
    expect(trouble).to_contain_text(" s: ")
    visitor.sees("13 rules", RULES[0].principal)
    visitor.page.reload()
    visitor.sees("13 rules", RULES[0].principal)
    expect(trouble).to_contain_text("This state has not been confirmed for")
    shutil.move(log.with_name("gone"), log)
    expect(trouble).to_be_hidden()


def test_a_console_that_is_gone_is_said_to_be(visit, console):
    visitor = visit(expected=("ERR_CONNECTION_REFUSED", "htmx:sendError", "htmx:afterRequest"))
    visitor.start("/rules")
    visitor.page.evaluate("window.setTimeout = () => 0")  # it asks no more by itself
    console.stop()
    visitor.fill("Principal", "orders")
    visitor.submit("Filter")
    expect(visitor.page.locator("#trouble")).to_contain_text("this page is not the requested view")
    visitor.sees("13 rules")


def test_a_console_that_is_gone_is_noticed_without_asking(visit, console):
    visitor = visit(expected=("ERR_CONNECTION_REFUSED",))
    visitor.start("/rules")
    console.stop()
    expect(visitor.page.locator("#trouble")).to_contain_text("this page may be out of date")
    expect(visitor.page.locator("#said")).to_contain_text("this page may be out of date")
    visitor.sees("13 rules")
